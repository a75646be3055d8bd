"""Waivers in a session: waived, stale, updated."""

from __future__ import annotations

import pytest

FORGETFUL = """
from pytest_approvals.adapter import Finished
from pytest_approvals.simulation import ReferenceAgent
from pytest_approvals.adapter import CAPABILITIES

class Forgetful(ReferenceAgent):
    '''Loses a decision that was made after a restart.'''

    async def turn(self, text, decisions, *, stream):
        if BROKEN and self.blueprint.serialize == "json":
            decisions = ()
        return await super().turn(text, decisions, stream=stream)

FLAVOURS = {"": Forgetful}
"""

WAIVER = """
- scenario: mine/*
  check: CHECK
  variant: json-*
  reason: Decisions are lost after a restart.
  issue: https://example.org/issues/1
"""


@pytest.fixture
def forgetful(project):
    """A project with an agent that loses decisions, and the check that finds it."""
    project.scenario()
    project.write("forgetful_adapter.py", "BROKEN = True\n" + FORGETFUL)
    return project


UNREADABLE = """
from pytest_approvals.simulation import ReferenceAgent

class Unreadable(ReferenceAgent):
    '''Fails in its last turn, and what it saves then cannot be read.'''

    failed = False

    async def turn(self, text, decisions, *, stream):
        self.failed = text == "fail"
        if self.failed:
            raise RuntimeError("out of order")
        return await super().turn(text, decisions, stream=stream)

    async def dump(self):
        return "{" if self.failed else await super().dump()

FLAVOURS = {"": Unreadable}
"""


def run(project, *words: str):
    """Runs the story, without the variants that need another process."""
    words = ("scenarios", "--approvals-resume=same", "--snapshot-update", *words)
    return project.run(*words, agents="forgetful", fresh=True)


def failing_check(project) -> str:
    """Gives the check that fails."""
    lines = run(project).outlines
    return lines[lines.index("forgetful: 1 finding") + 2].partition(":")[0]


def test_a_waived_failure_is_an_expected_one(forgetful) -> None:
    """It is xfailed with the waiver's reason, and a `w` in the matrix."""
    check = failing_check(forgetful)
    forgetful.write("forgetful.waivers.yaml", WAIVER.replace("CHECK", check))
    result = run(forgetful, "-rx")
    outcomes = result.parseoutcomes()

    assert 0 == result.ret
    assert {"xfailed", "passed"} == set(outcomes)
    result.stdout.fnmatch_lines(
        [
            "mine · 1  1 w",
            "XFAIL *forgetful[[]json-*] - forgetful.waivers.yaml:2: *: Decisions are lost after a restart. (https://*)",
        ]
    )


def test_variants_that_are_known_to_differ_need_not_be_as_stored(project) -> None:
    """Where a waiver says so, the variant that writes the transcript is compared with it, and no other."""
    project.scenario(**{"approve}": "approve}\n  - send: fail\n  - go_on: true\n  - leave: true"})
    project.write("unreadable_adapter.py", UNREADABLE)
    project.run("scenarios", "-k", "none-held", "--snapshot-update", agents="unreadable", fresh=True)
    words = ("scenarios", "--approvals-serialize=none,json", "--approvals-resume=same", "--approvals-history=whole")
    surprised = project.run(*words, agents="unreadable", fresh=True)
    waiver = WAIVER.replace("CHECK", "same-outcome-in-every-mode").replace("  variant: json-*\n", "")
    project.write("unreadable.waivers.yaml", waiver)
    known = project.run(*words, agents="unreadable", fresh=True)

    surprised.stdout.fnmatch_lines(["*Transcript differs from *unreadable.transcript *"])
    assert 0 == known.ret


def test_a_stale_waiver_fails_the_session(forgetful) -> None:
    """A known failure that does not come any more is a failed test, although all others pass."""
    check = failing_check(forgetful)
    forgetful.write("forgetful_adapter.py", "BROKEN = False\n" + FORGETFUL)
    forgetful.write("forgetful.waivers.yaml", WAIVER.replace("CHECK", check))
    whole = forgetful.run("scenarios", "--snapshot-update", agents="forgetful", fresh=True)
    part = forgetful.run("scenarios", "-k", "none-held", agents="forgetful", fresh=True)

    assert 1 == whole.ret
    whole.stdout.fnmatch_lines([f"stale waiver: *forgetful.waivers.yaml:2: {check} on mine/[*] [[]json-[*]]: *"])
    assert 0 == part.ret


def test_a_mistake_in_a_file_of_waivers_is_an_error(forgetful) -> None:
    """With file and line, where scenarios are collected."""
    forgetful.write("forgetful.waivers.yaml", WAIVER.replace("CHECK", "aproved-runs"))
    result = run(forgetful)

    assert 2 == result.ret
    result.stdout.fnmatch_lines(
        ["*forgetful.waivers.yaml:3: Unknown check 'aproved-runs'; did you mean 'approved-runs'[?]"]
    )


def test_updating_writes_what_fails_and_a_person_says_why(forgetful) -> None:
    """The new waiver has no reason, and the next run refuses it."""
    updated = forgetful.run(
        "scenarios", "--approvals-update-waivers", "--snapshot-update", agents="forgetful", fresh=True
    )
    text = (forgetful.path / "forgetful.waivers.yaml").read_text()
    refused = run(forgetful)

    assert 1 == updated.ret
    assert text.startswith("- scenario: mine/one\n  check: ")
    assert text.endswith('  reason: ""\n  issue: ""\n')
    refused.stdout.fnmatch_lines(["*forgetful.waivers.yaml:*: Invalid reason: expected a text *"])


def test_updating_removes_what_is_stale(forgetful) -> None:
    """The file is left without it."""
    check = failing_check(forgetful)
    forgetful.write("forgetful_adapter.py", "BROKEN = False\n" + FORGETFUL)
    forgetful.write("forgetful.waivers.yaml", "# known\n" + WAIVER.lstrip().replace("CHECK", check))
    forgetful.run("scenarios", "--approvals-update-waivers", "--snapshot-update", agents="forgetful", fresh=True)

    assert "# known\n" == (forgetful.path / "forgetful.waivers.yaml").read_text()

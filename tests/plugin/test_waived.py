"""Waivers in a session: waived, stale, updated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import resolve_local_agent
from pytest_approvals.agents.sources import create_source
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.agents.waivers import Waiver
from pytest_approvals.plugin.agents import AgentUnderTest
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder

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

    surprised.stdout.fnmatch_lines(["*Transcript of unreadable differs from *one.transcripts *"])
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


# --- files of the user's own ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["ini", "option"])
def test_a_file_of_ones_own_waives_failures(forgetful, place: str) -> None:
    """It is named in the ini file, relative to it, or as an option."""
    check = failing_check(forgetful)
    forgetful.write("known/own.yaml", WAIVER.replace("CHECK", check))
    if place == "ini":
        forgetful.ini("approvals_waivers = known/own.yaml")
    result = run(forgetful, "-rx", *(["--approvals-waivers=known/own.yaml"] if place == "option" else []))

    assert 0 == result.ret
    result.stdout.fnmatch_lines(["XFAIL *forgetful[[]json-*] - known/own.yaml:2: *: Decisions are lost after a *"])


def test_a_file_that_is_not_there_is_named(forgetful) -> None:
    """It may be misspelled; updating makes it."""
    result = run(forgetful, "--approvals-waivers=own.yaml")

    assert 0 != result.ret
    assert "own.yaml does not exist" in result.stdout.str() + result.stderr.str()


def test_updating_writes_into_the_own_file_and_says_so(forgetful) -> None:
    """Not beside the adapter."""
    words = ("scenarios", "--approvals-update-waivers", "--approvals-waivers=own.yaml", "--snapshot-update")
    result = forgetful.run(*words, agents="forgetful", fresh=True)

    assert (forgetful.path / "own.yaml").read_text().startswith("- scenario: mine/one\n  check: ")
    assert not (forgetful.path / "forgetful.waivers.yaml").exists()
    result.stdout.fnmatch_lines(
        ["waivers in own.yaml: 0 stale removed, 1 new added; a new one needs its reason and its issue"]
    )


def test_updating_never_writes_into_an_installed_package(forgetful, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for a file of one's own."""
    source = (forgetful.path / "forgetful_adapter.py").read_text()
    folder = forgetful.write("site-packages/forgetful_adapter.py", source).parent
    monkeypatch.chdir(folder)
    result = forgetful.run("../scenarios", "--approvals-update-waivers", agents="forgetful", fresh=True)

    assert 0 != result.ret
    assert "--update-waivers would write into the installed package, " in result.stdout.str() + result.stderr.str()
    assert not (folder / "forgetful.waivers.yaml").exists()


def test_waivers_of_this_package_are_about_its_catalogue(tmp_path: Path) -> None:
    """A scenario of a project is not waived by them, whatever its id is."""
    waiver = Waiver(scenario="*", check="approved-runs", reason="known", issue="https://example.org/1")
    own = replace(waiver, scenario="mine/*")
    local = resolve_local_agent(AgentSpec(name="reference"))
    agent = AgentUnderTest(local=local, source=create_source(local), stored=(waiver,), own=(own,))
    in_catalogue = next(iter(find_scenarios([stock_folder()]).values()))

    assert (own, waiver) == agent.waivers_for(in_catalogue)
    assert (own,) == agent.waivers_for(tmp_path / "scenarios" / "basics" / "mine.approval.yaml")

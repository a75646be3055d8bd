"""Scenario files as pytest items."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest


def stored(project, *words: str, **more: str) -> None:
    """Stores the transcripts first, so that nothing else fails."""
    project.run("--snapshot-update", *words, **more)


def test_an_item_is_an_agent_in_a_variant(project) -> None:
    """Items are named by file, agent and variant; the base variant comes first."""
    project.scenario()
    items = project.items("scenarios")

    assert "scenarios/mine/one.approval.yaml::reference[none-held]" == items[0]
    assert any("[json-stream-" in item for item in items)
    assert len(items) == len(set(items))


def test_a_correct_agent_passes_in_every_variant(project) -> None:
    """All items pass, and the summary ends with the matrix."""
    project.scenario()
    stored(project, "scenarios")
    result = project.run("scenarios")

    assert 0 == result.ret
    result.stdout.fnmatch_lines(["*= approvals =*", "* runs · * pass", "scenario  reference", "mine · 1  1 ✓"])


def test_a_finding_is_printed_with_the_line_of_its_call(project) -> None:
    """A failure names file and line, the requirement, the witness and the command that shows it again."""
    project.scenario()
    result = project.run(
        "scenarios", "--approvals-fault=GatedCallRunsUnasked", "--approvals-serialize=none", "--approvals-stream=off"
    )

    assert 1 == result.ret
    result.stdout.fnmatch_lines(
        [
            "scenarios/mine/one.approval.yaml:7: *: *",
            "  mine/one · reference · none, held",
            "  expected  *",
            "  actual    *",
            "  rerun  pytest-approvals run mine/one --agent reference --serialize none *",
        ]
    )


def test_a_failure_shows_the_transcript(project) -> None:
    """What happened stands in a section of its own."""
    project.scenario()
    result = project.run("scenarios", "--approvals-fault=GatedCallRunsUnasked", "-k", "none-held")

    result.stdout.fnmatch_lines(["*- approvals transcript -*", "turn 1", '  caller  sends "Delete a.txt"'])


def test_a_mistake_in_a_file_is_an_error_with_its_line(project) -> None:
    """Collecting it fails with one line, not with a traceback."""
    project.scenario(returns="retuns")
    result = project.run("scenarios")

    assert 2 == result.ret
    result.stdout.fnmatch_lines(["scenarios/mine/one.approval.yaml:4: *'retuns'*'returns'*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_k_selects_by_scenario_agent_and_variant(project) -> None:
    """Names of files, agents and variants are keywords."""
    project.scenario("scenarios/mine/one")
    project.scenario("scenarios/mine/two")

    assert ["scenarios/mine/two.approval.yaml::reference[none-held]"] == project.items(
        "scenarios", "-k", "two and none-held and not rebuilt and not stream"
    )


def test_a_node_id_selects_an_agent(project) -> None:
    """`FILE::AGENT` is all variants, `FILE::AGENT[VARIANT]` one of them."""
    project.scenario()

    assert len(project.items("scenarios/mine/one.approval.yaml::reference")) > 5
    assert 1 == len(project.items("scenarios/mine/one.approval.yaml::reference[none-held]"))


def test_the_failed_ones_can_be_run_again(project) -> None:
    """`--lf` runs what failed, `-x` stops at the first failure."""
    project.scenario()
    words = ("scenarios", "--approvals-agents=reference", "-p", "no:randomly", "--approvals-fault=GatedCallRunsUnasked")
    first = project.pytester.runpytest_inprocess(*words, "-x")
    again = project.pytester.runpytest_inprocess(*words, "--lf", "--collect-only", "-q")

    assert 1 == first.parseoutcomes()["failed"]
    assert 1 == len([line for line in again.outlines if "::" in line])


def test_workers_report_as_one_process_does(project) -> None:
    """Under pytest-xdist the summary is that of all workers."""
    project.scenario("scenarios/mine/one")
    project.scenario("scenarios/mine/two")
    stored(project, "scenarios")
    alone, spread = project.run("scenarios"), project.run("scenarios", "-n", "2", fresh=True)

    def summary(result) -> list[str]:
        text = result.stdout.str()
        own = text[text.index("= approvals =") :].partition("\n")[2]
        return re.split(r"^[-=]{3}", own, flags=re.MULTILINE)[0].splitlines()

    assert 0 == spread.ret
    assert summary(alone) == summary(spread)


def test_junit_has_what_ran(project) -> None:
    """Scenario, agent, variant and findings are properties of the test case."""
    project.scenario()
    project.run("scenarios", "-k", "none-held", "--approvals-fault=GatedCallRunsUnasked", "--junitxml=junit.xml")
    case = next(ET.parse(project.path / "junit.xml").iter("testcase"))
    properties = {one.get("name"): one.get("value") for one in case.iter("property")}

    assert ("mine/one", "reference", "none-held") == (
        properties["scenario"],
        properties["agent"],
        properties["variant"],
    )
    assert properties["findings"]


def test_what_does_not_apply_is_counted_and_not_collected(project) -> None:
    """An agent that lacks what a story needs has no items, and a dash in the matrix."""
    project.write("toy_adapter.py", TOY)
    project.scenario()
    result = project.run("scenarios", "--snapshot-update", agents="reference,toy")

    result.stdout.fnmatch_lines(["scenario  reference  toy", "mine · 1  1 ✓        1 *"])


def test_another_outcome_in_some_variant_is_a_failed_test_at_the_end(project) -> None:
    """What can only be judged on all variants together is reported when all have run."""
    project.scenario()
    project.write("conftest.py", FORGETFUL)
    result = project.run("scenarios", agents="forgetful")

    assert 1 == result.ret
    assert re.search(r"FAILED scenarios/mine/one.approval.yaml::forgetful\[\*\]", result.stdout.str())
    result.stdout.fnmatch_lines(["same-outcome-in-every-mode: *"])


TOY = """
from pytest_approvals.adapter import CAPABILITIES
from pytest_approvals.adapter import Agent, Finished

class Toy(Agent):
    missing = dict.fromkeys(CAPABILITIES, "a toy")
    wire_rules = "none"

    async def turn(self, text, decisions, *, stream):
        return Finished(output="no")

    async def pending(self):
        return ()

FLAVOURS = {"": Toy}
"""

FORGETFUL = """
from pytest_approvals.adapter import Finished
from pytest_approvals.simulation import ReferenceAgent

class Forgetful(ReferenceAgent):
    '''Says something else when its state was restored.'''

    async def turn(self, text, decisions, *, stream):
        outcome = await super().turn(text, decisions, stream=stream)
        if isinstance(outcome, Finished) and self.blueprint.serialize == "json":
            return Finished(output="Done from memory.")
        return outcome

def pytest_approvals_adapters():
    return {"forgetful": {"": Forgetful}}
"""


def test_a_protocol_has_the_transcript_of_the_native_model(project) -> None:
    """What differs over a protocol is not as stored."""
    project.write("wired_adapter.py", WIRED)
    project.scenario()
    project.run("scenarios", "-k", "none-held", "--snapshot-update", agents="wired", fresh=True)
    result = project.run("scenarios", "-k", "chat", agents="wired", fresh=True)

    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*Transcript of wired differs from *one.transcripts *"])


def test_a_known_difference_of_a_protocol_is_stored_besides(project) -> None:
    """A transcript of the protocol's own begins as a heading; its variants are compared with that."""
    project.write("wired_adapter.py", WIRED)
    project.scenario()
    stored = project.write("scenarios/mine/__snapshots__/one.transcripts", "# wired-chat\n")
    project.run("scenarios", "--snapshot-update", agents="wired", fresh=True)
    result = project.run("scenarios", agents="wired", fresh=True)

    assert "Over chat." in stored.read_text()
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["2 snapshots passed."])


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_an_update_fails_for_what_it_leaves_out(project, words: tuple[str, ...]) -> None:
    """A variant that tells something else than the one that is stored would fail from then on; the remedy is named."""
    project.write("wired_adapter.py", WIRED)
    project.scenario()
    chosen = ("-k", "none-held or chat", "--snapshot-update")
    result = project.run("scenarios", *chosen, *words, agents="wired", fresh=True)

    assert 1 == result.ret
    result.stdout.fnmatch_lines(
        [
            "Transcript of wired differs from * (--snapshot-update stores what wired?none-held? tells; *# wired-chat*",
            '  +  agent   pauses for c1, saying "Over chat."',
        ]
    )


def test_a_known_difference_of_a_store_is_stored_besides(project) -> None:
    """A transcript of the store's own begins as a heading, as that of a protocol does."""
    project.write("conftest.py", STORED)
    project.scenario()
    stored = project.write("scenarios/mine/__snapshots__/one.transcripts", "# stored-sqlite\n")
    project.run("scenarios", "--snapshot-update", agents="stored", fresh=True)
    result = project.run("scenarios", agents="stored", fresh=True)

    assert "From the file." in stored.read_text()
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["2 snapshots passed."])


STORED = """
    from dataclasses import replace

    from pytest_approvals.adapter import Paused
    from pytest_approvals.simulation.reference import ReferenceAgent

    class Stored(ReferenceAgent):
        '''Says something when its state is in a file.'''

        async def turn(self, text, decisions, *, stream):
            outcome = await super().turn(text, decisions, stream=stream)
            told = self.blueprint.serialize == "native.sqlite" and isinstance(outcome, Paused)
            return replace(outcome, text="From the file.") if told else outcome

    def pytest_approvals_adapters():
        return {"stored": {"": Stored}}
"""


WIRED = """
    from dataclasses import replace

    from pytest_approvals.adapter import Paused
    from pytest_approvals.simulation.reference import ReferenceAgent

    class Wired(ReferenceAgent):
        protocols = {"chat": {}}

        async def turn(self, text, decisions, *, stream):
            outcome = await super().turn(text, decisions, stream=stream)
            told = self.blueprint.model is not None and isinstance(outcome, Paused)
            return replace(outcome, text="Over chat.") if told else outcome

    FLAVOURS = {"": Wired}
"""


INVALID = {
    "a misspelled step": "title: t\nmodel: [{say: d}]\ncaller:\n  - {decid: {c1: approve}, hangs_up: model}\n",
    "a number of 5,000 digits": f"title: t\nlimits: {{tool_calls: {'9' * 5000}}}\nmodel: [{{say: d}}]\n",
    "nested 900 levels deep": f"title: {'[' * 900}{']' * 900}\n",
    "nested 60,000 levels deep": f"title: {'[' * 60_000}\n",
}


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID)
def test_a_scenario_with_a_mistake_does_not_keep_the_others_from_running(project, text: str) -> None:
    """Its error is shown with its line, the others run, and the session fails."""
    project.scenario()
    project.write("scenarios/mine/bad.approval.yaml", text)
    result = project.run("scenarios", "--snapshot-update", "-k", "none-held")

    result.assert_outcomes(passed=1, errors=1)
    assert pytest.ExitCode.TESTS_FAILED == result.ret
    result.stdout.fnmatch_lines(
        ["*ERROR collecting scenarios/mine/bad.approval.yaml*", "scenarios/mine/bad.approval.yaml:*"]
    )
    assert "Traceback" not in result.stdout.str()


def test_a_module_that_cannot_be_imported_still_stops_the_session(project) -> None:
    """Errors of other files are as serious as pytest takes them."""
    project.scenario()
    project.write("scenarios/mine/bad.approval.yaml", "titel: t")
    project.write("test_own.py", "import nothing_of_that_name\n")
    result = project.run("scenarios", "test_own.py", "-k", "none-held or own")

    result.stdout.fnmatch_lines(["*Interrupted: 2 errors during collection*"])
    assert pytest.ExitCode.INTERRUPTED == result.ret


def test_the_mistakes_of_all_scenarios_are_shown_where_nothing_else_runs(project) -> None:
    """Without a scenario that could run, the session is interrupted as by any error of collection."""
    project.write("scenarios/mine/bad.approval.yaml", "titel: t")
    result = project.run("scenarios")

    result.stdout.fnmatch_lines(["scenarios/mine/bad.approval.yaml:1: *did you mean 'title'?*"])
    assert pytest.ExitCode.INTERRUPTED == result.ret

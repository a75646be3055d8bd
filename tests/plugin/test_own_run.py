"""What a person's test gets of a run."""

from __future__ import annotations

import pytest

from pytest_approvals import call, calls, reject_all, returns, say
from pytest_approvals.agents.adapters import resolve_local_agent
from pytest_approvals.agents.sources import create_source
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.checks import judge
from pytest_approvals.errors import UnknownName
from pytest_approvals.plugin.run_result import RunResult
from pytest_approvals.runner.event_loops import run_coroutine
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.build import scenario, tool
from pytest_approvals.scenario.model import Variant


@pytest.fixture
def run() -> RunResult:
    """A run with one tool that ran, one that was rejected, and one that was not called."""
    story = scenario(
        title="Three tools",
        tools=[
            tool("read", returns("text"), parameters={"path": "string"}),
            tool("pay", parameters={"amount": "integer"}, approval="always"),
            tool("never_called"),
        ],
        model=[calls(call("read", path="a"), call("pay", amount=5)), say("Done.")],
    )
    source = create_source(resolve_local_agent(AgentSpec(name="reference")))
    recorded = run_coroutine(run_scenario(story, Variant(), source, oracle=reject_all("no")))
    return RunResult(recorded, judge(recorded.events))


def test_calls_are_found_by_tool(run: RunResult) -> None:
    """What the model called, what was asked about, and what ran."""
    assert ["text"] == [one.result for one in run.calls["read"].executions]
    assert [{"path": "a"}] == [one.arguments for one in run.calls["read"].executions]
    assert [] == run.calls["pay"].executions
    assert [{"amount": 5}] == [one.arguments for one in run.calls["pay"].made]
    assert (
        ["pay"]
        == [asked.entry["tool"] for asked in run.calls["pay"].requests]
        == [asked.entry["tool"] for asked in run.requests]
    )


def test_a_tool_that_was_not_called_has_no_calls(run: RunResult) -> None:
    """It is there, and empty."""
    assert ([], [], []) == tuple(vars(run.calls["never_called"]).values())


def test_a_tool_that_is_not_there_is_named(run: RunResult) -> None:
    """With the nearest that is."""
    with pytest.raises(UnknownName) as error:
        run.calls["pya"]

    assert "Unknown tool 'pya'; did you mean 'pay'?" == str(error.value)
    assert "pya" not in run.calls
    assert ["read", "pay", "never_called"] == list(run.calls)


def test_it_prints_what_happened(run: RunResult) -> None:
    """In a line, and its calls by tool."""
    assert "<run of reference: 1 request, 1 execution>" == repr(run)
    assert "<1 made, 1 asked about, 0 run>" == repr(run.calls["pay"])


def test_it_has_output_verdicts_and_transcript(run: RunResult) -> None:
    """All of it comes from the journal."""
    assert "Done." == run.output
    assert "pass" in {verdict.status for verdict in run.verdicts}
    assert "caller  rejects c2: no" in str(run.transcript)
    assert run.failure is None


def test_what_happened_is_shown_on_one_short_line_each(run: RunResult) -> None:
    """No repr leads from a call to its turn and back."""
    assert ["<call c1 read(path='a')>", "<call c2 pay(amount=5)>"] == list(map(repr, run.history.calls))
    assert ["<execution of c1 read(path='a'): returned 'text'>"] == list(map(repr, run.history.executions))
    assert ["<request q1 for pay(amount=5)>"] == list(map(repr, run.requests))
    assert ["<decision reject of c2>"] == list(map(repr, run.history.decisions))
    assert ["<turn 1: paused>", "<turn 2: finished>"] == list(map(repr, run.history.turns))
    assert "<run of reference: 1 request, 1 execution>" == repr(run)
    assert "<turn on 'Go ahead.': paused>" == repr(run.turns[0])
    assert "<turn: finished with 'Done.'>" == repr(run.turns[1])
    assert "<rejected-never-runs: pass>" in list(map(repr, run.verdicts))


def test_long_arguments_are_shortened_in_a_repr(run: RunResult) -> None:
    """A call stays on one line of moderate length."""
    made = run.calls["pay"].made[0]
    made.arguments = {f"p{number}": "a\nb" * 100 for number in range(9)}

    assert "\n" not in repr(made)
    assert len(repr(made)) < 400
    assert repr(made).endswith(", ...)>")


def test_a_printed_run_is_its_transcript(run: RunResult) -> None:
    """As it is stored and compared."""
    assert str(run.transcript) == str(run)

"""Turns in which the agent can store nothing, because the disk is full."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.sources import subprocess_factory
from pytest_approvals.journal.events import AgentStart, DiskFull, StateRestored, StepSkipped, ToolEnd, TurnEnd
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.processes.agent_process import AgentProcess
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import Call, Scenario, ScriptedDecision, ScriptedReply, TurnStep, Variant
from pytest_approvals.simulation.reference import ReferenceAgent

Story = Callable[..., Scenario]

SEND = TurnStep(text="Go ahead.")
AFTER = TurnStep(text="And now?")
APPROVE = (ScriptedDecision(label="c1"),)
REPLIES = (
    ScriptedReply(calls=(Call(label="c1", id="c1", tool="pay", arguments={"amount": 5}),)),
    ScriptedReply(say="Done."),
    ScriptedReply(say="You are welcome."),
)


def play(scenario: Scenario) -> RecordedRun:
    """Play a story on the reference agent with a durable store."""
    source = InProcessSource(
        name="reference",
        adapter=ReferenceAgent,
        facts=describe_adapter(ReferenceAgent),
        elsewhere=subprocess_factory(ReferenceAgent),
    )
    variant = Variant(serialize="native.sqlite", source="rebuilt")
    return asyncio.run(run_scenario(scenario, variant, source, limit=RunLimits(seconds=30)))


def outcomes(run: RecordedRun) -> list[str]:
    """How executions and turns ended, in order."""
    found = [event for event in run.events if isinstance(event, (ToolEnd, DiskFull, TurnEnd))]
    return [getattr(event, "how", None) or getattr(event, "outcome", None) or event.kind for event in found]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("write", ["paused", "store.full", "failed", "finished"]),
        ("write c1", ["paused", "returned", "store.full", "failed", "finished"]),
    ],
)
def test_nothing_is_stored_until_the_turn_has_ended(place: str, expected: list[str], story: Story) -> None:
    """The turn fails, and the next one has space again."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, disk_full=place), AFTER)))

    assert expected == outcomes(run)
    assert [] == [*find_violations(run.events)]


def test_the_next_step_goes_on_from_what_was_stored(story: Story) -> None:
    """It is no rewind: the request is listed because its decision was not stored."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, disk_full="write"), AFTER)))

    restored = [event for event in run.events if isinstance(event, StateRestored)][:2]
    assert [(None, ["c1"]), (True, ["c1"])] == [
        (event.present, [request["label"] for request in event.pending]) for event in restored
    ]
    assert 1 == len(read_history(run.events).branches)


def test_the_process_lives_on(story: Story) -> None:
    """Another agent in it restores the session."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, disk_full="write"), AFTER)))

    assert {1} == {event.process for event in run.events if isinstance(event, AgentStart)}


def test_a_place_that_is_not_reached_is_reported(story: Story) -> None:
    """The turn ends as it would have."""
    reject = (ScriptedDecision(label="c1", verdict="reject"),)
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=reject, disk_full="write c1"), AFTER)))

    assert ["the turn did not come to 'write c1'"] == [
        event.why for event in run.events if isinstance(event, StepSkipped)
    ]
    assert ["paused", "finished", "finished"] == outcomes(run)


def test_a_system_that_cannot_fill_the_disk_says_so(monkeypatch: pytest.MonkeyPatch, story: Story) -> None:
    """The turn is played with space."""
    monkeypatch.setattr(AgentProcess, "can_cut_writes", False)
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, disk_full="write"), AFTER)))

    assert ["only Linux can cut off the writes of another process"] == [
        event.why for event in run.events if isinstance(event, StepSkipped)
    ]

"""Turns in which the process of the agent is stopped, over the turns of another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.sources import subprocess_factory
from pytest_approvals.journal.events import AgentStart, AgentStopped, AgentWoken, StepSkipped, ToolEnd, TurnEnd
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner import caller
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import (
    Call,
    Scenario,
    ScriptedDecision,
    ScriptedReply,
    TogetherStep,
    TurnStep,
    Variant,
)
from pytest_approvals.simulation.reference import ReferenceAgent
from pytest_approvals.simulation.reference.persistence import Store

Story = Callable[..., Scenario]

STORE = Variant(serialize="native.sqlite", source="rebuilt")
SEND = TurnStep(text="Go ahead.")
AFTER = TurnStep(text="And now?")
APPROVE = (ScriptedDecision(label="c1"),)
REPLIES = (
    ScriptedReply(calls=(Call(label="c1", id="c1", tool="pay", arguments={"amount": 5}),)),
    ScriptedReply(say="Done."),
    ScriptedReply(say="You are welcome."),
    ScriptedReply(say="Bye."),
)


class Queueing(ReferenceAgent):
    """Waits for the lock of its session instead of refusing the turn."""

    @contextmanager
    def exclusive_input(self) -> Iterator[None]:
        """Wait for the end of another turn."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Store, "hold", _hold)
            with super().exclusive_input():
                yield


@contextmanager
def _hold(self: Store) -> Iterator[None]:
    import fcntl

    fcntl.flock(self._lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(self._lock, fcntl.LOCK_UN)


def play(scenario: Scenario, adapter: type[ReferenceAgent] = ReferenceAgent) -> RecordedRun:
    """Play a story with a durable store, each agent in a process of its own."""
    source = InProcessSource(
        name="reference",
        adapter=adapter,
        facts=describe_adapter(adapter),
        elsewhere=subprocess_factory(adapter),
    )
    return asyncio.run(run_scenario(scenario, STORE, source, limit=RunLimits(seconds=30)))


def both(*places: str, second: Sequence[ScriptedDecision] = APPROVE) -> TogetherStep:
    """An approval whose process is stopped, and a second turn."""
    return TogetherStep(steps=(*(TurnStep(answers=APPROVE, stops=place) for place in places), TurnStep(answers=second)))


def outcomes(run: RecordedRun) -> list[str]:
    """How executions, processes and turns went on, in order."""
    found = [event for event in run.events if isinstance(event, (ToolEnd, AgentStopped, AgentWoken, TurnEnd))]
    return [getattr(event, "how", None) or getattr(event, "outcome", None) or event.kind for event in found]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("before c1", ["agent.stopped", "failed", "agent.woken", "returned", "finished"]),
        ("started c1", ["agent.stopped", "failed", "agent.woken", "returned", "finished"]),
        ("ended c1", ["agent.stopped", "failed", "agent.woken", "returned", "finished"]),
        ("model", ["returned", "agent.stopped", "failed", "agent.woken", "finished"]),
    ],
)
def test_a_process_is_stopped_over_the_turn_of_another_one(place: str, expected, story: Story) -> None:
    """It goes on when that turn has ended, where it was."""
    run = play(story(*REPLIES, caller=(SEND, both(place), AFTER)))

    assert ["paused", *expected, "finished"] == outcomes(run)
    assert [] == [*find_violations(run.events)]
    assert 1 == sum(len(call.executions) for call in read_history(run.events).calls)


def test_each_worker_has_a_process_of_its_own(story: Story) -> None:
    """The signal that stops one of them leaves the other one alone."""
    run = play(story(*REPLIES, caller=(SEND, both("before c1"))))

    assert [1, 1, 2] == [event.process for event in run.events if isinstance(event, AgentStart)]


def test_two_processes_can_be_stopped_over_a_third_one(story: Story) -> None:
    """They go on in the order in which they were stopped; one that is refused before that is not stopped."""
    run = play(story(*REPLIES, caller=(SEND, both("before c1", "before c1"), AFTER)))

    assert ["the turn did not come to 'before c1'"] == [
        event.why for event in run.events if isinstance(event, StepSkipped)
    ]
    assert 1 == len([event for event in run.events if isinstance(event, AgentWoken)])


def test_a_place_that_is_not_reached_is_reported(story: Story) -> None:
    """The turn ends as it would have, before the next one begins."""
    reject = (ScriptedDecision(label="c1", verdict="reject"),)
    steps = TogetherStep(steps=(TurnStep(answers=reject, stops="before c1"), TurnStep(text="And now?")))
    run = play(story(*REPLIES, caller=(SEND, steps)))

    assert ["the turn did not come to 'before c1'"] == [
        event.why for event in run.events if isinstance(event, StepSkipped)
    ]
    assert ["paused", "finished", "finished"] == outcomes(run)


def test_a_worker_that_waits_for_a_stopped_one_gets_its_turn(monkeypatch: pytest.MonkeyPatch, story: Story) -> None:
    """The stopped one goes on after a while, which no agent is blamed for."""
    monkeypatch.setattr(caller, "QUEUE_TIMEOUT", 0.1)
    steps = TogetherStep(steps=(TurnStep(answers=APPROVE, stops="before c1"), TurnStep(text="And now?")))
    run = play(story(*REPLIES, caller=(SEND, steps)), Queueing)

    assert ["paused", "agent.stopped", "agent.woken", "returned", "finished", "finished"] == outcomes(run)

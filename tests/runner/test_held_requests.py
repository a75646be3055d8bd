"""Agents whose requests are held by a process: they are saved while none waits, and only then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from pytest_approvals.journal.events import AgentStart, Header, StateRestored, StateSaved, TurnEnd
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.runner.run import RecordedRun
from pytest_approvals.scenario.model import (
    Call,
    CancelStep,
    Scenario,
    ScriptedDecision,
    ScriptedReply,
    TurnStep,
    Variant,
)
from pytest_approvals.simulation.reference import ReferenceAgent

Story = Callable[..., Scenario]
Played = Callable[..., RecordedRun]

SEND = TurnStep(text="Pay 5")
APPROVE = TurnStep(answers=(ScriptedDecision(label="c1"),))
AFTER = TurnStep(text="Thank you")
REPLIES = (
    ScriptedReply(calls=(Call(label="c1", id="c1", tool="pay", arguments={"amount": 5}),)),
    ScriptedReply(say="Paid."),
    ScriptedReply(say="You are welcome."),
)
STORED = Variant(serialize="native.sqlite")


class Holding(ReferenceAgent):
    """Says that its requests are in no saved state."""

    missing: ClassVar[Mapping[str, str]] = {**ReferenceAgent.missing, "stores_requests": "a process waits"}


def told(run: RecordedRun) -> list[str]:
    """How each turn ends, and where the state is saved and restored."""
    kinds: dict[type[Any], Callable[[Any], str]] = {
        TurnEnd: lambda event: event.outcome,
        StateSaved: lambda event: "saved",
        StateRestored: lambda event: "restored",
    }
    return [kinds[type(event)](event) for event in run.events if type(event) in kinds]


def test_the_state_is_saved_when_nothing_waits_any_more(story: Story, played: Played) -> None:
    """The agent that asked is the one that is answered, and the next turn has another one."""
    run = played(story(*REPLIES, caller=(SEND, APPROVE, AFTER)), STORED, agent=Holding)

    assert ["paused", "finished", "saved", "restored", "finished", "saved"] == told(run)
    assert ["built", "restored"] == [event.how for event in run.events if isinstance(event, AgentStart)]


def test_what_was_given_up_does_not_wait(story: Story, played: Played) -> None:
    """The state is saved after the cancellation."""
    replies = (REPLIES[0], ScriptedReply(say="All right."))
    run = played(story(*replies, caller=(SEND, CancelStep(), AFTER)), STORED, agent=Holding)

    assert ["paused", "saved", "restored"] == told(run)[:3]


@pytest.mark.parametrize(("agent", "holds"), [(Holding, True), (ReferenceAgent, False)])
def test_the_journal_says_that_requests_are_held(
    story: Story, played: Played, agent: type[ReferenceAgent], holds: bool
) -> None:
    """A paused turn that was not saved is no mistake of the journal then."""
    run = played(story(*REPLIES, caller=(SEND, APPROVE, AFTER)), Variant(serialize="native.sqlite"), agent=agent)

    assert [holds] == [event.holds_requests for event in run.events if isinstance(event, Header)]
    assert [] == find_violations(run.events)

"""Reasoning in runs: what agents are sent, what journals say, and which faults are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.journal.events import ModelAnswer, ModelRequest
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.scenario.model import Call, Scenario, ScriptedReply, Variant
from pytest_approvals.simulation.faults import load_fault

THINKS = ScriptedReply(
    thinks="First the rent.",
    calls=(
        Call(label="c1", id="c1", tool="pay", arguments={"amount": 5}),
        Call(label="c2", id="c2", tool="pay", arguments={"amount": 7}, thinks="Then the power."),
    ),
)
REPLIES = (THINKS, ScriptedReply(say="Done."))


@pytest.mark.parametrize("stream", [False, True])
def test_the_reference_agent_sends_reasoning_back_in_place(
    story: Callable[..., Scenario], played: Callable[..., Any], stream: bool
) -> None:
    """Each piece is right before its call, with what the provider recognizes it by."""
    run = played(story(*REPLIES), Variant(stream=stream, serialize="json", source="restored"))
    answer = next(event for event in run.events if isinstance(event, ModelAnswer))
    last = [event for event in run.events if isinstance(event, ModelRequest)][-1].items

    assert ["user", "reasoning", "call", "reasoning", "call", "result", "result"] == [item["kind"] for item in last]
    assert [None, "c2"] == [thought.get("before") for thought in answer.thoughts or ()]
    sent = [item["signature"] for item in last if item["kind"] == "reasoning"]
    assert [thought["signature"] for thought in answer.thoughts or ()] == sent


def test_a_transcript_has_the_reasoning_in_its_order(
    story: Callable[..., Scenario], played: Callable[..., Any]
) -> None:
    """What is shown encrypted only is said to be so."""
    hidden = ScriptedReply(thinks="Secret", redacted=True, say="Done.")
    text = Transcript.of(played(story(THINKS, hidden)).events).render()

    assert (
        '  model   thinks "First the rent."\n'
        "  model   calls c1 pay(amount=5)\n"
        '  model   thinks "Then the power."\n'
        "  model   calls c2 pay(amount=7)\n"
    ) in text
    assert '  model   thinks, encrypted\n  model   says "Done."\n' in text
    assert "Secret" not in text


@pytest.mark.parametrize(
    ("fault", "actual"),
    [
        ("ReasoningIsLostOnRestore", "it is missing"),
        ("ReasoningComesBehindItsCalls", "it is behind the call"),
        ("ReasoningIsTrimmed", "it says 'First the rent'"),
        ("SignatureIsLostInTheDump", "its signature is missing"),
        ("ReasoningOfParallelCallsIsCollected", "something else is between it and the call"),
        ("ReasoningIsKeptForOneRequest", None),
    ],
)
def test_the_check_says_what_is_wrong(
    story: Callable[..., Scenario], played: Callable[..., Any], fault: str, actual: str | None
) -> None:
    """Once for each call; what a fault does not touch is no failure."""
    run = played(story(*REPLIES), Variant(serialize="json", source="restored"), agent=load_fault(fault))
    verdicts = CHECKS["reasoning-kept"].judge(read_history(list(run.events)))

    if actual is None:
        assert {"pass"} == {verdict.status for verdict in verdicts}
    else:
        assert actual in [verdict.actual for verdict in verdicts]

"""A workflow around the agent: answers by id, checkpoints, and what goes on from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import approve, calls, decide, go_on, say
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]

VARIANTS = [
    Variant(),
    Variant(stream=True),
    Variant(serialize="copy", source="restored"),
    Variant(serialize="native.file", source="rebuilt"),
    Variant(serialize="native.file", source="restored", stream=True),
]
TWO = calls(*calls("pay", amount=5).calls, *calls("pay", amount=6).calls)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.id)
def test_an_approved_call_runs_once_and_is_told(play: Play, variant: Variant) -> None:
    """The request is the workflow's, and its answer reaches the agent, also from a checkpoint."""
    played = play(variant=variant, flavour="workflow")

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.id)
def test_a_partial_answer_leaves_the_other_request_open(play: Play, variant: Variant) -> None:
    """The workflow waits for the rest, and asks nobody meanwhile."""
    played = play(
        TWO,
        say("Done."),
        caller=["Go.", decide(approve("c2")), decide(approve("c1"))],
        variant=variant,
        flavour="workflow",
    )

    assert [["c1", "c2"], ["c1"], []] == played.requests
    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran


def test_going_on_takes_up_the_newest_checkpoint(play: Play) -> None:
    """A workflow that waits still waits, and has asked nobody."""
    played = play(caller=["Pay.", go_on(), decide(approve("c1"))], flavour="workflow")

    assert [["c1"], ["c1"], []] == played.requests
    assert 2 == len(played.inputs)


def test_an_unknown_id_is_refused(play: Play) -> None:
    """The workflow knows its requests, and the one that is open can still be answered."""
    played = play(
        text="""
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Done.
caller:
  - send: Pay.
  - decide: [{unknown: nobody-asked, verdict: approve}]
  - decide: {c1: approve}
""",
        flavour="workflow",
    )

    assert ["paused", "ValueError", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


def test_an_answer_after_the_end_is_refused(play: Play) -> None:
    """A workflow in which nothing is open takes no responses."""
    played = play(caller=["Pay.", decide(approve("c1")), decide(approve("c1"))], flavour="workflow")

    assert ["paused", "finished", "RuntimeError"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran

"""Forks of sessions of the Claude Agent SDK for TypeScript: the option `forks`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pytest_approvals import approve, calls, decide, reject, restore, save, say, send
from pytest_approvals.scenario.model import Variant

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Play = Callable[..., Any]

AGENT = "claude_agent_sdk_js"
FORKS = {"forks": True}
PAYS = calls("pay", amount=5)
DONE = say("Done.")

each_store = pytest.mark.parametrize(
    "variant",
    [
        Variant(serialize="copy", source="restored"),
        Variant(serialize="json", source="restored"),
        Variant(serialize="json", history="append", source="restored"),
        Variant(serialize="native.home", source="restored"),
    ],
    ids=lambda variant: variant.id,
)


@each_store
def test_a_deferred_call_is_answered_in_a_fork(play_elsewhere: Play, variant: Variant) -> None:
    """It runs once, and the next turn is one of a fork of the fork."""
    caller = [send("Pay 5."), decide(approve("c1")), send("Thank you.")]
    played = play_elsewhere(AGENT, PAYS, DONE, say("Welcome."), caller=caller, variant=variant, options=FORKS)

    assert ["paused", "finished", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


@each_store
def test_a_saved_session_stays_as_it_is(play_elsewhere: Play, variant: Variant) -> None:
    """What was rejected in one fork is approved in another one, whose model knows nothing of the rejection."""
    caller = [send("Pay 5."), save("asked"), decide(reject("c1")), restore("asked"), decide(approve("c1"))]
    played = play_elsewhere(AGENT, PAYS, DONE, caller=caller, variant=variant, options=FORKS)

    assert ["paused", "finished", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


@pytest.mark.parametrize(("options", "runs"), [(FORKS, 2), ({}, 1)])
def test_a_call_that_was_approved_runs_in_a_fork_again(
    play_elsewhere: Play, options: Mapping[str, Any], runs: int
) -> None:
    """A fork is a copy; a session of the CLI that goes on where it is knows that the call has run."""
    story = [send("Pay 5."), save("asked"), decide(approve("c1")), restore("asked"), decide(approve("c1"))]
    variant = Variant(serialize="native.home", source="restored")
    played = play_elsewhere(AGENT, PAYS, DONE, caller=story, variant=variant, options=options)

    assert runs == len(played.ran)

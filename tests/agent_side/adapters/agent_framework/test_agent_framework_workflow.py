"""A workflow around the agent: answers by id, checkpoints, and what goes on from them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals import approve, calls, decide, go_on, say
from pytest_approvals.agent_side.adapters.agent_framework.workflow import WorkflowSession
from pytest_approvals.agent_side.contract import Blueprint, Decision
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import FakeWorld, call, reply, tool

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


@pytest.fixture
def stored(tmp_path: Path) -> Blueprint:
    """What a workflow is made of whose checkpoints are files."""
    pay = tool("pay", "always", amount="integer")
    return Blueprint(tools=(pay,), serialize="native.file", directory=str(tmp_path))


def test_a_crashed_workflow_goes_on_at_its_newest_checkpoint(stored: Blueprint) -> None:
    """It is newer than what was saved: the request of the dead process is listed, and its answer runs the call."""

    async def story() -> list[tuple[str, dict[str, Any]]]:
        dead = WorkflowSession(FakeWorld([reply(None, call("pay", amount=5))], stored.tools), stored)
        saved = await dead.dump()
        await dead.turn("Pay.", (), stream=False)
        world = FakeWorld([reply("Done.")], stored.tools)
        alive = WorkflowSession(world, stored)
        await alive.recover([saved])
        (request,) = await alive.pending()
        await alive.turn(None, [Decision(verdict="approve", request=request)], stream=False)
        return world.ran

    assert [("pay", {"amount": 5})] == asyncio.run(story())


def test_a_workflow_that_died_before_any_checkpoint_begins_anew(stored: Blueprint) -> None:
    """Nothing waits in its folder, and a message begins."""

    async def story() -> tuple[int, str]:
        saved = await WorkflowSession(FakeWorld([], stored.tools), stored).dump()
        alive = WorkflowSession(FakeWorld([reply("Done.")], stored.tools), stored)
        await alive.recover([saved])
        waiting = len(await alive.pending())
        return waiting, (await alive.turn("Hello.", (), stream=False)).output

    assert (0, "Done.") == asyncio.run(story())

"""Agents that are run by tools of the reference agent."""

from __future__ import annotations

import asyncio

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Finished, Parameter, ToolSpec

TOOLS = (
    ToolSpec(name="ask", parameters={"input": Parameter()}, runs="helper"),
    ToolSpec(name="delete", parameters={"path": Parameter()}, approval="always", agent="helper"),
    ToolSpec(name="delete", parameters={"path": Parameter()}, approval="always"),
)


@pytest.fixture
def nested(kit):
    """A bench where two helpers run side by side, each with one gated call."""
    outer = kit.calls(kit.call("o1", "ask", {"input": "one"}), kit.call("o2", "ask", {"input": "two"}))
    bench = kit.Bench(outer, kit.say("done"), tools=TOOLS)
    bench.world.replies["helper"] = [
        kit.calls(kit.call("c1", "delete", "a")),
        kit.calls(kit.call("c1", "delete", "b")),
        kit.say("helped"),
        kit.say("helped too"),
    ]
    bench.send("go")
    return bench


def test_requests_of_nested_agents_surface_with_their_name(nested):
    """Equal call ids in two helpers make two requests."""
    shown = [(request.id[:5], request.agent, request.call_id, request.arguments) for request in nested.pending()]

    assert [
        ("req-1", "helper", "c1", {"path": "a"}),
        ("req-2", "helper", "c1", {"path": "b"}),
    ] == shown


@pytest.mark.parametrize("restart", [False, True])
def test_a_nested_agent_goes_on_where_it_stopped(nested, kit, restart):
    """Its conversation does not begin anew, also after a restart, and the outer model reads what it said."""
    if restart:
        nested.restart()
    outcome = nested.decide(*(kit.answer(request) for request in nested.pending()))

    assert Finished(output="done") == outcome
    assert ["delete(a)", "delete(b)"] == nested.world.ran
    assert ["main", "helper", "helper", "helper", "helper", "main"] == nested.world.asked_models
    assert ["user", "call", "result"] == [item.kind for item in nested.world.inputs[3]]
    assert ["helped", "helped too"] == nested.world.told()


def test_one_of_two_nested_agents_can_be_answered(nested, kit):
    """The other one's request stays open, and the outer model is not asked."""
    first, second = nested.pending()
    nested.decide(kit.answer(first))

    assert [second] == list(nested.pending())
    assert ["main", "helper", "helper", "helper"] == nested.world.asked_models


def test_a_standing_decision_of_a_nested_agent_stays_there(nested, kit):
    """A tool of the same name that the outer agent has is asked about."""
    nested.world.replies["main"].insert(0, kit.calls(kit.call("c5", "delete", "z")))
    outcome = nested.decide(kit.answer(nested.pending()[0], "always"))

    assert ["delete(a)", "delete(b)"] == nested.world.ran
    assert [("main", "c5")] == [(request.agent, request.call_id) for request in outcome.requests]


def test_a_new_message_ends_nested_agents_that_wait(nested):
    """They are not gone on with; the outer model is told, and reads the message."""
    nested.send("stop")

    assert [] == list(nested.pending())
    assert ["main", "helper", "helper", "main"] == nested.world.asked_models
    assert ["result", "result", "user"] == [item.kind for item in nested.world.inputs[-1]][-3:]


def test_an_approval_that_comes_with_a_message_counts(nested, kit):
    """The helper that got it goes on; the other one is ended, and the outer model reads both and the message."""
    first, _ = nested.pending()
    nested.send("and hurry", kit.answer(first))

    assert ["delete(a)"] == nested.world.ran
    assert [] == list(nested.pending())
    assert ["main", "helper", "helper", "helper", "main"] == nested.world.asked_models
    assert "helped" == nested.world.told()[0]


def test_a_failing_nested_model_loses_nothing_of_its_sibling(nested, kit):
    """The turn fails when all have ended; the retry asks only the model that failed."""
    nested.world.replies["helper"][0] = ModelDown(500)
    decisions = [kit.answer(request) for request in nested.pending()]
    with pytest.raises(ModelDown):
        nested.decide(*decisions)
    nested.world.replies["helper"] = [kit.say("recovered")]

    assert Finished(output="done") == nested.decide()
    assert ["delete(a)", "delete(b)"] == nested.world.ran
    assert ["recovered", "helped too"] == nested.world.told()


def test_gated_agent_tools_are_asked_about_before_their_agents_begin(kit):
    """The agent's model is first asked when the outer call is approved."""
    gated = ToolSpec(name="ask", parameters={"input": Parameter()}, runs="helper", approval="always")
    bench = kit.Bench(kit.calls(kit.call("o1", "ask", {"input": "one"})), kit.say("done"), tools=(gated,))
    bench.world.replies["helper"] = [kit.say("helped")]
    outcome = bench.send("go")

    assert ["main"] == bench.world.asked_models
    assert Finished(output="done") == bench.decide(kit.answer(outcome.requests[0]))


def test_sessions_share_nothing(nested, kit):
    """A second session on the same agent has its own state."""
    other = asyncio.run(nested.agent.another_session(nested.world))

    assert () == asyncio.run(other.pending())
    assert 2 == len(nested.pending())

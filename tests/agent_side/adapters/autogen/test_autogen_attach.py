"""A user's own agents: discovery, runs and clean-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.tools import AgentTool
from autogen_ext.models.replay import ReplayChatCompletionClient

from pytest_approvals.agent_side.adapters.autogen import FLAVOURS
from pytest_approvals.agent_side.adapters.autogen.model import MODEL_INFO
from pytest_approvals.agent_side.contract import Attachment, Blueprint, Finished, Unsupported
from pytest_approvals.testing import AdapterSession, FakeWorld, approve, call, reject, reply

Attach = Callable[..., AdapterSession]
paid: list[int] = []


def pay(amount: int) -> str:
    """Pays."""
    paid.append(amount)
    return f"really paid {amount}"


def own(model: Any = None) -> AssistantAgent:
    """A person's agent; its own model has nothing to say."""
    paid.clear()
    model = model or ReplayChatCompletionClient([], model_info=MODEL_INFO)
    return AssistantAgent("bank", model, tools=[pay], max_tool_iterations=5)


PAY = reply(None, call("pay", amount=5))


@pytest.mark.parametrize("subject", [own, own()], ids=["factory", "agent"])
def test_a_gated_tool_waits_and_then_runs_for_real(attach: Attach, subject: Any) -> None:
    """The tool's own body runs once, after the approval."""
    story = attach(subject, PAY, reply("Done."), gated=frozenset({"pay"}))
    (request,) = story.paused("Pay.")

    assert ([], "pay", {"amount": 5}) == (story.world.ran, request.tool, request.arguments)
    assert "Done." == story.finished(None, approve(request))
    assert [("pay", {"amount": 5})] == story.world.ran


def test_a_rejected_tool_does_not_run(attach: Attach) -> None:
    """The model is told why."""
    story = attach(own, PAY, reply("Done."), gated=frozenset({"pay"}))
    (request,) = story.paused("Pay.")
    story.finished(None, reject(request))

    assert [] == paid


def test_a_tool_that_is_not_named_runs_at_once(attach: Attach) -> None:
    """The framework marks no tools."""
    story = attach(own, PAY, reply("Done."))

    assert Finished(output="Done.") == story.turn("Pay.")
    assert [5] == paid


def test_a_stub_stands_for_a_tool(attach: Attach) -> None:
    """Its body is not run."""
    story = attach(own, PAY, reply("Done."), results={"pay": "not really"})
    story.turn("Pay.")

    assert ([], [("pay", {"amount": 5})]) == (paid, story.world.ran)


def test_tools_of_agents_behind_tools_are_found(attach: Attach) -> None:
    """They are told with the name of their agent."""
    model = ReplayChatCompletionClient([], model_info=MODEL_INFO)
    boss = AssistantAgent("boss", model, tools=[AgentTool(own(model))])
    story = attach(boss)

    assert [("bank", "main", "bank"), ("pay", "bank", None)] == [
        (spec.name, spec.agent, spec.runs) for spec in story.agent.tools()
    ]


def test_the_probes_are_taken_out_again(attach: Attach) -> None:
    """The agent has its own model and its own workbench afterwards."""
    agent = own()
    before = agent._model_client, agent._workbench
    story = attach(agent)
    story.wait(story.agent.close())

    assert before == (agent._model_client, agent._workbench)


def test_what_is_no_agent_is_refused() -> None:
    """It shows neither model nor tools."""
    blueprint = Blueprint(attachment=Attachment(subject=lambda model: object()))

    with pytest.raises(Unsupported, match="not an AssistantAgent"):
        FLAVOURS[""](FakeWorld((), ()), blueprint)

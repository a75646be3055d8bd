"""A user's own agents: discovery, runs, and that they stay unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import Agent, BaseChatClient, ToolApprovalMiddleware, tool

from pytest_approvals.agent_side.adapters.agent_framework.attach import attach_agents
from pytest_approvals.agent_side.contract import Attachment, Parameter, Unsupported
from pytest_approvals.testing import AdapterSession, approve, call, reject, reply

Attach = Callable[..., AdapterSession]

REFUNDS = reply(None, call("refund", order=42))
DONE = reply("Done.")


class Client(BaseChatClient):
    """A user's own client, which must not be asked."""

    def _inner_get_response(self, **_: Any) -> Any:
        raise AssertionError("the real model is asked")


@tool(approval_mode="always_require")
def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


@tool
async def look(name: str, limit: int = 3) -> str:
    """Looks something up."""
    return f"{name} {limit}"


@tool
def send_mail(to: str) -> str:
    """Sends a mail."""
    raise AssertionError(f"a mail to {to}")


def make_agent(client: Any = None, **more: Any) -> Agent:
    return Agent(
        client=client or Client(), name="desk", instructions="Be brief.", tools=[refund, look, send_mail], **more
    )


def test_tools_are_found_as_they_are_declared() -> None:
    """Names, parameters and gates come from the user's own tools."""
    specs = {spec.name: spec for spec in attach_agents(Attachment(subject=make_agent())).tools}

    assert ["refund", "look", "send_mail"] == list(specs)
    assert {"order": Parameter(type="integer")} == specs["refund"].parameters
    assert Parameter(type="integer", required=False, default=3) == specs["look"].parameters["limit"]
    assert ["always", "never", "never"] == [spec.approval for spec in specs.values()]


@pytest.mark.parametrize("subject", [make_agent(), make_agent], ids=["agent", "factory"])
def test_a_gated_tool_runs_for_real_after_its_approval(attach: Attach, subject: Any) -> None:
    """The scripted model replaces the user's, and their body runs inside of the world."""
    story = attach(subject, REFUNDS, DONE)
    (request,) = story.paused("Refund it.")
    assert "Done." == story.finished(None, approve(request))

    assert ["refund"] == story.world.real
    assert [("refund", {"order": 42})] == story.world.ran


def test_a_rejected_tool_does_not_run(attach: Attach) -> None:
    """The person's gate is theirs."""
    story = attach(make_agent(), REFUNDS, DONE)
    (request,) = story.paused("Refund it.")
    story.finished(None, reject(request))

    assert [] == story.world.ran


def test_a_stub_replaces_the_body(attach: Attach) -> None:
    """No mail is sent."""
    story = attach(make_agent(), reply(None, call("send_mail", to="ann")), DONE, results={"send_mail": "sent"})
    story.finished("Write to Ann.")

    assert ([], [("send_mail", {"to": "ann"})]) == (story.world.real, story.world.ran)


def test_a_body_that_awaits_runs_with_its_defaults(attach: Attach) -> None:
    """What the model did not say is filled in by the function itself."""
    story = attach(make_agent(), reply(None, call("look", name="ann")), DONE)
    story.finished("Look.")

    assert ["look"] == story.world.real


def test_the_persons_middleware_stays(attach: Attach) -> None:
    """Rules of theirs approve what they approve."""
    approving = ToolApprovalMiddleware(auto_approval_rules=[lambda call: call.name == "refund"])
    story = attach(make_agent(middleware=[approving]), REFUNDS, DONE, flavour="approval_middleware")
    story.finished("Refund it.")

    assert ["refund"] == story.world.real


def test_the_persons_agent_stays_as_it_is(attach: Attach) -> None:
    """Client and tools are those that were there before."""
    agent = make_agent()
    before = agent.client, list(agent.default_options["tools"])
    attach(agent, DONE).finished("Hello.")

    assert before == (agent.client, list(agent.default_options["tools"]))


def test_an_agent_with_agents_for_tools_needs_a_factory() -> None:
    """An inner agent has a model of its own, which nothing on the outside leads to."""
    inner = Agent(client=Client(), name="helper", description="Helps.")
    outer = Agent(client=Client(), name="desk", tools=[inner.as_tool()])

    with pytest.raises(Unsupported, match="factory"):
        attach_agents(Attachment(subject=outer))


def test_a_restart_needs_nothing_but_the_session(attach: Attach) -> None:
    """A session that was read from JSON goes on with a new copy of the agent."""
    story = attach(make_agent, REFUNDS, DONE, serialize="json")
    story.paused("Refund it.")
    story.restart()
    (request,) = story.pending()
    story.finished(None, approve(request))

    assert ["refund"] == story.world.real

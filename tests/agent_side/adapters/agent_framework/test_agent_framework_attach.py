"""A user's own agents: discovery, runs, and that they stay unchanged."""

from __future__ import annotations

import inspect
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


def make_desk(client: Any = None) -> Agent:
    helper = Agent(client=client or Client(), name="helper", description="Helps.", tools=[look])
    return Agent(client=client or Client(), name="desk", tools=[helper.as_tool(arg_name="task"), refund])


@pytest.mark.parametrize("subject", [make_desk(), make_desk], ids=["agent", "factory"])
def test_an_agent_that_is_a_tool_has_a_client_of_its_own(attach: Attach, subject: Any) -> None:
    """Its model is the scripted one, and its tools are found and run as those of the main agent."""
    delegation = reply(None, call("helper", task="Look."))
    story = attach(subject, delegation, reply(None, call("look", name="ann")), reply("Seen."), DONE)

    assert ["main", "helper", "main"] == [spec.agent for spec in story.agent.tools()]
    assert "Done." == story.finished("Go.")
    assert ["helper", "look"] == story.world.real


def test_an_inner_agent_stays_as_it_is() -> None:
    """The tool of the user's agent leads to the user's agent still."""
    desk = make_desk()
    func = desk.default_options["tools"][0].func
    helper = inspect.getclosurevars(func).nonlocals["self"]
    before = helper.client, list(helper.default_options["tools"])
    attach_agents(Attachment(subject=desk))

    assert func is desk.default_options["tools"][0].func
    assert before == (helper.client, list(helper.default_options["tools"]))


def test_a_tool_that_is_another_kind_of_agent_is_refused() -> None:
    """Nothing leads to the models of an agent without a client."""
    desk = make_desk()
    tool = desk.default_options["tools"][0]
    cell = dict(zip(tool.func.__code__.co_freevars, tool.func.__closure__, strict=True))["self"]
    cell.cell_contents = object()

    with pytest.raises(Unsupported, match="whose model is not known"):
        attach_agents(Attachment(subject=desk))


def test_a_restart_needs_nothing_but_the_session(attach: Attach) -> None:
    """A session that was read from JSON goes on with a new copy of the agent."""
    story = attach(make_agent, REFUNDS, DONE, serialize="json")
    story.paused("Refund it.")
    story.restart()
    (request,) = story.pending()
    story.finished(None, approve(request))

    assert ["refund"] == story.world.real

"""A user's own agents: discovery, runs and clean-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.genai import types

from pytest_approvals.agent_side.adapters.google_adk.attach import attach_agents
from pytest_approvals.agent_side.contract import Attachment, Unsupported
from pytest_approvals.testing import AdapterSession, approve, call, reject, reply

Attach = Callable[..., AdapterSession]

REFUNDS = reply(None, call("refund", order=42))
DONE = reply("Done.")


def refund(order: int, tool_context: ToolContext) -> str:
    """Refunds an order."""
    return f"refunded {order} for {tool_context.function_call_id}"


async def look(name: str, limit: int = 3) -> str:
    """Looks something up."""
    return f"{name} {limit}"


def send_mail(to: str) -> str:
    """Sends a mail."""
    raise RuntimeError(f"a mail to {to}")


class Wipe(BaseTool):
    """A tool of a class of its own."""

    def _get_declaration(self) -> types.FunctionDeclaration:
        disk = types.Schema(type=types.Type.OBJECT, properties={"disk": types.Schema(type=types.Type.STRING)})
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters=disk)

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        return True

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return f"wiped {args['disk']}"


def make_agent(model: Any = "gemini-3.5-flash", **more: Any) -> LlmAgent:
    tools = [FunctionTool(refund, require_confirmation=True), look, send_mail, Wipe(name="wipe", description="Wipes.")]
    return LlmAgent(name="clerk", model=model, tools=tools, **more)


def make_app(model: Any = "gemini-3.5-flash") -> App:
    return App(name="desk", root_agent=make_agent(model))


def make_runner(model: Any = "gemini-3.5-flash") -> Runner:
    return Runner(app_name="desk", agent=make_agent(model), session_service=InMemorySessionService())


SUBJECTS = (make_agent, make_agent(), make_app(), make_runner())


class TestFinding:
    def test_what_the_framework_marks_is_found(self, attach: Attach) -> None:
        """Every tool is listed with its parameters, and with whether the framework gates it."""
        found = {spec.name: spec for spec in attach(make_agent()).agent.tools()}

        assert {"refund": "always", "look": "never", "send_mail": "never", "wipe": "never"} == {
            name: spec.approval for name, spec in found.items()
        }
        assert (["order"], ["disk"]) == (list(found["refund"].parameters), list(found["wipe"].parameters))
        assert (False, 3) == (found["look"].parameters["limit"].required, found["look"].parameters["limit"].default)

    def test_the_tools_of_sub_agents_are_found(self, attach: Attach) -> None:
        """They are listed under the agent that has them."""
        helper = LlmAgent(name="helper", model="gemini-3.5-flash", tools=[look])
        found = attach(LlmAgent(name="desk", model="gemini-3.5-flash", sub_agents=[helper])).agent.tools()

        assert [("transfer_to_agent", "main"), ("look", "helper"), ("transfer_to_agent", "helper")] == [
            (spec.name, spec.agent) for spec in found
        ]

    def test_an_agent_without_a_model_is_refused(self) -> None:
        """The person is told what to hand over instead."""
        with pytest.raises(Unsupported, match="hand over an `LlmAgent`"):
            attach_agents(Attachment(subject=BaseAgent(name="nobody")), resumable=False)


class TestRunning:
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize(
        "subject", [make_agent, make_agent(), make_app(), make_runner()], ids=lambda one: type(one).__name__
    )
    def test_a_real_tool_runs_after_its_approval(self, attach: Attach, subject: Any, stream: bool) -> None:
        """The scripted model replaces theirs; their tool's own result reaches it."""
        session = attach(subject, REFUNDS, DONE)
        (request,) = session.paused("Refund 42.", stream=stream)

        assert "Done." == session.finished(None, approve(request), stream=stream)
        assert ([("refund", {"order": 42})], ["refunded 42 for c1"]) == (session.world.ran, session.world.told())

    def test_a_rejected_call_does_not_reach_the_real_tool(self, attach: Attach) -> None:
        """The world sees no run at all."""
        session = attach(make_agent(), REFUNDS, DONE)
        session.finished(None, reject(session.paused("Refund 42.")[0], "over the limit"))

        assert [] == session.world.ran

    def test_a_tool_of_a_class_of_its_own_is_driven(self, attach: Attach) -> None:
        """It asks as it says, and runs for real."""
        session = attach(make_agent(), reply(None, call("wipe", disk="a")), DONE)
        session.finished(None, approve(session.paused("Wipe a.")[0]))

        assert (["wipe"], ["wiped a"]) == (session.world.real, session.world.told())

    def test_a_stub_stands_in_for_a_tool(self, attach: Attach) -> None:
        """Its body is not entered."""
        mail = reply(None, call("send_mail", to="a@b.invalid"))
        session = attach(make_agent(), mail, DONE, results={"send_mail": "sent"})
        session.finished("Send a mail.")

        assert (["sent"], []) == (session.world.told(), session.world.real)

    def test_the_model_is_offered_the_persons_tools(self, attach: Attach) -> None:
        """The probes have the names of the tools that they replace."""
        offered: list[Any] = []
        session = attach(make_agent(), DONE)
        ask = session.world.model

        async def model(items: Any, *, tools: Any = (), **more: Any) -> Any:
            offered.append(list(tools))
            return await ask(items, tools=tools, **more)

        session.world.model = model
        session.finished("Hello.")

        assert [["refund", "look", "send_mail", "wipe"]] == offered

    def test_the_session_goes_on_from_a_store(self, attach: Attach) -> None:
        """Another agent object restores the session from the file."""
        session = attach(make_agent, REFUNDS, DONE, serialize="native.sqlite")
        session.paused("Refund 42.")
        session.restart()
        session.finished(None, approve(session.pending()[0]))

        assert ["refund"] == session.world.real


class TestLeaving:
    def test_the_agent_is_left_as_it_was(self, attach: Attach) -> None:
        """Model and tools are their own again when the session is closed."""
        agent = make_agent()
        model, tools = agent.model, list(agent.tools)
        session = attach(agent, DONE)
        session.finished("Hello.")
        session.wait(session.agent.close())

        assert (model, tools) == (agent.model, agent.tools)

    def test_a_persons_own_session_service_is_used(self, attach: Attach) -> None:
        """The session is in their service."""
        runner = make_runner()
        attach(runner, REFUNDS).paused("Refund 42.")

        assert {"desk"} == set(runner.session_service.sessions)

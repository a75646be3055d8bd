"""A user's own agents: discovery, runs and clean-up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeToolCallEvent, HookProvider
from strands.models import Model
from strands.vended_interventions.hitl import HumanInTheLoop

from pytest_approvals.agent_side.contract import Unsupported
from pytest_approvals.testing import AdapterSession, approve, call, reject, reply

Attach = Callable[..., AdapterSession]

REFUNDS = reply(None, call("refund", order=42))
DONE = reply("Done.")


class Real(Model):
    """A user's own model."""

    def update_config(self, **_: Any) -> None:
        """There is nothing to configure."""

    def get_config(self) -> dict[str, Any]:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": "The real model answers."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


@tool
def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


@tool
def look(name: str, limit: int = 3) -> str:
    """Looks something up."""
    return f"{name} {limit}"


@tool
def send_mail(to: str) -> str:
    """Sends a mail."""
    raise RuntimeError(f"a mail to {to}")


@tool(context=True)
def wipe(disk: str, tool_context: ToolContext) -> str:
    """Wipes a disk, and asks by itself."""
    return f"wiped {disk}" if tool_context.interrupt("wipe", reason={"disk": disk}) == "y" else "kept"


class Guide(HookProvider):
    """The gate of the guide."""

    def register_hooks(self, registry: Any, **_: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.approve)

    def approve(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == "refund":
            approval = event.interrupt("shop-approval", reason={"order": event.tool_use["input"]["order"]})
            if approval.lower() != "y":
                event.cancel_tool = "User denied permission to refund"


def make_agent(model: Any = None, **more: Any) -> Agent:
    given: dict[str, Any] = {"hooks": [Guide()], "callback_handler": None} | more
    return Agent(model=model or Real(), tools=[refund, look, send_mail, wipe], **given)


class TestFinding:
    def test_the_tools_are_found(self, attach: Attach) -> None:
        """Every tool is listed with its parameters; the gates of a user's own hook are unknown."""
        found = {spec.name: spec for spec in attach(make_agent()).agent.tools()}

        assert {"refund", "look", "send_mail", "wipe"} == set(found)
        assert {"never"} == {spec.approval for spec in found.values()}
        assert ("integer", 3) == (found["refund"].parameters["order"].type, found["look"].parameters["limit"].default)

    def test_what_the_framework_marks_is_found(self, attach: Attach) -> None:
        """`HumanInTheLoop` asks about all tools that it does not allow."""
        gate = HumanInTheLoop(allowed_tools=["look", "wipe"])
        found = {spec.name: spec.approval for spec in attach(make_agent(interventions=[gate])).agent.tools()}

        assert {"refund": "always", "look": "never", "send_mail": "always", "wipe": "never"} == found


class TestRunning:
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("factory", [True, False], ids=["factory", "agent"])
    def test_a_real_tool_runs_after_its_approval(self, attach: Attach, factory: bool, stream: bool) -> None:
        """The scripted model replaces theirs; the question names the call, independent of its reason."""
        session = attach(make_agent if factory else make_agent(), REFUNDS, DONE)
        (request,) = session.paused("Refund 42.", stream=stream)

        assert ("c1", "refund", {"order": 42}) == (request.call_id, request.tool, request.arguments)
        assert "Done." == session.finished(None, approve(request), stream=stream)
        assert ([("refund", {"order": 42})], ["refunded 42"]) == (session.world.ran, session.world.told())

    def test_a_rejected_call_does_not_reach_the_real_tool(self, attach: Attach) -> None:
        """Their gate reads a plain no."""
        session = attach(make_agent(), REFUNDS, DONE)
        session.finished(None, reject(session.paused("Refund 42.")[0]))

        assert ([], ["User denied permission to refund"]) == (session.world.ran, session.world.told())

    def test_the_frameworks_own_gate_is_answered(self, attach: Attach) -> None:
        """Its prompt names the tool and its input."""
        session = attach(make_agent(hooks=[], interventions=[HumanInTheLoop()]), REFUNDS, DONE)
        (request,) = session.paused("Refund 42.")
        session.finished(None, approve(request))

        assert ("refund", {"order": 42}, ["refund"]) == (request.tool, request.arguments, session.world.real)

    def test_a_tool_that_asks_by_itself_is_entered_twice(self, attach: Attach) -> None:
        """The framework starts a body again that waits for an answer, and so the world is told."""
        session = attach(make_agent(), reply(None, call("wipe", disk="a")), DONE)
        (request,) = session.paused("Wipe a.")
        session.finished(None, approve(request))

        assert (2, ["wiped a"]) == (len(session.world.ran), session.world.told())

    def test_a_stub_stands_in_for_a_tool(self, attach: Attach) -> None:
        """Its body is not entered."""
        mail = reply(None, call("send_mail", to="a@b.invalid"))
        session = attach(make_agent(), mail, DONE, results={"send_mail": "sent"})
        session.finished("Send a mail.")

        assert (["sent"], []) == (session.world.told(), session.world.real)

    def test_an_agent_that_a_tool_runs_is_scripted_too(self, attach: Attach) -> None:
        """Its requests surface with the call that they are about."""
        inner = make_agent(name="inner")
        outer = Agent(model=Real(), tools=[inner.as_tool()], callback_handler=None)
        delegated = reply(None, call("inner", "o1", input="Refund 42."))
        session = attach(outer, delegated, REFUNDS, DONE, DONE)
        (request,) = session.paused("Go.")
        session.finished(None, approve(request))

        assert (("refund", "c1"), ["refund"]) == ((request.tool, request.call_id), session.world.real)

    def test_a_factorys_agent_goes_on_from_json(self, attach: Attach) -> None:
        """Another agent object takes the snapshot up."""
        session = attach(make_agent, REFUNDS, DONE, serialize="json")
        session.paused("Refund 42.")
        session.restart()
        session.finished(None, approve(session.pending()[0]))

        assert ["refund"] == session.world.real

    def test_a_store_cannot_be_given_to_an_agent_that_exists(self, attach: Attach) -> None:
        """The person is told what to do instead."""
        session = attach(make_agent(), DONE, serialize="native.files")

        with pytest.raises(Unsupported, match="give yours one"):
            session.turn("Hello.")


class TestLeaving:
    def test_the_agent_is_left_as_it_was(self, attach: Attach) -> None:
        """Model and tools are their own again when the session is closed."""
        agent = make_agent()
        before = dict(agent.tool_registry.registry)
        session = attach(agent, DONE)
        session.finished("Hello.")
        session.wait(session.agent.close())
        result = asyncio.run(agent.invoke_async("Hello."))

        assert "The real model answers.\n" == str(result)
        assert before == agent.tool_registry.registry

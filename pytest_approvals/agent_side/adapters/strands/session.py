"""One session: an agent with its messages and interrupts, and the flavours of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from ...contract import Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata

if TYPE_CHECKING:
    from .agents import AgentGraph
    from .requests import DecisionWriter


class Session(Agent):
    """
    A session is one agent object; flavours differ in where a gate asks.

    Attributes:
        gate: What gates the tools of a built agent, by its name in `crew.GATES`.
    """

    gate: ClassVar[str]
    framework = "strands-agents"
    wire_rules = "chat"
    issues = metadata.ISSUES
    stores = metadata.STORES
    protocols = metadata.PROTOCOLS
    packages = ("strands",)
    connects = True

    def __init__(self, world: World, blueprint: Blueprint, *, beside: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._crew: AgentGraph = beside._crew if beside else self._crew_of(blueprint)
        self._crew.sessions.add(id(self))
        self._session = ""
        self._manager: Any = None
        self._agent: Any = None

    def _crew_of(self, blueprint: Blueprint) -> AgentGraph:
        if blueprint.attachment is not None:
            from .attach import attach_agents

            return attach_agents(blueprint.attachment)
        from .agents import GATES, build_agents

        return build_agents(blueprint, GATES[self.gate])

    def _form(self) -> DecisionWriter:
        """How a decision is said to the gate."""
        from .requests import write_detailed, write_word

        return write_word if self.blueprint.attachment is not None else write_detailed

    def _ready(self) -> Any:
        """Gives the agent, which restores itself from its session where it is made."""
        if self._agent is None:
            from .state import build_session_manager

            self._session = self._session or uuid4().hex
            self._manager = build_session_manager(self.blueprint, self._session)
            self._agent = self._crew.main(self._manager)
        return self._agent

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .model import stream_turn

        with use_world(self.world), stream_turn(stream):
            agent = self._ready()
            given = self._input(text, decisions)
            if not stream:
                return self._outcome(agent, await agent.invoke_async(given, **self._crew.options))
            return self._outcome(agent, await self._streamed(agent, given))

    def _input(self, text: str | None, decisions: Sequence[Decision]) -> Any:
        from .requests import write_decisions

        if text is not None and not decisions:
            return text
        return [*write_decisions(decisions, self._form()), *([] if text is None else [{"text": text}])]

    async def _streamed(self, agent: Any, given: Any) -> Any:
        from .messages import read_event, read_interrupts

        result: Any = None
        async for event in agent.stream_async(given, **self._crew.options):
            for what, told in read_event(event):
                self.world.shown(what, **told)
            for interrupt in read_interrupts(event):
                self.world.shown("request", id=interrupt.id)
            result = event.get("result", result)
        self.world.shown("end")
        return result

    def _outcome(self, agent: Any, result: Any) -> Outcome:
        from .messages import text_of

        if result.stop_reason == "interrupt":
            return Paused(requests=self._requests(agent, result.interrupts), text=text_of(result.message))
        if result.structured_output is not None:
            return Finished(output=result.structured_output.model_dump())
        # A limit ends the turn with the results of the calls, which are no words of the agent.
        return Finished(output=text_of(result.message) if result.message["role"] == "assistant" else None)

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .state import open_interrupts

        agent = self._ready()
        return self._requests(agent, open_interrupts(agent))

    def _requests(self, agent: Any, interrupts: Iterable[Any]) -> tuple[Request, ...]:
        from .requests import read_requests
        from .state import interrupted_calls

        return read_requests(interrupts, self._crew.tools, interrupted_calls(agent))

    async def trim(self, keep: int) -> None:
        """Gives the agent's `SlidingWindowConversationManager` such a window for once, and saves what it did."""
        agent = self._ready()
        window = agent.conversation_manager
        before, window.window_size = window.window_size, keep
        window.apply_management(agent)
        window.window_size = before
        if self._manager is not None:
            self._manager.sync_agent(agent)

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Gives a snapshot of the session, or for a store the reference into it."""
        from .state import write_reference, write_state

        agent = self._ready()
        if self._manager is not None:
            return await write_reference(agent, self._manager, self._session)
        return json.dumps(write_state(agent))

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        from .state import follow_reference, restore_state

        saved = json.loads(parts[-1])
        if not self.blueprint.serialize.startswith("native."):
            restore_state(self._ready(), saved)
            return
        self._session = saved["session"]
        await follow_reference(self._ready(), self._manager, saved)

    async def copy_from(self, other: Agent) -> None:
        """Takes up an in-memory snapshot of *other*."""
        from .state import copy_state

        assert isinstance(other, Session)
        copy_state(other._ready(), self._ready())

    async def another_session(self, world: World) -> Agent:
        """Gives an agent object of its own, which is what a session is, on the same model, tools and gate."""
        if self.blueprint.attachment is not None:
            raise Unsupported("sessions", "a person's own agent object is one session")
        return type(self)(world, self.blueprint, beside=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._crew.tools

    async def close(self) -> None:
        """See `Agent.close`."""
        self._agent = None
        self._crew.let_go(self)


class HookSession(Session):
    """A `BeforeToolCallEvent` hook asks, and the calls of a reply run concurrently."""

    gate = "hook"
    capabilities = metadata.claimed(metadata.MISSING)
    missing = metadata.MISSING


class SequentialSession(Session):
    """A `BeforeToolCallEvent` hook asks, and the calls of a reply run one after the other."""

    gate = "sequential"
    capabilities = metadata.claimed(metadata.SEQUENTIAL_MISSING)
    missing = metadata.SEQUENTIAL_MISSING


class ToolSession(Session):
    """The tools ask with `tool_context.interrupt` from within."""

    gate = "tool"
    capabilities = metadata.claimed(metadata.TOOL_MISSING)
    missing = metadata.TOOL_MISSING


class MiddlewareSession(Session):
    """A middleware around the run of a tool asks."""

    gate = "middleware"
    capabilities = metadata.claimed(metadata.MISSING)
    missing = metadata.MISSING


class HandlerSession(Session):
    """An intervention handler asks with `event.interrupt`, and an error of it does not stop the agent."""

    gate = "handler"
    capabilities = metadata.claimed(metadata.HANDLER_MISSING)
    missing = metadata.HANDLER_MISSING


class InterventionSession(Session):
    """`HumanInTheLoop` asks."""

    gate = "intervention"
    capabilities = metadata.claimed(metadata.INTERVENTION_MISSING)
    missing = metadata.INTERVENTION_MISSING

    def _form(self) -> DecisionWriter:
        from .requests import write_word

        return write_word

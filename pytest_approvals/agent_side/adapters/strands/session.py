"""Sessions: an agent with its messages and interrupts, and the flavours of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from ...contract import RENAMED, Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata

if TYPE_CHECKING:
    from .agents import AgentGraph
    from .requests import DecisionWriter


class Session(Agent):
    """One agent object; flavours differ in where a gate asks.

    Attributes:
        gate: The gate of a built agent's tools, by its name in `agents.GATES`.
    """

    gate: ClassVar[str]
    framework = "strands-agents"
    wire_rules = "chat"
    issues = metadata.ISSUES
    stores = metadata.STORES
    renames = RENAMED
    recovery = metadata.RECOVERY
    attached_missing = metadata.ATTACHED_MISSING
    protocols = metadata.PROTOCOLS
    packages = ("strands",)
    given_options = ("prompt",)
    connects = True

    def __init__(self, world: World, blueprint: Blueprint, *, shared_with: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._agents: AgentGraph = shared_with._agents if shared_with else self._create_agents(blueprint)
        self._agents.add_session(self)
        self._session = ""
        self._manager: Any = None
        self._agent: Any = None

    def _create_agents(self, blueprint: Blueprint) -> AgentGraph:
        if blueprint.attachment is not None:
            from .attach import attach_agents

            return attach_agents(blueprint.attachment)
        from .agents import GATES, build_agents

        return build_agents(blueprint, GATES[self.gate], self.world)

    def _choose_decision_writer(self) -> DecisionWriter:
        """Return what writes a decision for the gate."""
        from .requests import write_detailed, write_word

        return write_word if self.blueprint.attachment is not None else write_detailed

    def _prepare(self) -> Any:
        """Return the agent, which restores itself from its session on construction."""
        # Not in `__init__`: `load` has to name the session first.
        if self._agent is None:
            from .state import build_session_manager

            self._session = self._session or uuid4().hex
            self._manager = build_session_manager(self.blueprint, self._session)
            self._agent = self._agents.build_main(self._manager)
        return self._agent

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .model import stream_turn

        with use_world(self.world), stream_turn(stream):
            agent = self._prepare()
            prompt = self._build_input(text, decisions)
            if not stream:
                return self._build_outcome(agent, await agent.invoke_async(prompt, **self._agents.options))
            return self._build_outcome(agent, await self._stream(agent, prompt))

    def _build_input(self, text: str | None, decisions: Sequence[Decision]) -> Any:
        from .requests import write_decisions

        if text is not None and not decisions:
            return text
        return [
            *write_decisions(decisions, self._choose_decision_writer()),
            *([] if text is None else [{"text": text}]),
        ]

    async def _stream(self, agent: Any, prompt: Any) -> Any:
        from .messages import read_event, read_interrupts
        from .requests import asks_about_batch

        result: Any = None
        async for event in agent.stream_async(prompt, **self._agents.options):
            for kind, values in read_event(event, answers=self.blueprint.attachment is not None):
                self.world.shown(kind, **values)
            for interrupt in read_interrupts(event):
                self.world.shown("request", id=interrupt.id)
            result = event.get("result", result)
        # An interrupt before all calls of a reply has no event of its own, and only the result shows it.
        batch = [one for one in getattr(result, "interrupts", None) or () if asks_about_batch(one)]
        for request in self._to_requests(agent, batch) if batch else ():
            self.world.shown("request", id=request.id)
        self.world.shown("end")
        return result

    def _build_outcome(self, agent: Any, result: Any) -> Outcome:
        from .messages import text_of

        if result.stop_reason == "interrupt":
            return Paused(requests=self._to_requests(agent, result.interrupts), text=text_of(result.message))
        if result.structured_output is not None:
            return Finished(output=result.structured_output.model_dump())
        # A limit ends the turn with the results of the calls, which are not the agent's output.
        return Finished(output=text_of(result.message) if result.message["role"] == "assistant" else None)

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .state import open_interrupts

        agent = self._prepare()
        return self._to_requests(agent, open_interrupts(agent))

    def _to_requests(self, agent: Any, interrupts: Iterable[Any]) -> tuple[Request, ...]:
        from .requests import read_requests
        from .state import interrupted_calls

        return read_requests(interrupts, self._agents.tools, interrupted_calls(agent))

    async def trim(self, keep: int) -> None:
        """Apply the agent's `SlidingWindowConversationManager` once with this window, and save."""
        agent = self._prepare()
        window = agent.conversation_manager
        # `apply_management` takes no size, so the window's own is another one for this call.
        usual_size, window.window_size = window.window_size, keep
        window.apply_management(agent)
        window.window_size = usual_size
        if self._manager is not None:
            # Managers save in hooks of messages and invocations, and here is neither.
            self._manager.sync_agent(agent)

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Return a snapshot of the session, or for a store the reference into it."""
        from .state import write_reference, write_state, write_text

        agent = self._prepare()
        if self._manager is not None:
            return await write_reference(agent, self._manager, self._session)
        return write_text(write_state(agent))

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        from .state import follow_reference, read_text, restore_state

        saved = read_text(parts[-1])
        if not self.blueprint.serialize.startswith("native."):
            restore_state(self._prepare(), saved)
            return
        self._session = saved["session"]
        await follow_reference(self._prepare(), self._manager, saved)

    async def recover(self, parts: Sequence[str]) -> None:
        """See `Agent.recover`; the session manager has restored its newest state when the agent is built."""
        from .state import read_text

        self._session = read_text(parts[-1])["session"]
        self._prepare()

    async def copy_from(self, other: Agent) -> None:
        """Restore an in-memory snapshot of *other*."""
        from .state import copy_state

        assert isinstance(other, Session)
        copy_state(other._prepare(), self._prepare())

    async def another_session(self, world: World) -> Agent:
        """Return a session with an agent object of its own, on the same model, tools and gate."""
        if self.blueprint.attachment is not None and hasattr(self.blueprint.attachment.subject, "stream_async"):
            raise Unsupported("sessions", "an agent object is one session; hand over a function that builds it")
        return type(self)(world, self.blueprint, shared_with=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._agents.tools

    def earlier_turns(self) -> int | None:
        """See `Agent.earlier_turns`."""
        return self._agents.earlier_turns

    async def close(self) -> None:
        """See `Agent.close`."""
        self._agent = None
        self._agents.remove_session(self)


class HookSession(Session):
    """A `BeforeToolCallEvent` hook asks, and the calls of a reply run concurrently."""

    gate = "hook"
    missing = metadata.MISSING


class SequentialSession(Session):
    """A `BeforeToolCallEvent` hook asks, and the calls of a reply run one by one."""

    gate = "sequential"
    missing = metadata.SEQUENTIAL_MISSING


class ToolSession(Session):
    """The tools call `tool_context.interrupt` themselves."""

    gate = "tool"
    missing = metadata.TOOL_MISSING


class MiddlewareSession(Session):
    """A middleware around the run of a tool asks."""

    gate = "middleware"
    missing = metadata.MISSING


class HandlerSession(Session):
    """An intervention handler calls `event.interrupt`; its errors do not stop the agent."""

    gate = "handler"
    missing = metadata.HANDLER_MISSING


class InterventionSession(Session):
    """`HumanInTheLoop` asks."""

    gate = "intervention"
    missing = metadata.INTERVENTION_MISSING

    def _choose_decision_writer(self) -> DecisionWriter:
        from .requests import write_word

        return write_word

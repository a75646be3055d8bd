"""One session: an agent with its messages and interrupts, and the flavours of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from ...contract import Agent, Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported, World
from ...current import recorded_by
from . import facts
from .current import streaming

if TYPE_CHECKING:
    from .answers import Form
    from .crew import Crew


class Session(Agent):
    """
    A session is one agent object; flavours differ in where a gate asks.

    Attributes:
        gate: What gates the tools of a built agent, by its name in `crew.GATES`.
    """

    gate: ClassVar[str]
    framework = "strands-agents"
    wire_rules = "chat"
    issues = facts.ISSUES
    stores = facts.STORES
    protocols = facts.PROTOCOLS
    packages = ("strands",)
    connects = True

    def __init__(self, world: World, blueprint: Blueprint, *, beside: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._crew: Crew = beside._crew if beside else self._crew_of(blueprint)
        self._crew.sessions.add(id(self))
        self._session = ""
        self._manager: Any = None
        self._agent: Any = None

    def _crew_of(self, blueprint: Blueprint) -> Crew:
        if blueprint.attachment is not None:
            from .attach import attached_crew

            return attached_crew(blueprint.attachment)
        from .crew import GATES, made_crew

        return made_crew(blueprint, GATES[self.gate])

    def _form(self) -> Form:
        """How a decision is said to the gate."""
        from .answers import in_a_word, with_details

        return in_a_word if self.blueprint.attachment is not None else with_details

    def _ready(self) -> Any:
        """Gives the agent, which restores itself from its session where it is made."""
        if self._agent is None:
            from .stores import manager

            self._session = self._session or uuid4().hex
            self._manager = manager(self.blueprint, self._session)
            self._agent = self._crew.main(self._manager)
        return self._agent

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        with recorded_by(self.world), streaming(stream):
            agent = self._ready()
            given = self._input(text, decisions)
            if not stream:
                return self._outcome(agent, await agent.invoke_async(given, **self._crew.options))
            return self._outcome(agent, await self._streamed(agent, given))

    def _input(self, text: str | None, decisions: Sequence[Decision]) -> Any:
        from .answers import responses

        if text is not None and not decisions:
            return text
        return [*responses(decisions, self._form()), *([] if text is None else [{"text": text}])]

    async def _streamed(self, agent: Any, given: Any) -> Any:
        from .streaming import interrupts, seen

        result: Any = None
        async for event in agent.stream_async(given, **self._crew.options):
            for what, told in seen(event):
                self.world.shown(what, **told)
            for interrupt in interrupts(event):
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
        from .requests import requests_of
        from .state import interrupted_calls

        return requests_of(interrupts, self._crew.tools, interrupted_calls(agent))

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
        from .state import written
        from .stores import place

        agent = self._ready()
        if self._manager is not None:
            return await place(agent, self._manager, self._session)
        return json.dumps(written(agent))

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        from .state import restored
        from .stores import go_to

        saved = json.loads(parts[-1])
        if not self.blueprint.serialize.startswith("native."):
            restored(self._ready(), saved)
            return
        self._session = saved["session"]
        await go_to(self._ready(), self._manager, saved)

    async def copy_from(self, other: Agent) -> None:
        """Takes up an in-memory snapshot of *other*."""
        from .state import copied

        assert isinstance(other, Session)
        copied(other._ready(), self._ready())

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


class Hooked(Session):
    """A `BeforeToolCallEvent` hook asks, and the calls of a reply run concurrently."""

    gate = "hook"
    capabilities = facts.claimed(facts.MISSING)
    missing = facts.MISSING


class Sequential(Session):
    """A `BeforeToolCallEvent` hook asks, and the calls of a reply run one after the other."""

    gate = "sequential"
    capabilities = facts.claimed(facts.SEQUENTIAL_MISSING)
    missing = facts.SEQUENTIAL_MISSING


class Asking(Session):
    """The tools ask with `tool_context.interrupt` from within."""

    gate = "tool"
    capabilities = facts.claimed(facts.TOOL_MISSING)
    missing = facts.TOOL_MISSING


class Wrapped(Session):
    """A middleware around the run of a tool asks."""

    gate = "middleware"
    capabilities = facts.claimed(facts.MISSING)
    missing = facts.MISSING


class Handling(Session):
    """An intervention handler asks with `event.interrupt`, and an error of it does not stop the agent."""

    gate = "handler"
    capabilities = facts.claimed(facts.HANDLER_MISSING)
    missing = facts.HANDLER_MISSING


class Intervening(Session):
    """`HumanInTheLoop` asks."""

    gate = "intervention"
    capabilities = facts.claimed(facts.INTERVENTION_MISSING)
    missing = facts.INTERVENTION_MISSING

    def _form(self) -> Form:
        from .answers import in_a_word

        return in_a_word

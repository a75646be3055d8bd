"""One session: a thread of a graph, and the flavours of it."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from ...contract import Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata

if TYPE_CHECKING:
    from .agents import AgentGraph, GateFactory
    from .requests import DecisionWriter
    from .state import OpenedSaver


class Session(Agent):
    """A session is one thread; flavours differ in what gates calls and in how answers are addressed."""

    framework = "langchain"
    wire_rules = "chat"
    protocols = metadata.PROTOCOLS
    issues = metadata.ISSUES
    stores = metadata.STORES
    packages = ("langchain", "langgraph")
    connects = True
    streamed: ClassVar[tuple[str, ...]] = ("updates", "messages")

    def __init__(self, world: World, blueprint: Blueprint, *, beside: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._crew: AgentGraph = beside._crew if beside else self._crew_of(blueprint)
        self._crew.sessions.add(id(self))
        self._opened: OpenedSaver | None = beside._opened if beside else None
        self._borrowed = beside is not None
        self._graph: Any = beside._graph if beside else None
        self._thread = ""
        self._checkpoint: str | None = None

    def _crew_of(self, blueprint: Blueprint) -> AgentGraph:
        if blueprint.attachment is not None:
            from .attach import attach_agents

            return attach_agents(blueprint.attachment)
        from .agents import build_agents

        return build_agents(blueprint, self._gate())

    @abstractmethod
    def _gate(self) -> GateFactory | None:
        """What gates the tools of a built agent; None where they ask from within."""

    @abstractmethod
    def _form(self) -> DecisionWriter:
        """How answers are addressed."""

    # --- the thread ---------------------------------------------------------------------------------------------------

    async def _ready(self) -> Any:
        """Gives the graph on its checkpointer, which can be opened in a running loop only."""
        if self._graph is None:
            await self._use(self._opened or await self._saver())
        if not self._thread:
            self._thread = str(uuid4())
        return self._graph

    @property
    def _config(self) -> dict[str, Any]:
        """The thread, and the checkpoint to go on from where it is not the newest one."""
        place = {"thread_id": self._thread}
        if self._checkpoint is not None:
            place |= {"checkpoint_ns": "", "checkpoint_id": self._checkpoint}
        return {"configurable": place}

    async def _saver(self) -> OpenedSaver:
        from .state import OpenedSaver, open_memory_saver, open_saver

        if self._crew.saver is not None and self.blueprint.serialize == "none":
            return OpenedSaver(saver=self._crew.saver, close=open_memory_saver().close)
        return await open_saver(self.blueprint)

    async def _use(self, saver: OpenedSaver) -> None:
        self._opened = saver
        self._graph = await self._crew.main(saver.saver)

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        with use_world(self.world):
            graph = await self._ready()
            given = await self._input(text, decisions)
            try:
                shown = await (self._streamed(graph, given) if stream else self._plain(graph, given))
            finally:
                # Whatever checkpoint the run began at, what it did is the newest one.
                self._checkpoint = None
            return await self._outcome(graph, shown)

    async def _input(self, text: str | None, decisions: Sequence[Decision]) -> Any:
        from langgraph.types import Command

        messages = None if text is None else {"messages": [{"role": "user", "content": text}]}
        if not decisions:
            return messages
        resume = self._form()(decisions, len(await self._waiting()))
        return Command(resume=resume) if messages is None else Command(resume=resume, update=messages)

    async def _plain(self, graph: Any, given: Any) -> Sequence[Any]:
        done = await graph.ainvoke(given, self._config, **self._crew.options)
        shown: Sequence[Any] = (done or {}).get("__interrupt__", ())
        return shown

    async def _streamed(self, graph: Any, given: Any) -> Sequence[Any]:
        from .messages import read_chunk, read_interrupts
        from .requests import read_requests

        shown: list[Any] = []
        options = {"subgraphs": True, **self._crew.options} if self._crew.inner else self._crew.options
        async for *_, mode, chunk in graph.astream(given, self._config, stream_mode=list(self.streamed), **options):
            for what, told in read_chunk(mode, chunk):
                self.world.shown(what, **told)
            # A request of a graph inside comes from that one and from the one around it.
            new = [one for one in read_interrupts(mode, chunk) if one not in shown]
            shown += new
            for request in read_requests(new, self._crew.tools):
                self.world.shown("request", id=request.id)
        self.world.shown("end")
        return shown

    async def _outcome(self, graph: Any, shown: Sequence[Any]) -> Outcome:
        from .messages import text_of
        from .requests import read_requests, sort_interrupts, waiting_interrupts

        state = await graph.aget_state(self._config)
        messages = state.values.get("messages", ())
        if shown:
            requests = read_requests(sort_interrupts(shown, waiting_interrupts(state)), self._crew.tools)
            return Paused(requests=requests, text=_text_beside_calls(messages))
        if self.blueprint.answer:
            return Finished(output=state.values.get("structured_response"))
        return Finished(output=text_of(messages[-1]) if messages else None)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _waiting(self) -> Sequence[Any]:
        from .requests import waiting_interrupts

        graph = await self._ready()
        return waiting_interrupts(await graph.aget_state(self._config))

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .requests import read_requests

        return read_requests(await self._waiting(), self._crew.tools)

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Gives the reference into the store: the thread, and the checkpoint that it stands at."""
        self._needs_store()
        graph = await self._ready()
        place = (await graph.aget_state(self._config)).config["configurable"]
        return json.dumps({"thread": self._thread, "checkpoint": place.get("checkpoint_id")})

    async def load(self, parts: Sequence[str]) -> None:
        """
        See `Agent.load`.

        A thread that stands there still is simply gone on with. One that went on since is run from that checkpoint
        again, as the guide "Time travel" has it; with the option `pinned` every thread is, because clients that show
        checkpoints send the id of the newest one along, too.
        """
        self._needs_store()
        place = json.loads(parts[-1])
        self._thread = place["thread"]
        graph = await self._ready()
        newest = (await graph.aget_state(self._config)).config["configurable"].get("checkpoint_id")
        if place["checkpoint"] != newest or self.blueprint.options.get("pinned"):
            self._checkpoint = place["checkpoint"]

    def _needs_store(self) -> None:
        if not self.blueprint.serialize.startswith("native."):
            raise Unsupported("serialize.json", metadata.MISSING["serialize.json"])

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        from .state import copy_saver

        assert isinstance(other, Session)
        await other._ready()
        assert other._opened is not None
        await self._use(copy_saver(other._opened))
        self._thread, self._checkpoint = other._thread, other._checkpoint

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        await self._ready()
        return type(self)(world, self.blueprint, beside=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._crew.tools

    async def close(self) -> None:
        """See `Agent.close`."""
        opened, self._opened, self._graph = self._opened, None, None
        if opened is not None and not self._borrowed:
            await opened.close()
        self._crew.let_go(self)


def _text_beside_calls(messages: Sequence[Any]) -> str | None:
    """Gives what the model said beside the calls that wait."""
    from .messages import text_of

    last = next((message for message in reversed(messages) if message.type == "ai"), None)
    return (text_of(last) or None) if last is not None else None


class BatchedSession(Session):
    """`HumanInTheLoopMiddleware` asks once for all gated calls of a reply; answers are a list by position."""

    capabilities = metadata.claimed(metadata.MISSING)
    missing = metadata.MISSING

    def _gate(self) -> GateFactory | None:
        from .agents import batched_gate

        return batched_gate

    def _form(self) -> DecisionWriter:
        from .requests import write_by_position

        return write_by_position


class PerCallSession(Session):
    """`HumanInTheLoopMiddleware` asks for each gated call; answers go by the interrupt's id."""

    capabilities = metadata.claimed(metadata.PER_CALL_MISSING)
    missing = metadata.PER_CALL_MISSING

    def _gate(self) -> GateFactory | None:
        from .agents import per_call_gate

        return per_call_gate

    def _form(self) -> DecisionWriter:
        from .requests import write_by_id

        return write_by_id


class RetrySession(PerCallSession):
    """As `PerCallSession`, and a `ToolRetryMiddleware` stands around the gate."""

    def _gate(self) -> GateFactory | None:
        from .agents import retry_gate

        return retry_gate


class InterruptSession(Session):
    """The tools ask with `interrupt()` from within, and a consumer of the stream follows the state's values."""

    capabilities = metadata.claimed(metadata.INTERRUPT_MISSING)
    missing = metadata.INTERRUPT_MISSING
    streamed = ("values", "messages")

    def _gate(self) -> GateFactory | None:
        return None

    def _form(self) -> DecisionWriter:
        from .requests import write_bare_if_single

        return write_bare_if_single


class ToolNodeSession(InterruptSession):
    """As `InterruptSession`, in a graph of one's own, where one `ToolNode` runs all calls of a reply."""

    capabilities = metadata.claimed(metadata.OWN_MISSING)
    missing = metadata.OWN_MISSING
    protocols = metadata.OWN_PROTOCOLS

    def _crew_of(self, blueprint: Blueprint) -> AgentGraph:
        if blueprint.attachment is not None:
            return super()._crew_of(blueprint)
        from .agents import build_agents

        return build_agents(blueprint, None, own=True)

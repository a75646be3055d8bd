"""Sessions: a thread of a graph, and the flavours of it."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from ...contract import RENAMED, Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata
from .breakpoints import is_about_breakpoint, read_breakpoint, write_into_state

if TYPE_CHECKING:
    from .agents import AgentGraph, GateFactory
    from .messages import KnownResults
    from .requests import DecisionWriter
    from .state import OpenedSaver, StoreOptions


class Session(Agent):
    """One thread; flavours differ in the gate and in how decisions are addressed."""

    framework = "langchain"
    wire_rules = "chat"
    protocols = metadata.PROTOCOLS
    issues = metadata.ISSUES
    stores = metadata.STORES
    renames = RENAMED
    recovery = metadata.RECOVERY
    synchronous = "`invoke` and `stream`"
    packages = ("langchain", "langgraph")
    given_options = ("input", "stream_mode", "subgraphs")
    connects = True
    streamed: ClassVar[tuple[str, ...]] = ("updates", "messages")

    def __init__(self, world: World, blueprint: Blueprint, *, shared_with: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._store = _read_store_options(blueprint)
        self._agents: AgentGraph = shared_with._agents if shared_with else self._create_agents(blueprint)
        self._agents.add_session(self)
        self._opened: OpenedSaver | None = shared_with._opened if shared_with else None
        self._borrowed = shared_with is not None
        self._graph: Any = shared_with._graph if shared_with else None
        self._thread = ""
        self._checkpoint: str | None = None

    def _create_agents(self, blueprint: Blueprint) -> AgentGraph:
        if blueprint.attachment is not None:
            from .attach import attach_agents

            return attach_agents(blueprint.attachment)
        from .agents import build_agents

        return build_agents(blueprint, self._choose_gate())

    @abstractmethod
    def _choose_gate(self) -> GateFactory | None:
        """Return what gates the tools of a built agent; None if they ask themselves."""

    @abstractmethod
    def _choose_decision_writer(self) -> DecisionWriter:
        """Return what writes decisions."""

    # --- the thread ---------------------------------------------------------------------------------------------------

    async def _prepare(self) -> Any:
        """Return the graph on its checkpointer, which must be opened in a running loop."""
        if self._graph is None:
            await self._use_saver(self._opened or await self._open_saver())
        if not self._thread:
            self._thread = str(uuid4())
        return self._graph

    @property
    def _config(self) -> dict[str, Any]:
        """The thread, and the checkpoint to resume from if it is not the newest one."""
        place = {"thread_id": self._thread}
        if self._checkpoint is not None:
            place |= {"checkpoint_ns": "", "checkpoint_id": self._checkpoint}
        own = self._agents.config
        return {**own, "configurable": {**own.get("configurable", {}), **place}}

    async def _open_saver(self) -> OpenedSaver:
        from .state import OpenedSaver, enable_async, open_memory_saver, open_saver

        if self._agents.saver is not None and self.blueprint.serialize == "none":
            await enable_async(self._agents.saver)
            return OpenedSaver(saver=self._agents.saver, close=open_memory_saver().close)
        return await open_saver(self.blueprint, self._store)

    async def _use_saver(self, saver: OpenedSaver) -> None:
        self._opened = saver
        self._graph = await self._agents.build_main(saver.saver)

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        with use_world(self.world), self._agents.probing():
            graph = await self._prepare()
            graph_input = await self._build_input(text, decisions)
            try:
                interrupts = await (self._stream(graph, graph_input) if stream else self._run(graph, graph_input))
            finally:
                # Whatever checkpoint the run began at, the run itself wrote the newest one.
                self._checkpoint = None
            return await self._build_outcome(graph, interrupts)

    async def _build_input(self, text: str | None, decisions: Sequence[Decision]) -> Any:
        from langgraph.types import Command

        messages = None if text is None else {"messages": [{"role": "user", "content": text}]}
        # Without input, a graph continues at its checkpoint.
        if not decisions:
            return messages
        if is_about_breakpoint(decisions[0]):
            graph = await self._prepare()
            await write_into_state(graph, self._config, decisions)
            if any(decision.verdict != "approve" for decision in decisions):
                self._checkpoint = None
            return messages
        resume = self._choose_decision_writer()(decisions, len(await self._waiting_interrupts()))
        return Command(resume=resume) if messages is None else Command(resume=resume, update=messages)

    @property
    def _options(self) -> dict[str, Any]:
        """The options of a run, which say when its checkpoints are written to a store."""
        from .state import CAN_WAIT_FOR_CHECKPOINTS

        is_stored = self.blueprint.serialize.startswith("native.") and CAN_WAIT_FOR_CHECKPOINTS
        return {**({"durability": self._store.durability} if is_stored else {}), **self._agents.options}

    @property
    def _is_blocking(self) -> bool:
        """Whether the graph is run by `invoke` and `stream`."""
        return self._agents.blocking or self._store.blocking

    async def _run(self, graph: Any, graph_input: Any) -> Sequence[Any]:
        if self._is_blocking:
            result = await asyncio.to_thread(graph.invoke, graph_input, self._config, **self._options)
        else:
            result = await graph.ainvoke(graph_input, self._config, **self._options)
        interrupts: Sequence[Any] = (result or {}).get("__interrupt__", ())
        return interrupts

    async def _stream(self, graph: Any, graph_input: Any) -> Sequence[Any]:
        from .messages import read_chunk, read_interrupts
        from .requests import list_request_ids

        interrupts: list[Any] = []
        known = await self._find_known_results(graph)
        options = {"subgraphs": True, **self._options} if self._agents.inner else self._options
        # With `subgraphs`, the path of the inner graph comes first.
        begin = partial(_stream_in_thread, graph) if self._is_blocking else graph.astream
        async for *_, mode, chunk in begin(graph_input, self._config, stream_mode=list(self.streamed), **options):
            for kind, values in read_chunk(mode, chunk, known):
                self.world.shown(kind, **values)
            # An inner graph's request comes twice: from that graph and from the one around it.
            new = [interrupt for interrupt in read_interrupts(mode, chunk) if interrupt not in interrupts]
            interrupts += new
            for request_id in list_request_ids(new):
                self.world.shown("request", id=request_id)
        if not interrupts:
            for request in read_breakpoint(graph, await graph.aget_state(self._config), self._agents.tools):
                self.world.shown("request", id=request.id)
        self.world.shown("end")
        return interrupts

    async def _find_known_results(self, graph: Any) -> KnownResults | None:
        """Return the messages with results that an attached graph has in its state."""
        from .messages import KnownResults

        if self.blueprint.attachment is None:
            return None
        values = (await graph.aget_state(self._config)).values
        messages = values.get("messages", ()) if isinstance(values, dict) else ()
        return KnownResults(message.id for message in messages if getattr(message, "type", None) == "tool")

    async def _build_outcome(self, graph: Any, interrupts: Sequence[Any]) -> Outcome:
        from .messages import text_of
        from .requests import read_requests, sort_interrupts, waiting_interrupts

        state = await graph.aget_state(self._config)
        messages = state.values.get("messages", ())
        if interrupts:
            shown = sort_interrupts(interrupts, waiting_interrupts(state))
            requests = read_requests(shown, self._agents.tools, state)
            return Paused(requests=requests, text=_text_with_calls(messages))
        if stopped := read_breakpoint(graph, state, self._agents.tools):
            return Paused(requests=stopped, text=_text_with_calls(messages))
        if self.blueprint.answer:
            return Finished(output=state.values.get("structured_response"))
        return Finished(output=text_of(messages[-1]) if messages else None)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _waiting_interrupts(self) -> Sequence[Any]:
        from .requests import waiting_interrupts

        graph = await self._prepare()
        return waiting_interrupts(await graph.aget_state(self._config))

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .requests import read_requests, waiting_interrupts

        graph = await self._prepare()
        state = await graph.aget_state(self._config)
        stopped = read_breakpoint(graph, state, self._agents.tools)
        return stopped or read_requests(waiting_interrupts(state), self._agents.tools, state)

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Return the reference into the store: the thread and its current checkpoint."""
        self._needs_store()
        graph = await self._prepare()
        place = (await graph.aget_state(self._config)).config["configurable"]
        return json.dumps({"thread": self._thread, "checkpoint": place.get("checkpoint_id")})

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`.

        A thread that is still at the checkpoint is just continued. One that has moved on is run from that checkpoint
        again, as in the guide "Time travel". With the option `pinned` every thread is, because clients that show
        checkpoints send the id of the newest one, too.
        """
        self._needs_store()
        place = json.loads(parts[-1])
        self._thread = place["thread"]
        graph = await self._prepare()
        newest = (await graph.aget_state(self._config)).config["configurable"].get("checkpoint_id")
        if place["checkpoint"] != newest or self.blueprint.options.get("pinned"):
            self._checkpoint = place["checkpoint"]

    async def recover(self, parts: Sequence[str]) -> None:
        """See `Agent.recover`; a thread goes on at its newest checkpoint, which the dead process may have written."""
        self._needs_store()
        self._thread = json.loads(parts[-1])["thread"]

    def _needs_store(self) -> None:
        if not self.blueprint.serialize.startswith("native."):
            raise Unsupported("serialize.json", metadata.MISSING["serialize.json"])

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        from .state import copy_saver

        assert isinstance(other, Session)
        await other._prepare()
        assert other._opened is not None
        await self._use_saver(copy_saver(other._opened))
        self._thread, self._checkpoint = other._thread, other._checkpoint

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        await self._prepare()
        return type(self)(world, self.blueprint, shared_with=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._agents.tools

    def earlier_turns(self) -> int | None:
        """See `Agent.earlier_turns`."""
        return self._agents.earlier_turns

    async def close(self) -> None:
        """See `Agent.close`."""
        opened, self._opened, self._graph = self._opened, None, None
        if opened is not None and not self._borrowed:
            await opened.close()
        self._agents.remove_session(self)


def _read_store_options(blueprint: Blueprint) -> StoreOptions:
    from .state import StoreOptions

    return StoreOptions.read(blueprint.options)


async def _stream_in_thread(graph: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
    """Yield what `graph.stream` does; each chunk is taken before the graph goes on."""
    chunks = graph.stream(*args, **options)
    # In one context, as in one thread: the framework resets there what it has set before it yields a chunk.
    take = partial(copy_context().run, next, chunks, None)
    while (chunk := await asyncio.to_thread(take)) is not None:
        yield chunk


def _text_with_calls(messages: Sequence[Any]) -> str | None:
    """Return the text of the model's message with the pending calls."""
    from .messages import text_of

    last = next((message for message in reversed(messages) if message.type == "ai"), None)
    return (text_of(last) or None) if last is not None else None


class BatchedSession(Session):
    """`HumanInTheLoopMiddleware` asks once for all gated calls of a reply.

    Decisions are a list by position.
    """

    missing = metadata.MISSING

    def _choose_gate(self) -> GateFactory | None:
        from .agents import batched_gate

        return batched_gate

    def _choose_decision_writer(self) -> DecisionWriter:
        from .requests import write_by_position

        return write_by_position


class PerCallSession(Session):
    """`HumanInTheLoopMiddleware` asks for each gated call; decisions go by interrupt id."""

    missing = metadata.PER_CALL_MISSING

    def _choose_gate(self) -> GateFactory | None:
        from .agents import per_call_gate

        return per_call_gate

    def _choose_decision_writer(self) -> DecisionWriter:
        from .requests import write_by_id

        return write_by_id


class RetrySession(PerCallSession):
    """As `PerCallSession`, with a `ToolRetryMiddleware` around the gate."""

    def _choose_gate(self) -> GateFactory | None:
        from .agents import retry_gate

        return retry_gate


class InterruptSession(Session):
    """The tools call `interrupt()`; a stream's consumer follows the state's values."""

    missing = metadata.INTERRUPT_MISSING
    streamed = ("values", "messages")

    def _choose_gate(self) -> GateFactory | None:
        return None

    def _choose_decision_writer(self) -> DecisionWriter:
        from .requests import write_bare_if_single

        return write_bare_if_single


class ToolNodeSession(InterruptSession):
    """As `InterruptSession`, in a custom graph whose one `ToolNode` runs all calls."""

    missing = metadata.OWN_MISSING
    protocols = metadata.OWN_PROTOCOLS

    def _create_agents(self, blueprint: Blueprint) -> AgentGraph:
        if blueprint.attachment is not None:
            return super()._create_agents(blueprint)
        from .agents import build_agents

        return build_agents(blueprint, None, own=True)

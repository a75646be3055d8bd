"""One session: a thread of a graph, and the flavours of it."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from ...contract import Agent, Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported, World
from ...current import recorded_by
from . import facts

if TYPE_CHECKING:
    from .answers import Form
    from .crew import Crew, Gate
    from .savers import Opened


class Session(Agent):
    """A session is one thread; flavours differ in what gates calls and in how answers are addressed."""

    framework = "langchain"
    wire_rules = "chat"
    protocols = facts.PROTOCOLS
    issues = facts.ISSUES
    stores = facts.STORES
    packages = ("langchain", "langgraph")
    connects = True
    streamed: ClassVar[tuple[str, ...]] = ("updates", "messages")

    def __init__(self, world: World, blueprint: Blueprint, *, beside: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._crew: Crew = beside._crew if beside else self._crew_of(blueprint)
        self._crew.sessions.add(id(self))
        self._opened: Opened | None = beside._opened if beside else None
        self._borrowed = beside is not None
        self._graph: Any = beside._graph if beside else None
        self._thread = ""
        self._checkpoint: str | None = None

    def _crew_of(self, blueprint: Blueprint) -> Crew:
        if blueprint.attachment is not None:
            from .attach import attached_crew

            return attached_crew(blueprint.attachment)
        from .crew import made_crew

        return made_crew(blueprint, self._gate())

    @abstractmethod
    def _gate(self) -> Gate | None:
        """What gates the tools of a built agent; None where they ask from within."""

    @abstractmethod
    def _form(self) -> Form:
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

    async def _saver(self) -> Opened:
        from .savers import Opened, in_memory, opened

        if self._crew.saver is not None and self.blueprint.serialize == "none":
            return Opened(saver=self._crew.saver, close=in_memory().close)
        return await opened(self.blueprint)

    async def _use(self, saver: Opened) -> None:
        self._opened = saver
        self._graph = await self._crew.main(saver.saver)

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        with recorded_by(self.world):
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
        from .requests import requests_of
        from .streaming import interrupts, seen

        shown: list[Any] = []
        options = {"subgraphs": True, **self._crew.options} if self._crew.inner else self._crew.options
        async for *_, mode, chunk in graph.astream(given, self._config, stream_mode=list(self.streamed), **options):
            for what, told in seen(mode, chunk):
                self.world.shown(what, **told)
            # A request of a graph inside comes from that one and from the one around it.
            new = [one for one in interrupts(mode, chunk) if one not in shown]
            shown += new
            for request in requests_of(new, self._crew.tools):
                self.world.shown("request", id=request.id)
        self.world.shown("end")
        return shown

    async def _outcome(self, graph: Any, shown: Sequence[Any]) -> Outcome:
        from .messages import text_of
        from .requests import in_order, requests_of, waiting

        state = await graph.aget_state(self._config)
        messages = state.values.get("messages", ())
        if shown:
            requests = requests_of(in_order(shown, waiting(state)), self._crew.tools)
            return Paused(requests=requests, text=_beside(messages))
        if self.blueprint.answer:
            return Finished(output=state.values.get("structured_response"))
        return Finished(output=text_of(messages[-1]) if messages else None)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _waiting(self) -> Sequence[Any]:
        from .requests import waiting

        graph = await self._ready()
        return waiting(await graph.aget_state(self._config))

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .requests import requests_of

        return requests_of(await self._waiting(), self._crew.tools)

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
            raise Unsupported("serialize.json", facts.MISSING["serialize.json"])

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        from .savers import copied

        assert isinstance(other, Session)
        await other._ready()
        assert other._opened is not None
        await self._use(copied(other._opened))
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


def _beside(messages: Sequence[Any]) -> str | None:
    """Gives what the model said beside the calls that wait."""
    from .messages import text_of

    last = next((message for message in reversed(messages) if message.type == "ai"), None)
    return (text_of(last) or None) if last is not None else None


class Batched(Session):
    """`HumanInTheLoopMiddleware` asks once for all gated calls of a reply; answers are a list by position."""

    capabilities = facts.claimed(facts.MISSING)
    missing = facts.MISSING

    def _gate(self) -> Gate | None:
        from .crew import batched

        return batched

    def _form(self) -> Form:
        from .answers import by_position

        return by_position


class PerCall(Session):
    """`HumanInTheLoopMiddleware` asks for each gated call; answers go by the interrupt's id."""

    capabilities = facts.claimed(facts.PER_CALL_MISSING)
    missing = facts.PER_CALL_MISSING

    def _gate(self) -> Gate | None:
        from .crew import per_call

        return per_call

    def _form(self) -> Form:
        from .answers import by_id

        return by_id


class Retrying(PerCall):
    """As `PerCall`, and a `ToolRetryMiddleware` stands around the gate."""

    def _gate(self) -> Gate | None:
        from .crew import retried

        return retried


class Interrupting(Session):
    """The tools ask with `interrupt()` from within, and a consumer of the stream follows the state's values."""

    capabilities = facts.claimed(facts.INTERRUPT_MISSING)
    missing = facts.INTERRUPT_MISSING
    streamed = ("values", "messages")

    def _gate(self) -> Gate | None:
        return None

    def _form(self) -> Form:
        from .answers import bare_if_single

        return bare_if_single


class OwnGraph(Interrupting):
    """As `Interrupting`, in a graph of one's own, where one `ToolNode` runs all calls of a reply."""

    capabilities = facts.claimed(facts.OWN_MISSING)
    missing = facts.OWN_MISSING
    protocols = facts.OWN_PROTOCOLS

    def _crew_of(self, blueprint: Blueprint) -> Crew:
        if blueprint.attachment is not None:
            return super()._crew_of(blueprint)
        from .crew import made_crew

        return made_crew(blueprint, None, own=True)

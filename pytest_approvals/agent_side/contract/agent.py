"""To be described."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from .capabilities import CAPABILITIES, PROTOCOLS
from .exceptions import (
    Unsupported,
)
from .types import (
    MAIN,
    Blueprint,
    Decision,
    Item,
    ModelAddress,
    Outcome,
    Reply,
    Request,
    ToolSpec,
)


class World(Protocol):
    """
    What the harness gives to an adapter, and the only thing that records.

    One world belongs to one session. Frameworks share model and tool objects between sessions: an adapter that offers
    the capability `sessions` finds the world of the running turn itself, with a context variable, say.
    """

    async def model(
        self, items: Sequence[Item], *, agent: str = MAIN, stream: bool = False, tools: Sequence[str] = ()
    ) -> Reply:
        """
        Gives the scripted model's next reply to *items*, the complete input that a provider would get.

        Arguments:
            agent: The agent whose model is asked.
            stream: The framework asked for a stream: play `Reply.chunks`, then fail if `Reply.breaks`.
            tools: The names of the tools that the model is offered.

        Errors:
            ModelDown: The scenario lets the model fail here. Raise what the framework's own model class raises in that
                case, or let it out.
            ModelRefused: A real provider would have refused *items*. Likewise.
            ScriptExhausted: Let it out.
        """

    def address(self) -> ModelAddress | None:
        """
        Gives where the model of this session is reached, as `Blueprint.model` says it of the first session of an agent;
        None where the world itself is asked.
        """

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = MAIN,
        real: Callable[[], Awaitable[Any]] | None = None,
    ) -> Any:
        """
        Runs a tool: called from the tool's body, each time the framework enters it, and nowhere else.

        Arguments:
            arguments: What the body was called with, after the framework's validation.
            call_id: The id as the framework tells it to the body; None where it tells none.
            real: The body of an attached agent's own tool, run with its start and end recorded.

        Returns:
            What the tool returns: any JSON value, or whatever *real* returns.

        Errors:
            ToolRaised, AsksAgain, and whatever *real* raises.
        """

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """
        Says whether a call of a conditionally gated tool needs approval: called from the framework's own policy, and
            nowhere else.

        It is synchronous, because some frameworks' policies are. Raises `ConditionRaised` where the scenario says so.
        """

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """
        Answers as `gate` does, after the signal that the condition waits for; for frameworks whose policies may be
        asynchronous.
        """

    def shown(self, what: str, **facts: Any) -> None:
        """
        Tells what a stream showed to its consumer, as it is shown: `text` (text=), `call` (id=, tool=), `request`
            (id=), `result` (id=, text=), `end`.

        An adapter reports what the framework's own stream events say, so that a request missing from the stream can be
        noticed.
        """


class Agent(ABC):
    """
    One session of the agent under test, driven through one framework.

    Subclass it once a flavour, and list the flavours in the module's `FLAVOURS: dict[str, type[Agent]]`, the default
    one first under `""`. Import the framework inside methods only. The class attributes are facts about the flavour and
    can be read without the framework.

    Attributes:
        framework: The distribution whose version is the version of the agent; None for agents of our own.
        registry: Where that distribution is installed from: `pypi`, or `npm`. What npm installs never runs here: such a
            class holds the facts of agents that stand in `agents.mjs` beside it.
        release: The version of an agent of our own that plays releases of some framework; None for all others.
        releases: What it plays, oldest first: a class for each release, with that `release`.
        capabilities: What this flavour can express, of the names in `capabilities.py`.
        missing: For every other capability, the API that is missing or refuses. The two together name each capability
            once.
        wire_rules: Whose rules its model inputs follow: `chat`, `responses`, `messages`, or `none`.
        native: The protocol over which it reaches `Blueprint.model` even where none is asked for; empty where it then
            asks the world, with a model class of the framework.
        protocols: The protocols over which it reaches `Blueprint.model` with the framework's own clients; for each, the
            capabilities that are missing there besides, with the API that is missing or refuses.
        issues: Where to report a bug of the framework.
        stores: Its durable stores: the NAME in `native.NAME`, and what it is.
        packages: Import names of the framework, by which an attached object or an imported framework is recognised.
        connects: It reaches tools of the kind `mcp` with the framework's own client, at `Blueprint.servers`.
    """

    framework: ClassVar[str | None] = None
    registry: ClassVar[str] = "pypi"
    release: ClassVar[str | None] = None
    releases: ClassVar[tuple[type[Agent], ...]] = ()
    capabilities: ClassVar[frozenset[str]] = frozenset()
    missing: ClassVar[Mapping[str, str]] = {}
    wire_rules: ClassVar[str] = "chat"
    native: ClassVar[str] = ""
    protocols: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    issues: ClassVar[str] = ""
    stores: ClassVar[Mapping[str, str]] = {}
    packages: ClassVar[tuple[str, ...]] = ()
    connects: ClassVar[bool] = False

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        """Builds the framework's objects out of *blueprint*: empty state, nothing run yet."""
        self.world = world
        self.blueprint = blueprint

    @abstractmethod
    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """
        Takes one turn: hands *text* and *decisions* to the framework and runs until it pauses, finishes or fails.

        Both may be given, either may be missing, and with neither the framework is asked to go on without an answer.
        All of these are real steps of a scenario. *decisions* are in the caller's order and may contradict each other.

        With *stream*, use the framework's streaming API, consume it to the end, report what it shows with
        `World.shown`, and take the requests from where a consumer of the stream finds them.

        With the capability `hang_up` the task that takes the turn may be cancelled, wherever it waits: let that through
        to the framework and out again, and keep what a caller of the framework would have then.

        Errors:
            Unsupported: This combination cannot be expressed.
            Anything else: The turn failed. Let the framework's own exception out.
        """

    @abstractmethod
    async def pending(self) -> Sequence[Request]:
        """
        Lists the open requests that this session's state holds, as the framework tells them without running anything.
        """

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """
        Puts decisions into the state without going on, so that they can be saved; a later `turn(None, ())` goes on with
        them.
        """
        raise Unsupported("stage")

    async def cancel(self) -> None:
        """Gives up what is pending, in the framework's own way."""
        raise Unsupported("cancel")

    async def trim(self, keep: int) -> None:
        """Lets the framework's own history trimming keep the last *keep* messages."""
        raise Unsupported("trim")

    async def dump(self) -> str:
        """
        Gives everything the caller must keep between two turns, as text: for `json` the framework's own serialization,
        for `native.NAME` the reference into the store. With history `append`, only what the last turn added. It works
        after a failed and after a finished turn, too.
        """
        raise Unsupported("serialize.json")

    async def load(self, parts: Sequence[str]) -> None:
        """
        Takes up what `dump` gave: one text, or with history `append` all of them in order. Called on a new agent,
        before its first turn.
        """
        raise Unsupported("serialize.json")

    async def copy_from(self, other: Agent) -> None:
        """
        Takes a deep copy of *other*'s state; for serialize mode `copy`. Called on a new agent, before its first turn.
        """
        raise Unsupported("serialize.copy")

    async def another_session(self, world: World) -> Agent:
        """
        Gives a second, empty session on the same framework objects (the same agent, model and tools), recorded by
        *world*.
        """
        raise Unsupported("sessions")

    def tools(self) -> tuple[ToolSpec, ...]:
        """
        The tools as this agent has them: those of the blueprint, or for an attachment what was found on the person's
        agent.
        """
        return self.blueprint.tools

    async def close(self) -> None:
        """Lets go of whatever is open: clients, files, background tasks."""

    @classmethod
    def owns(cls, subject: object) -> bool:
        """
        Says whether *subject* is an agent object of this framework, judged by the package that its class comes from.
        """
        return type(subject).__module__.split(".")[0] in cls.packages

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "capabilities" in cls.__dict__ or "missing" in cls.__dict__:
            _validate_capabilities(cls)


def _validate_capabilities(cls: type[Agent]) -> None:
    claimed, missing = cls.capabilities, frozenset(cls.missing)
    known = frozenset(CAPABILITIES) | {f"native.{name}" for name in cls.stores}
    wrong = {
        "unknown": (claimed | missing) - known,
        "claimed and missing": claimed & missing,
        "neither claimed nor missing": known - claimed - missing,
        "unknown protocols": frozenset(cls.protocols) - frozenset(PROTOCOLS),
        "unknown over a protocol": frozenset(name for lacks in cls.protocols.values() for name in lacks) - known,
    }
    problems = [f"{what}: {', '.join(sorted(names))}" for what, names in wrong.items() if names]
    if problems:
        raise TypeError(f"capabilities of {cls.__module__}.{cls.__qualname__}: " + "; ".join(problems))

"""The two sides of the contract: `Agent`, which an adapter implements, and `World`, which it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from .capabilities import CAPABILITIES, DERIVED, IMPLIED, OPTIONAL, PROTOCOLS
from .exceptions import Unsupported
from .types import (
    MAIN,
    Blueprint,
    Decision,
    ElicitationAnswer,
    Item,
    ModelAddress,
    Outcome,
    Reply,
    Request,
    ToolSpec,
)


class World(Protocol):
    """The harness as an adapter sees it, and the only thing that records.

    One world belongs to one session. Frameworks share model and tool objects between sessions: an adapter with the
    capability `sessions` finds the world of the running turn itself, for example with a context variable.
    """

    async def model(
        self, items: Sequence[Item], *, agent: str = MAIN, stream: bool = False, tools: Sequence[str] = ()
    ) -> Reply:
        """Return the scripted reply to *items*, the full provider input.

        Args:
            items: The input of the model, as a provider would get it.
            agent: The agent whose model is asked.
            stream: The framework asked for a stream: play `Reply.chunks`, then fail if `Reply.breaks`.
            tools: The names of the tools that the model is offered.

        Raises:
            ModelDown: The scenario lets the model fail here. Raise what the framework's own model class raises in that
                case, or let it propagate.
            ModelRefused: A real provider would have refused *items*. Handle it like `ModelDown`.
            ScriptExhausted: The script has no further reply. Let it propagate.
        """

    def address(self) -> ModelAddress | None:
        """Return where the model of this session is reached; None if the world itself is asked.

        For the first session of an agent this is `Blueprint.model`.
        """

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = MAIN,
        real: Callable[[], Awaitable[Any]] | None = None,
        elicited: ElicitationAnswer | None = None,
    ) -> Any:
        """Execute a tool.

        Call it from the tool's body, each time the framework enters it, and nowhere else.

        Args:
            tool: The name of the tool.
            arguments: The arguments of the body, after the framework's validation.
            call_id: The call id that the framework tells the body; None if it tells none.
            agent: The agent that has the tool.
            real: The body of an attached agent's own tool; it runs with its start and end recorded.
            elicited: The answer to what this execution asked as `Elicits`, with which it goes on.

        Returns:
            The result of the tool: any JSON value, or the result of *real*.

        Raises:
            ToolRaised: The tool fails, as the scenario wrote it. Let it out of the body.
            AsksAgain: The tool wants a second approval. Turn it into the framework's own way to ask.
            Elicits: A tool of kind `mcp` asks the caller, if the agent runs it itself. An agent that `connects` gets
                the question by its client, from the server.
            Exception: Whatever *real* raises.
        """

    async def elicit(
        self, message: str, *, form: Mapping[str, Any] | None = None, url: str | None = None
    ) -> ElicitationAnswer:
        """Return the caller's answer to a question that an MCP server asks in the middle of a call.

        Call it from the framework's own handler of elicitations, with what the handler is given, and nowhere else.

        Args:
            message: The question.
            form: The JSON Schema of the object that the caller shall fill in.
            url: The address that the caller shall open.
        """

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """Return whether a call of a conditionally gated tool needs approval.

        Call it from the framework's own policy, and nowhere else. It is synchronous, because some frameworks' policies
        are.

        Raises:
            ConditionRaised: The condition fails, as the scenario wrote it. Let it out of the policy.
        """

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """Return what `gate` returns, after the signal that the condition waits for.

        It is meant for frameworks whose policies may be asynchronous.
        """

    def shown(self, what: str, **facts: Any) -> None:
        """Record what a stream showed to its consumer, at the moment it is shown.

        *what* is `text` (text=), `call` (id=, tool=), `request` (id=), `result` (id=, text=) or `end`. Report what the
        framework's own stream events say, so that a request missing from the stream is noticed.
        """


class Agent(ABC):
    """One session of the agent under test, driven through one framework.

    Write one subclass per flavour, and list them in the module's `FLAVOURS: dict[str, type[Agent]]`, the default one
    first under `""`. Import the framework inside methods only: the class attributes describe the flavour and must be
    readable without the framework.

    Attributes:
        framework: The distribution whose version is the version of the agent; None for agents of this project.
        registry: Where that distribution is installed from: `pypi`, or `npm`. What npm installs never runs in Python:
            such a class only describes agents that are implemented in `agents.mjs` in the same folder.
        release: The version of an agent of this project that simulates releases of a framework; None for all others.
        releases: The simulated releases, oldest first: one class for each, with that `release`.
        capabilities: The names in `CAPABILITIES` that this flavour can express, and `native.NAME` for its stores.
            Derived if `missing` is set and `capabilities` is not: everything that is neither missing nor `OPTIONAL`,
            nor `DERIVED` from what is missing.
        missing: For every other capability, the API that is missing or refuses. The two together name each capability
            exactly once, apart from those `DERIVED` from a missing one. It may name what is `IMPLIED`, too.
        renames: The capabilities in `RENAMED` that it claims: it gives those agents the names in `Blueprint.names`.
        recovery: How its framework's documentation says to go on after the process died. Without it, `crash` is not
            claimed.
        wire_rules: The provider rules that its model inputs follow: `chat`, `responses`, `messages`, or `none`.
        native: The protocol over which it reaches `Blueprint.model` even if none is asked for; empty if it then asks
            the world, with a model class of the framework.
        protocols: The protocols over which it reaches `Blueprint.model` with the framework's own clients; for each, the
            capabilities that are missing there in addition, with the API that is missing or refuses.
        attached_missing: The capabilities that an attached agent lacks in addition, with the reason.
        synchronous: The synchronous methods that run an attached agent if `Attachment.sync` is set; empty if the
            framework has none, or only such as wait for the asynchronous ones.
        given_options: The arguments of the framework's run call that it gives itself, so that a user cannot.
        issues: Where to report a bug of the framework.
        stores: Its durable stores: the NAME in `native.NAME`, and a description.
        packages: Import names of the framework, by which an attached object or an imported framework is recognised.
        connects: It reaches tools of the kind `mcp` with the framework's own client, at `Blueprint.servers`.
        unavailable: Why its agents cannot run as the user's project is, and what to do; None if they can.
        inputs: Files of the user's project that its runs depend on, besides the scenario, or texts that are no path.
        process: The number of the process that it lives in; None for this one. Adapters leave it alone.
    """

    framework: ClassVar[str | None] = None
    registry: ClassVar[str] = "pypi"
    release: ClassVar[str | None] = None
    releases: ClassVar[tuple[type[Agent], ...]] = ()
    capabilities: ClassVar[frozenset[str]] = frozenset()
    missing: ClassVar[Mapping[str, str]] = {}
    attached_missing: ClassVar[Mapping[str, str]] = {}
    synchronous: ClassVar[str] = ""
    given_options: ClassVar[tuple[str, ...]] = ()
    renames: ClassVar[tuple[str, ...]] = ()
    recovery: ClassVar[str] = ""
    wire_rules: ClassVar[str] = "chat"
    native: ClassVar[str] = ""
    protocols: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    issues: ClassVar[str] = ""
    stores: ClassVar[Mapping[str, str]] = {}
    packages: ClassVar[tuple[str, ...]] = ()
    connects: ClassVar[bool] = False
    unavailable: ClassVar[tuple[str, str] | None] = None
    inputs: ClassVar[tuple[str, ...]] = ()
    process: int | None = None

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        """Build the framework's objects out of *blueprint*: empty state, nothing run yet."""
        self.world = world
        self.blueprint = blueprint

    @abstractmethod
    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """Take one turn: hand *text* and *decisions* to the framework and run until it pauses, finishes or fails.

        Both may be given, either may be missing, and with neither the framework is asked to resume without an answer.
        All of these are real steps of a scenario. *decisions* are in the caller's order and may contradict each other.

        With *stream*, use the framework's streaming API, consume it to the end, report what it shows with
        `World.shown`, and take the requests from where a consumer of the stream finds them.

        With the capability `hang_up` the task that takes the turn may be cancelled wherever it waits: let that through
        to the framework and out again, and keep what a caller of the framework would have then.

        Raises:
            Unsupported: This combination cannot be expressed.
            Exception: Any other exception means the turn failed; let the framework's own exception propagate.
        """

    @abstractmethod
    async def pending(self) -> Sequence[Request]:
        """Return the open requests in this session's state, as the framework lists them without running anything."""

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """Put decisions into the state without resuming, so that they can be saved.

        A later `turn(None, ())` resumes with them.
        """
        raise Unsupported("stage")

    async def cancel(self) -> None:
        """Give up what is pending, in the framework's own way."""
        raise Unsupported("cancel")

    async def trim(self, keep: int) -> None:
        """Let the framework's own history trimming keep the last *keep* messages."""
        raise Unsupported("trim")

    async def dump(self) -> str:
        """Return everything the caller must keep between two turns, as text.

        For `json` that is the framework's own serialization, for `native.NAME` the reference into the store. With
        history `append`, return only what the last turn added. It must also work after a failed and after a finished
        turn.
        """
        raise Unsupported("serialize.json")

    async def load(self, parts: Sequence[str]) -> None:
        """Restore what `dump` returned: one text, or with history `append` all of them in order.

        Called on a new agent, before its first turn.
        """
        raise Unsupported("serialize.json")

    async def recover(self, parts: Sequence[str]) -> None:
        """Restore a session whose process was killed in a turn that came after `dump`, as `recovery` says.

        Called on a new agent, before its first turn, and only if a durable store of the framework has the state.
        """
        await self.load(parts)

    async def copy_from(self, other: Agent) -> None:
        """Take a deep copy of *other*'s state, for serialize mode `copy`.

        Called on a new agent, before its first turn.
        """
        raise Unsupported("serialize.copy")

    async def another_session(self, world: World) -> Agent:
        """Return a second, empty session on the same framework objects (agent, model, tools), recorded by *world*."""
        raise Unsupported("sessions")

    def tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools of this agent: those of the blueprint, or what was found on an attached agent."""
        return self.blueprint.tools

    def earlier_turns(self) -> int | None:
        """Return how many earlier messages of the caller the model is told of, if the agent's settings limit that.

        It counts those of finished turns, for an attached agent that begins anew with each message, or trims its
        history by itself, on purpose. None means all of them.
        """
        return None

    async def close(self) -> None:
        """Release open clients, files and background tasks.

        It may take as long as a run may (`--time-limit`); after that it is stopped, and `run-ends` warns.
        """

    @classmethod
    def owns(cls, subject: object) -> bool:
        """Return whether *subject* is an agent object of this framework, judged by the packages of its classes.

        An application may have derived the class of its agent from one of the framework.
        """
        return any(kind.__module__.split(".")[0] in cls.packages for kind in type(subject).__mro__)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        if "capabilities" not in own and ("missing" in own or ("stores" in own and cls.missing)):
            lacking = frozenset(cls.missing) | _derive_lacking(cls)
            cls.capabilities = _known_capabilities(cls) - lacking - (frozenset(OPTIONAL) - frozenset(cls.renames))
        if "capabilities" in own or "missing" in own:
            _validate_capabilities(cls)


def _known_capabilities(cls: type[Agent]) -> frozenset[str]:
    known = frozenset(CAPABILITIES) | {f"native.{name}" for name in cls.stores}
    return known if cls.recovery else known - {"crash"}


def _derive_lacking(cls: type[Agent]) -> frozenset[str]:
    """Return the capabilities that *cls* lacks because it lacks others, also for want of `recovery`."""
    missing = lacking = frozenset(cls.missing) | (frozenset() if cls.recovery else {"crash"})
    while more := {name for name, (base, _) in DERIVED.items() if base in lacking} - lacking:
        lacking |= more
    return lacking - missing


def _validate_capabilities(cls: type[Agent]) -> None:
    claimed, missing, known = cls.capabilities, frozenset(cls.missing), _known_capabilities(cls)
    optional = frozenset(OPTIONAL) | _derive_lacking(cls)
    problems = {
        "unknown": (claimed | missing - frozenset(IMPLIED)) - known - {"crash"},
        "claimed and missing": claimed & missing,
        "neither claimed nor missing": known - claimed - missing - optional,
        "unknown protocols": frozenset(cls.protocols) - frozenset(PROTOCOLS),
        "unknown over a protocol": frozenset(name for lacks in cls.protocols.values() for name in lacks) - known,
    }
    lines = [f"{problem}: {', '.join(sorted(names))}" for problem, names in problems.items() if names]
    if lines:
        raise TypeError(f"Invalid capabilities of {cls.__module__}.{cls.__qualname__}: " + "; ".join(lines))

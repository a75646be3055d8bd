"""Messages of the host protocol: each call and notice with its parameters and its answer.

`docs/host-protocol.md` describes them; `docs/host-protocol.schema.json` is generated from the tables below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..contract.metadata import Facts
from ..contract.types import (
    MAIN,
    Blueprint,
    Decision,
    ElicitationAnswer,
    Finished,
    Item,
    ModelAddress,
    Paused,
    Reply,
    Request,
    ToolSpec,
)

PROTOCOL_VERSION = 1
"""The version of the protocol; both ends must have the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first call, once.

    Attributes:
        protocol: The version of the protocol that the harness uses.
        process: The number that the harness gives to this process; handles of requests carry it.
        agent: What to drive: `module:Class`, or an adapter of this package as `NAME` or `NAME.FLAVOUR`.
        limit: The seconds that the harness may take for an answer.
    """

    protocol: int
    process: int
    agent: str
    limit: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The answer to `Hello`.

    Attributes:
        pid: The operating system's number of the process.
        how: `forked` from a process that had imported the framework, or `started` from nothing.
        language: What the process runs on, with its version.
    """

    protocol: int
    pid: int
    facts: Facts
    how: str = "started"
    language: str = ""


# --- the harness calls the agent --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Build an agent with empty state; the harness chooses its session number."""

    session: int
    blueprint: Blueprint


@dataclass(frozen=True, slots=True, kw_only=True)
class AnotherSession:
    """Build a second, empty session on the framework objects of *session*; *model* is as in its `Blueprint`."""

    session: int
    new: int
    model: ModelAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFrom:
    """Take a deep copy of the state of *other*, a session of the same process."""

    session: int
    other: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeTurn:
    """Take one turn.

    Attributes:
        stops_when_shown: The process is killed when its stream has shown something, and goes no further until then.
        dies_in_write: The process has to end by the signal SIGXFSZ, in the middle of a write that a limit on the size
            of files cuts off, and to write nothing of its own meanwhile.
    """

    session: int
    text: str | None = None
    decisions: tuple[Decision, ...] = ()
    stream: bool = False
    stops_when_shown: bool = False
    dies_in_write: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Put decisions into the state without resuming."""

    session: int
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trim:
    """Let the framework's own trimming keep the last *keep* messages."""

    session: int
    keep: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Restore what `dump` returned.

    Attributes:
        crashed: The process of the agent that dumped it was killed meanwhile, so that a store of the framework may hold
            more.
    """

    session: int
    parts: tuple[str, ...]
    crashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSession:
    """A command about one session, without further parameters."""

    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReal:
    """Run the tool body that `RunTool.real` announced under that number."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """The end of a turn; exactly one of the two is set. A turn that failed is answered with an error."""

    paused: Paused | None = None
    finished: Finished | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools of the agent, and how many earlier messages its model is told of; None for all of them."""

    tools: tuple[ToolSpec, ...] = ()
    earlier_turns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The open requests."""

    requests: tuple[Request, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state that the caller must keep."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """The result of a tool."""

    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The answer without content."""


# --- the agent calls the harness --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AskModel:
    """Ask the scripted model; the answer is a `Reply`.

    Attributes:
        inside: For an agent that a user's own tool runs: the number of the body, as in `RunTool.real`.
    """

    session: int
    items: tuple[Item, ...] = ()
    agent: str = MAIN
    stream: bool = False
    tools: tuple[str, ...] = ()
    inside: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTool:
    """Execute a tool.

    Attributes:
        real: For a user's own tool: the number under which the harness calls its body with `real`.
        elicited: The answer to what the execution asked, which goes on with it.
    """

    session: int
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    call_id: str | None = None
    agent: str = MAIN
    real: int | None = None
    elicited: ElicitationAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The result of the tool; with *kept*, that of its own body, which never left the agent's process."""

    value: Any = None
    kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicit:
    """Ask the caller what an MCP server wants to know in the middle of a call; the answer is an `ElicitationAnswer`.

    Attributes:
        form: The JSON Schema of the object that the caller shall fill in.
        url: The address that the caller shall open.
    """

    session: int
    message: str
    form: Mapping[str, Any] | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskGate:
    """Ask the policy about a call.

    Attributes:
        slowly: The framework can wait for the signal that the condition waits for.
    """

    session: int
    tool: str
    arguments: Any = None
    call_id: str | None = None
    agent: str = MAIN
    slowly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """Whether the call needs approval."""

    needed: bool


# --- notices ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """The agent's side answered the policy itself: *answer*, or the text that it *raised*."""

    session: int
    tool: str
    arguments: Any = None
    call_id: str | None = None
    agent: str = MAIN
    answer: bool | None = None
    raised: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A stream showed something to its consumer."""

    session: int
    what: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Stop a call of the sender that is still open; it is answered all the same."""

    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """A call of the other side, which blocks, has to wait for something; it is answered later."""

    call: int


COMMANDS: dict[str, tuple[type[Any], type[Any]]] = {
    "hello": (Hello, Welcome),
    "build": (Build, Tools),
    "another_session": (AnotherSession, Tools),
    "copy_from": (CopyFrom, Done),
    "turn": (TakeTurn, TurnEnded),
    "stage": (Stage, Done),
    "pending": (OfSession, Pending),
    "cancel": (OfSession, Done),
    "trim": (Trim, Done),
    "dump": (OfSession, State),
    "load": (Load, Done),
    "close": (OfSession, Done),
    "real": (RunReal, Value),
}
"""The calls of the harness: parameters and answer."""

CALLBACKS: dict[str, tuple[type[Any], type[Any]]] = {
    "model": (AskModel, Reply),
    "run": (RunTool, Ran),
    "gate": (AskGate, GateAnswer),
    "elicit": (Elicit, ElicitationAnswer),
}
"""The calls of the agent's side: parameters and answer."""

NOTICES: dict[str, type[Any]] = {"gated": Gated, "shown": Shown, "stop": Stop}
"""The notices of the agent's side."""

NOTICES_TO_AGENT: dict[str, type[Any]] = {"stop": Stop, "waits": Waits}
"""The notices of the harness."""

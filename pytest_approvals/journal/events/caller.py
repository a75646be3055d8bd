"""What is seen on the caller's side: turns, decisions, what is shown, signals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .event import Event, event


@event
@dataclass(slots=True, kw_only=True)
class TurnStart(Event):
    """The caller's input was handed over; *turn* numbers turns, so that two at the same time are told apart."""

    kind: ClassVar[str] = "turn.start"
    turn: int
    text: str | None = None
    decisions: list[int] = field(default_factory=list)
    """The positions of the `caller.decide` events that go in with this turn."""
    stream: bool = False


@event
@dataclass(slots=True, kw_only=True)
class TurnEnd(Event):
    """
    The turn came to its end.

    Attributes:
        outcome: `paused`, `finished`, `failed` or `timeout`.
        requests: What surfaced, each `{q, id, call_id, tool, arguments, kind, server, agent, label}`; a request that
            was open before keeps its *q*.
        error: Type and message of what was raised.
    """

    kind: ClassVar[str] = "turn.end"
    turn: int
    outcome: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    output: Any = None
    text: str | None = None
    error: list[str] | None = None


@event
@dataclass(slots=True, kw_only=True)
class Decide(Event):
    """
    A decision was made; it takes effect with the turn or the staging that names its position.

    Attributes:
        q: The request, as the harness numbered it; None for a decision about nothing that was asked.
        id: The request id that was handed over: the framework's, or an unknown one.
        shows: The tool and the arguments that the request handed over says, where they are not those that were asked.
        source: `held`, `restored` or `rebuilt`: the copy that the answer was made from.
        oracle: Who decided; `script` for the caller's script.
        missing: The oracle had no answer, so this rejection stands in its place.
    """

    kind: ClassVar[str] = "caller.decide"
    verdict: str
    q: str | None = None
    id: str | None = None
    label: str | None = None
    reason: str | None = None
    arguments: dict[str, Any] | None = None
    tool: str | None = None
    raw: Any = None
    shows: dict[str, Any] | None = None
    source: str = "held"
    oracle: str = "script"
    missing: bool | None = None


@event
@dataclass(slots=True, kw_only=True)
class Staged(Event):
    """Decisions were put into the state; *error* where that failed."""

    kind: ClassVar[str] = "caller.stage"
    decisions: list[int]
    error: list[str] | None = None


@event
@dataclass(slots=True, kw_only=True)
class Cancelled(Event):
    """The caller gave up what was pending; *error* where that failed."""

    kind: ClassVar[str] = "caller.cancel"
    error: list[str] | None = None


@event
@dataclass(slots=True, kw_only=True)
class HungUp(Event):
    """The caller hung up: the turn was cancelled while it ran, at *place* (`started c1`, `model`)."""

    kind: ClassVar[str] = "caller.hang_up"
    turn: int
    place: str


@event
@dataclass(slots=True, kw_only=True)
class Shown(Event):
    """A stream showed something to its consumer."""

    kind: ClassVar[str] = "caller.shown"
    turn: int
    what: str
    id: str | None = None
    tool: str | None = None
    text: str | None = None


@event
@dataclass(slots=True, kw_only=True)
class Skipped(Event):
    """A step of the script, or one of its answers, could not be played: *why* says what was missing."""

    kind: ClassVar[str] = "caller.skip"
    step: str
    why: str
    label: str | None = None


@event
@dataclass(slots=True, kw_only=True)
class Stuck(Event):
    """The oracle answered everything *rounds* times over and the same requests are still there."""

    kind: ClassVar[str] = "caller.stuck"
    rounds: int
    requests: list[str]


@event
@dataclass(slots=True, kw_only=True)
class Signalled(Event):
    """The caller gave a signal."""

    kind: ClassVar[str] = "caller.signal"
    name: str

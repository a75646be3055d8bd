"""What every event has, and the way between events and lines of a journal.

The frame of a journal: its header, the starts and losses of agents, the end of the run.

What is seen on the caller's side: turns, decisions, what is shown, signals.

What is seen on the model's side: requests, answers, failures and refusals.

What is seen on the tools' side: gates, and executions with their starts and ends.

What is seen on the store's side: saves and restores, and what was cut off the history.

The events of a journal.

An event says what was seen on one of the four sides of the agent under test; it holds facts only. Turn number, fork and
occurrence of a call are derived by `calls.py`, never stored. Events are slotted and write themselves: they are made in
the hot path of every run.

`n` is the position in the journal, from 1. `session` is empty but in scenarios with several sessions. `x` numbers
executions, `q` numbers requests as they surface (`q1`, `q2`, ...), `label` is what the scenario calls a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

JOURNAL_FORMAT = 1
"""The version of the journal format, in every header."""


@dataclass(slots=True, kw_only=True)
class Event:
    """The root of all events."""

    kind: ClassVar[str] = ""
    names: ClassVar[tuple[str, ...]] = ()
    n: int = 0
    session: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Gives the event as it stands in a journal; fields that hold None or an empty text are left out."""
        written: dict[str, Any] = {"event": self.kind, "n": self.n}
        for name in self.names:
            value = getattr(self, name)
            if value is not None and value != "":
                written[name] = value
        return written


EVENTS: dict[str, type[Event]] = {}
"""The event classes by their names in a journal."""


def register_event(cls: type[Event]) -> type[Event]:
    """Puts a class among the events, and notes the names of its fields once."""
    cls.names = tuple(part.name for part in fields(cls) if part.name != "n")
    EVENTS[cls.kind] = cls
    return cls


def event_from_dict(written: Mapping[str, Any]) -> Event:
    """
    Makes an event of what `Event.to_dict` gave.

    Errors:
        KeyError: No event has that name.
        TypeError: A field is unknown or missing.
    """
    given = dict(written)
    cls = EVENTS[given.pop("event")]
    return cls(**given)


@register_event
@dataclass(slots=True, kw_only=True)
class Header(Event):
    """
    What ran; always the first event.

    Attributes:
        agent: The agent as it was named; *framework*, *version* and *where* say what it was in truth.
        tools: By name, that of another agent's tool as `AGENT/NAME`: `approval` (a word or the fields of a condition),
            `parameters` (name to type, required, default), `kind`, `server`, `agent`, `runs`.
        answer: The fields of the answer that the main agent has to end with, as parameters; None where it is text.
        limits: Where the framework itself must stop a turn: `model_replies`, `tool_calls`; None where it need not.
        observes: The kinds of events that whoever recorded the journal could see; None for all of them.
    """

    kind: ClassVar[str] = "header"
    format: int = JOURNAL_FORMAT
    scenario: str
    agent: str
    framework: str | None = None
    version: str | None = None
    where: str | None = None
    variant: dict[str, Any] = field(default_factory=dict)
    tools: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, Any] | None = None
    wire_rules: str = "none"
    capabilities: list[str] = field(default_factory=list)
    reaches: dict[str, int] = field(default_factory=dict)
    expect: dict[str, Any] = field(default_factory=dict)
    fakes: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int] | None = None
    observes: list[str] | None = None
    seed: int = 0

    def can_observe(self, kind: type[Event]) -> bool:
        """Whether whoever recorded the journal could see events of that kind."""
        return self.observes is None or kind.kind in self.observes


@register_event
@dataclass(slots=True, kw_only=True)
class AgentStart(Event):
    """
    An agent was built or built anew.

    Attributes:
        how: `built`, `copied`, `restored`, `fresh`, `cold` or `session`.
        parameters: By the header's names of the tools, the parameters of those that take others than it declares.
    """

    kind: ClassVar[str] = "agent.start"
    tools: list[str]
    how: str = "built"
    process: int | None = None
    parameters: dict[str, Any] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class AgentLost(Event):
    """
    The agent's process died, hung, or broke the contract: *what* says how. A verdict about the harness or the adapter,
    never about a requirement.
    """

    kind: ClassVar[str] = "agent.lost"
    what: str
    stderr: str = ""


@register_event
@dataclass(slots=True, kw_only=True)
class RunEnd(Event):
    """
    The run is over; always the last event.

    Attributes:
        how: `completed`, `left` (the caller left on purpose), `timeout`, `interrupted`, or `broken` (the harness could
            not go on; *error* says why).
        pending: The requests that the agent still lists, as in `TurnEnd.requests`.
        error: Its type and message.
    """

    kind: ClassVar[str] = "run.end"
    how: str = "completed"
    pending: list[dict[str, Any]] = field(default_factory=list)
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class TurnStart(Event):
    """The caller's input was handed over; *turn* numbers turns, so that two at the same time are told apart."""

    kind: ClassVar[str] = "turn.start"
    turn: int
    text: str | None = None
    decisions: list[int] = field(default_factory=list)
    """The positions of the `caller.decide` events that go in with this turn."""
    stream: bool = False


@register_event
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


@register_event
@dataclass(slots=True, kw_only=True)
class DecisionMade(Event):
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


@register_event
@dataclass(slots=True, kw_only=True)
class DecisionsStaged(Event):
    """Decisions were put into the state; *error* where that failed."""

    kind: ClassVar[str] = "caller.stage"
    decisions: list[int]
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class PendingCancelled(Event):
    """The caller gave up what was pending; *error* where that failed."""

    kind: ClassVar[str] = "caller.cancel"
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class CallerHungUp(Event):
    """The caller hung up: the turn was cancelled while it ran, at *place* (`started c1`, `model`)."""

    kind: ClassVar[str] = "caller.hang_up"
    turn: int
    place: str


@register_event
@dataclass(slots=True, kw_only=True)
class StreamShown(Event):
    """A stream showed something to its consumer."""

    kind: ClassVar[str] = "caller.shown"
    turn: int
    what: str
    id: str | None = None
    tool: str | None = None
    text: str | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class StepSkipped(Event):
    """A step of the script, or one of its answers, could not be played: *why* says what was missing."""

    kind: ClassVar[str] = "caller.skip"
    step: str
    why: str
    label: str | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class CallerStuck(Event):
    """The oracle answered everything *rounds* times over and the same requests are still there."""

    kind: ClassVar[str] = "caller.stuck"
    rounds: int
    requests: list[str]


@register_event
@dataclass(slots=True, kw_only=True)
class SignalSent(Event):
    """The caller gave a signal."""

    kind: ClassVar[str] = "caller.signal"
    name: str


@register_event
@dataclass(slots=True, kw_only=True)
class ModelRequest(Event):
    """
    The model was asked; exactly one of the next four kinds follows, with the same *m*.

    Attributes:
        m: Numbers the questions to the model.
        conversation: Which conversation: the agent's name, with the label of the call that runs it where it is nested:
            `main`, `o1/helper`.
        items: The complete input, each `{kind, id, tool, arguments, text, approved, message}` without what is None.
        tools: The tools that the model was offered.
    """

    kind: ClassVar[str] = "model.request"
    m: int
    conversation: str
    agent: str
    items: list[dict[str, Any]]
    tools: list[str] = field(default_factory=list)
    stream: bool = False


@register_event
@dataclass(slots=True, kw_only=True)
class ModelAnswer(Event):
    """
    The model replied; each call is `{label, id, tool, arguments, kind, server}`, each hosted result `{label, output,
    error}`; *answer* is a structured one.
    """

    kind: ClassVar[str] = "model.answer"
    m: int
    conversation: str
    say: str | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    answer: dict[str, Any] | None = None
    hosted: list[dict[str, Any]] = field(default_factory=list)


@register_event
@dataclass(slots=True, kw_only=True)
class ModelFailure(Event):
    """
    The model failed as the script says; *shown* counts the pieces of the stream that came before.

    Attributes:
        how: A name in `failures.BREAKS`, where there is no status and it is not `disconnect`; `hung_up` where nobody
            waited for the answer.
    """

    kind: ClassVar[str] = "model.failure"
    m: int
    conversation: str
    status: int
    shown: int | None = None
    how: str | None = None
    retry_after: float | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class ModelRefusal(Event):
    """The model refused its input as a real provider does; *broken* holds `{rule, ids, text}` for each rule."""

    kind: ClassVar[str] = "model.refusal"
    m: int
    conversation: str
    broken: list[dict[str, Any]]


@register_event
@dataclass(slots=True, kw_only=True)
class ModelExhausted(Event):
    """
    The model was asked once more than its script has replies; *limit* where the harness' own limit of model calls was
    reached.
    """

    kind: ClassVar[str] = "model.exhausted"
    m: int
    conversation: str
    limit: int | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class PolicyAsked(Event):
    """The framework asked the policy about a call; *answer* is None where the policy raised."""

    kind: ClassVar[str] = "tool.gate"
    tool: str
    arguments: Any
    call_id: str | None
    agent: str = "main"
    answer: bool | None = None
    raised: str | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class ToolStart(Event):
    """
    A tool's body was entered; *by* is `agent`, or `provider` for a hosted call. *real* where a person's own tool ran.
    """

    kind: ClassVar[str] = "tool.start"
    x: int
    tool: str
    arguments: Any
    call_id: str | None = None
    agent: str = "main"
    by: str = "agent"
    real: bool | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class ToolEnd(Event):
    """The execution *x* ended: `returned`, `raised`, `asked` (it wants a second approval), or `cancelled`."""

    kind: ClassVar[str] = "tool.end"
    x: int
    how: str = "returned"
    result: Any = None
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class StateSaved(Event):
    """The state was saved; *error* where that failed."""

    kind: ClassVar[str] = "store.save"
    name: str
    mode: str
    size: int | None = None
    digest: str | None = None
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class StateRestored(Event):
    """
    A save was taken up; *pending* is what the agent lists right after, as in `TurnEnd.requests`; *again* is the digest
    of saving at once again.
    """

    kind: ClassVar[str] = "store.restore"
    name: str
    mode: str
    pending: list[dict[str, Any]] = field(default_factory=list)
    again: str | None = None
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class StateRewritten(Event):
    """The text of a save says *new* in place of *old*, in so many *places*: everywhere, where it is shown, or not."""

    kind: ClassVar[str] = "store.rewrite"
    name: str
    old: str
    new: str
    where: str
    places: int


@register_event
@dataclass(slots=True, kw_only=True)
class HistoryTrimmed(Event):
    """The framework trimmed its history to the last *keep* messages; *error* where that failed."""

    kind: ClassVar[str] = "store.trim"
    keep: int
    error: list[str] | None = None


__all__ = [
    "EVENTS",
    "JOURNAL_FORMAT",
    "AgentLost",
    "AgentStart",
    "CallerHungUp",
    "CallerStuck",
    "DecisionMade",
    "DecisionsStaged",
    "Event",
    "Header",
    "HistoryTrimmed",
    "ModelAnswer",
    "ModelExhausted",
    "ModelFailure",
    "ModelRefusal",
    "ModelRequest",
    "PendingCancelled",
    "PolicyAsked",
    "RunEnd",
    "SignalSent",
    "StateRestored",
    "StateRewritten",
    "StateSaved",
    "StepSkipped",
    "StreamShown",
    "ToolEnd",
    "ToolStart",
    "TurnEnd",
    "TurnStart",
    "event_from_dict",
]

"""Events of a journal: what was seen on the four sides of the agent under test.

The sides are the caller, the model, the tools and the store; around them is the frame: header, starts of agents, end.
An event holds facts only. Turn number, branch and occurrence of a call are derived by `history_builder.py`, never
stored. Events are slotted and serialize themselves, because they are made in the hot path of every run.

`n` is the position in the journal, from 1. `session` is empty except in scenarios with several sessions. `x` numbers
executions, `q` numbers requests as they surface (`q1`, `q2`, ...), `label` is what the scenario calls a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

JOURNAL_FORMAT = 1
"""The version of the journal format, in every header."""

SIGNAL_MISSING = "SignalMissing"
"""In the error of a run that timed out: a tool waited for a signal that its story does not give before."""


@dataclass(slots=True, kw_only=True)
class Event:
    """Base class of all events."""

    kind: ClassVar[str] = ""
    names: ClassVar[tuple[str, ...]] = ()
    required: ClassVar[frozenset[str]] = frozenset()
    blank: ClassVar[frozenset[str]] = frozenset()
    n: int = 0
    session: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the event as it is written to a journal.

        Fields that hold None or an empty text are left out if that is their default.
        """
        written: dict[str, Any] = {"event": self.kind, "n": self.n}
        for name in self.names:
            value = getattr(self, name)
            if name in self.required or not (value is None or (value == "" and name in self.blank)):
                written[name] = value
        return written


EVENTS: dict[str, type[Event]] = {}
"""The event classes by their names in a journal."""


def register_event(cls: type[Event]) -> type[Event]:
    """Add a class to `EVENTS`, and store the names of its fields once."""
    cls.names = tuple(part.name for part in fields(cls) if part.name != "n")
    cls.blank = frozenset(part.name for part in fields(cls) if part.default == "")
    cls.required = frozenset(
        part.name for part in fields(cls) if part.default is MISSING and part.default_factory is MISSING
    )
    EVENTS[cls.kind] = cls
    return cls


def event_from_dict(written: Mapping[str, Any]) -> Event:
    """Return the event that `Event.to_dict` wrote.

    Raises:
        KeyError: No event has that name.
        TypeError: A field is unknown or missing.
    """
    values = dict(written)
    cls = EVENTS[values.pop("event")]
    return cls(**values)


@register_event
@dataclass(slots=True, kw_only=True)
class Header(Event):
    """What ran; always the first event.

    Attributes:
        agent: The agent as it was named; *framework*, *version* and *where* say what really ran.
        tools: By name, that of another agent's tool as `AGENT/NAME`: `approval` (a word or the fields of a condition),
            `parameters` (name to type, required, default, constraints), `kind`, `server`, `agent`, `runs`, and
            `unlisted` if only a user's test tells of it.
        answer: The fields of the answer with which the main agent must end, as parameters; None for text.
        limits: When the framework itself must stop a turn: `model_replies`, `tool_calls`; None if it need not.
        earlier_turns: How many earlier messages of the caller the agent's own settings let its model see; None for all.
        observes: The kinds of events that the recorder could see; None for all of them.
        attached: A user's own agent ran, and not one that an adapter built of the scenario.
        sync: It was run by the framework's synchronous methods.
        holds_requests: A request that waits is in no saved state, so that a session is saved only while none does.
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
    earlier_turns: int | None = None
    observes: list[str] | None = None
    attached: bool = False
    sync: bool = False
    holds_requests: bool = False
    seed: int = 0

    def can_observe(self, kind: type[Event]) -> bool:
        """Return whether the recorder could see events of that kind."""
        return self.observes is None or kind.kind in self.observes


@register_event
@dataclass(slots=True, kw_only=True)
class AgentStart(Event):
    """An agent was built or rebuilt.

    Attributes:
        how: `built`, `copied`, `restored`, `fresh`, `cold` or `session`.
        parameters: By the header's names of the tools, the parameters of those that now differ from the declared ones.
        renamed: By the journal's names of the agents, the new names of those that were renamed.
        approvals: By the header's names of the tools, what the application now decides by the annotations of some:
            `always` or `never`.
        again: True if a caller has it restored although nothing has happened since the agent before it was.
    """

    kind: ClassVar[str] = "agent.start"
    tools: list[str]
    how: str = "built"
    process: int | None = None
    parameters: dict[str, Any] | None = None
    renamed: dict[str, str] | None = None
    approvals: dict[str, str] | None = None
    again: bool | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class AgentLost(Event):
    """The agent's process died, hung, or broke the contract: *what* says how.

    That is a verdict about the harness or the adapter, never about a requirement.
    """

    kind: ClassVar[str] = "agent.lost"
    what: str
    stderr: str = ""


@register_event
@dataclass(slots=True, kw_only=True)
class CloseTimeout(Event):
    """An agent of the session did not close in time: *what* says how long it was waited for.

    Only events of this class follow the end of a run, because agents are closed after it.
    """

    kind: ClassVar[str] = "agent.close_timeout"
    what: str


@register_event
@dataclass(slots=True, kw_only=True)
class RunEnd(Event):
    """The run is over; the last event but for agents that do not close.

    Attributes:
        how: `completed`, `left` (the caller left on purpose), `timeout`, `interrupted`, or `broken` (the harness could
            not continue; *error* says why).
        pending: The requests that the agent still lists, as in `TurnEnd.requests`.
        error: Its type and message; that of a timeout is `SIGNAL_MISSING` if the story itself holds a tool for ever.
    """

    kind: ClassVar[str] = "run.end"
    how: str = "completed"
    pending: list[dict[str, Any]] = field(default_factory=list)
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class TurnStart(Event):
    """The caller's input was handed over; *turn* numbers turns, so that concurrent ones can be told apart."""

    kind: ClassVar[str] = "turn.start"
    turn: int
    text: str | None = None
    decisions: list[int] = field(default_factory=list)
    """The positions of the `caller.decide` events that go in with this turn."""
    stream: bool = False


@register_event
@dataclass(slots=True, kw_only=True)
class TurnEnd(Event):
    """The turn ended.

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
    """A decision was made; it takes effect with the turn or the staging that names its position.

    Attributes:
        q: The request, as the harness numbered it; None for a decision about nothing that was asked.
        id: The request id that was handed over: the framework's, or an unknown one.
        shows: Tool and arguments of the request that was handed over, if they differ from those that were asked.
        source: `held`, `restored` or `rebuilt`: the copy from which the answer was made.
        oracle: Who decided; `script` for the caller's script.
        missing: The oracle had no answer, so this rejection takes its place.
        own: The agent was told all of it in words of its own, which the test says.
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
    own: bool | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class DecisionsStaged(Event):
    """Decisions were put into the state; *error* if that failed."""

    kind: ClassVar[str] = "caller.stage"
    decisions: list[int]
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class PendingCancelled(Event):
    """The caller gave up what was pending; *error* if that failed."""

    kind: ClassVar[str] = "caller.cancel"
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class CallerHungUp(Event):
    """The caller disconnected: the turn was cancelled while it ran, at *place* (`started c1`, `model`)."""

    kind: ClassVar[str] = "caller.hang_up"
    turn: int
    place: str


@register_event
@dataclass(slots=True, kw_only=True)
class AgentKilled(Event):
    """The process of the agent was killed while the turn ran, at *place* (`before c1`, `ended c1`, `model`)."""

    kind: ClassVar[str] = "agent.killed"
    turn: int
    place: str


@register_event
@dataclass(slots=True, kw_only=True)
class DiskFull(Event):
    """From now on until the turn has ended, the agent can store nothing: from *place* on (`write`, `write c1`).

    If it is *once* so, the agent can store again as soon as it comes to a call or a model request.
    """

    kind: ClassVar[str] = "store.full"
    turn: int
    place: str
    once: bool | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class StoreRolledBack(Event):
    """The store is as it was before *turn*: what was stored since is `lost`, or is not read yet, `stale` (*how*)."""

    kind: ClassVar[str] = "store.rolled_back"
    turn: int
    how: str


@register_event
@dataclass(slots=True, kw_only=True)
class AgentStopped(Event):
    """The process of the agent was stopped while the turn ran, at *place* (`before c1`, `ended c1`, `model`)."""

    kind: ClassVar[str] = "agent.stopped"
    turn: int
    place: str


@register_event
@dataclass(slots=True, kw_only=True)
class AgentWoken(Event):
    """The process of the agent goes on in the turn in which it was stopped."""

    kind: ClassVar[str] = "agent.woken"
    turn: int


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


NOT_SAVED = "nothing that was saved says"
"""Why a text is not changed in what was saved, before the text."""


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
    """The oracle answered everything *rounds* times and the same requests are still there."""

    kind: ClassVar[str] = "caller.stuck"
    rounds: int
    requests: list[str]


@register_event
@dataclass(slots=True, kw_only=True)
class SignalSent(Event):
    """The caller sent a signal."""

    kind: ClassVar[str] = "caller.signal"
    name: str


@register_event
@dataclass(slots=True, kw_only=True)
class ModelRequest(Event):
    """The model was asked; exactly one of the next four kinds follows, with the same *m*.

    Attributes:
        m: The number of the request.
        conversation: Which conversation: the agent's name, preceded by the label of the call that runs it if it is
            nested: `main`, `o1/helper`.
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
    """The model replied.

    Attributes:
        thoughts: Its reasoning, each piece `{id, text, signature, before}`: *text* is missing if only its encrypted
            form is shown, *signature* if the agent is sent none; *before* is the label of the call that it leads to,
            and missing if the text and all calls follow it.
        calls: Its calls, each `{label, id, tool, arguments, kind, server}`.
        answer: A structured answer.
        hosted: Hosted results, each `{label, output, error}`.
    """

    kind: ClassVar[str] = "model.answer"
    m: int
    conversation: str
    thoughts: list[dict[str, Any]] | None = None
    say: str | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    answer: dict[str, Any] | None = None
    hosted: list[dict[str, Any]] = field(default_factory=list)


@register_event
@dataclass(slots=True, kw_only=True)
class ModelFailure(Event):
    """The model failed as the script says.

    Attributes:
        shown: How many parts of the stream came before.
        how: The kind of failure if there is no status and it is not `disconnect`; `hung_up` if the caller did not wait.
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
    """The model was asked once more than its script has replies.

    Attributes:
        limit: The harness' own limit of model calls, if that was reached.
    """

    kind: ClassVar[str] = "model.exhausted"
    m: int
    conversation: str
    limit: int | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class PolicyAsked(Event):
    """The framework asked the policy about a call; *answer* is None if the policy raised."""

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
    """A tool's body was entered.

    Attributes:
        by: `agent`, or `provider` for a hosted call.
        real: The user's own tool ran.
        resumes: The execution that waited for an answer in its own body, which is entered again to read it.
    """

    kind: ClassVar[str] = "tool.start"
    x: int
    tool: str
    arguments: Any
    call_id: str | None = None
    agent: str = "main"
    by: str = "agent"
    real: bool | None = None
    resumes: int | None = None


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
class ElicitationAsked(Event):
    """The MCP server that runs the execution *x* asks the caller, by the agent's client.

    Attributes:
        form: The JSON Schema of the object to fill in.
        url: The address to open.
    """

    kind: ClassVar[str] = "tool.elicit"
    x: int
    message: str
    form: dict[str, Any] | None = None
    url: str | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class ElicitationShown(Event):
    """The agent showed its caller a question of an MCP server, and the caller answered.

    Attributes:
        x: The execution that asked this; None if none did.
        message, form, url: The question as it was shown.
        action: `accept`, `decline` or `cancel`.
        content: The fields that the caller filled in.
    """

    kind: ClassVar[str] = "caller.elicited"
    message: str
    action: str
    x: int | None = None
    form: dict[str, Any] | None = None
    url: str | None = None
    content: dict[str, Any] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class ElicitationAnswered(Event):
    """The MCP server got an answer to what the execution *x* asked.

    Attributes:
        action: `accept`, `decline`, `cancel`, or `refuse`: the client did not ask, as *error* says.
    """

    kind: ClassVar[str] = "tool.elicited"
    x: int
    action: str
    content: dict[str, Any] | None = None
    error: str | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class StateSaved(Event):
    """The state was saved; *error* if that failed."""

    kind: ClassVar[str] = "store.save"
    name: str
    mode: str
    size: int | None = None
    digest: str | None = None
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class StateRestored(Event):
    """A save was restored.

    Attributes:
        pending: What the agent lists right after, as in `TurnEnd.requests`.
        again: The digest of a save made right after.
        present: The save is a reference into a durable store that has moved on since, so that the session goes on from
            its present state; None if it does not.
        error: Type and message if restoring failed.
    """

    kind: ClassVar[str] = "store.restore"
    name: str
    mode: str
    pending: list[dict[str, Any]] = field(default_factory=list)
    again: str | None = None
    present: bool | None = None
    error: list[str] | None = None


@register_event
@dataclass(slots=True, kw_only=True)
class StateRewritten(Event):
    """The text of a save was changed from *old* to *new*.

    Attributes:
        where: Which text was changed: all of it, what is shown, or what is not shown.
        places: In how many places.
    """

    kind: ClassVar[str] = "store.rewrite"
    name: str
    old: str
    new: str
    where: str
    places: int


@register_event
@dataclass(slots=True, kw_only=True)
class HistoryTrimmed(Event):
    """The framework trimmed its history to the last *keep* messages; *error* if that failed."""

    kind: ClassVar[str] = "store.trim"
    keep: int
    error: list[str] | None = None


__all__ = [
    "EVENTS",
    "JOURNAL_FORMAT",
    "AgentKilled",
    "AgentLost",
    "AgentStart",
    "AgentStopped",
    "AgentWoken",
    "CallerHungUp",
    "CallerStuck",
    "CloseTimeout",
    "DecisionMade",
    "DecisionsStaged",
    "DiskFull",
    "ElicitationAnswered",
    "ElicitationAsked",
    "ElicitationShown",
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
    "StoreRolledBack",
    "StreamShown",
    "ToolEnd",
    "ToolStart",
    "TurnEnd",
    "TurnStart",
    "event_from_dict",
]

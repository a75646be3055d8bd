"""Data model of a recorded run: its turns, calls, requests, decisions and executions.

`history_builder.read_history(events)` derives it from a journal in one pass. What a check reads most:

    history.header, .end                 the first and the last event, or None
    history.turns                        RecordedTurn, in order: .outcome, .failed, .refused, .requests, .decisions
    history.calls                        RecordedCall, in the order in which the model made them
    history.find_call("c1")              one of them by its label, as the latest branch knows it
    history.exchanges                    Exchange: a model request and the reply to it
    history.executions                   Execution, in order; .call is None if no model call explains it
    history.elicitations                 RecordedElicitation: .execution, .asked, .shown, .answered
    history.requests                     SurfacedRequest; .call is None if it is about no known call
    history.decisions                    RecordedDecision: its request, its call and where it was handed in
    history.branches                     Branch: number, session, parent, save; 0 is the first one of a session
    history.saves, .restores             RecordedSave and RecordedRestore

    call.label, .session, .branch, .conversation, .agent, .occurrence, .id, .tool, .arguments, .kind, .server, .n
    call.declaration, .is_gated          the tool as the header declares it; whether the call needs approval
    call.is_gated_at(n)                  whether it needs approval, as far as was known at a position
    call.decision                        the decision in force at the end: explicit or standing, or None
    call.decision_at(n)                  the decision in force at a position
    call.effective_call_at(n)            tool and arguments as decided at a position
    call.requests                        [SurfacedRequest]: .q, .n (first surfaced), .listings [(n, entry)]
    call.decisions                       [RecordedDecision]: the explicit ones, in the caller's order
    call.executions                      [Execution]: .n, .end, .x, .how, .tool, .arguments, .result, .error
    call.deliveries                      [DeliveredResult]: each delivery of a result to the model: .n, .text

A rewind starts a new branch. Calls made before the save are copied into it with what had happened to them up to the
save, so `history.calls` holds such a call once per branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import Repr
from typing import Any, TypeVar, cast

from pytest_approvals.agent_side.contract.types import Approval, Condition, needs_approval
from pytest_approvals.journal.arguments import normalize_arguments
from pytest_approvals.journal.events import (
    AgentStart,
    DecisionMade,
    ElicitationAnswered,
    ElicitationAsked,
    ElicitationShown,
    Event,
    Header,
    ModelAnswer,
    PolicyAsked,
    RunEnd,
    StateRestored,
    StateSaved,
    StreamShown,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)

EventT = TypeVar("EventT", bound=Event)

APPROVING_VERDICTS = frozenset({"approve", "edit", "always"})
"""The verdicts that let a call run."""

REJECTING_VERDICTS = frozenset({"reject", "never"})
"""The verdicts that close a call."""

_VALUE_REPR = Repr()
"""Shortens values in reprs, which are one line each."""
_VALUE_REPR.maxstring = _VALUE_REPR.maxother = 60

END_POSITION = 1 << 62
"""A position behind every journal."""


@dataclass(slots=True, kw_only=True)
class ToolDeclaration:
    """One tool as the header declares it.

    Attributes:
        runs: The agent that its calls run.
        hands_over_to: The agent that takes the conversation over.
        place: Where its function stands in the user's own code; empty if that is not known.
        guarded: The user's own code around it may answer its calls in place of the body, or change its results.
        screened: The user's own code before it may refuse its calls without a question.
        unlisted: The agent does not list it, and only the user's test tells of it.
    """

    name: str
    approval: Approval
    parameters: Mapping[str, Mapping[str, Any]]
    kind: str = "function"
    server: str | None = None
    agent: str = "main"
    runs: str | None = None
    hands_over_to: str | None = None
    place: str = ""
    guarded: bool = False
    screened: bool = False
    unlisted: bool = False

    @classmethod
    def of(cls, name: str, written: Mapping[str, Any]) -> ToolDeclaration:
        """Read one entry of `Header.tools`; its name is the one that model and agent know."""
        approval = written.get("approval", "never")
        if isinstance(approval, Mapping):
            approval = Condition(**{key: _freeze(value) for key, value in approval.items()})
        return cls(
            name=written.get("called") or name.rpartition("/")[2],
            approval=approval,
            parameters=written.get("parameters") or {},
            kind=written.get("kind") or "function",
            server=written.get("server"),
            agent=written.get("agent") or "main",
            runs=written.get("runs"),
            hands_over_to=written.get("hands_over_to"),
            place=written.get("place") or "",
            guarded=bool(written.get("guarded")),
            screened=bool(written.get("screened")),
            unlisted=bool(written.get("unlisted")),
        )


def _shorten_call(tool: str, arguments: Any) -> str:
    if not isinstance(arguments, Mapping):
        return f"{tool}({_VALUE_REPR.repr(arguments)})"
    shown = [f"{name}={_VALUE_REPR.repr(value)}" for name, value in list(arguments.items())[: _VALUE_REPR.maxdict]]
    return f"{tool}({', '.join([*shown, *(['...'] if len(arguments) > len(shown) else [])])})"


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(slots=True, kw_only=True)
class SurfacedRequest:
    """A request that the agent surfaced.

    Attributes:
        q: The number that the harness gave it.
        n: Where it surfaced first.
        entry: The request as it was shown first: `{q, id, call_id, tool, arguments, kind, server, agent, label}`.
        listings: Every place where it was listed, with what was shown there: turn ends, restores, the end.
        call: The call that it is about; None if the model made no such call.
    """

    q: str
    n: int
    session: str
    branch: int
    entry: Mapping[str, Any]
    listings: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    call: RecordedCall | None = None

    def __repr__(self) -> str:
        return f"<request {self.q} for {_shorten_call(self.tool, self.arguments)}>"

    @property
    def tool(self) -> str:
        """The tool that it shows."""
        return str(self.entry.get("tool", ""))

    @property
    def arguments(self) -> Any:
        """The arguments that it shows."""
        return self.entry.get("arguments")

    @property
    def label(self) -> str | None:
        """What the scenario calls the call that it is about."""
        return self.entry.get("label")


@dataclass(slots=True, kw_only=True)
class RecordedDecision:
    """A decision.

    Attributes:
        event: What the journal says.
        n: Where it was made.
        request: The request that it answers; None if it answers no surfaced request.
        call: The call that it is about.
        handed_in_at: Where it was handed in: the start of a turn, or a staging; None if it was not.
        turn: The turn in which it takes effect; for a staged decision the next one.
        staged: It was put into the state before that turn.
        staging_failed: Putting it into the state failed.
        withdrawn_at: Where the caller gave up what was pending while it was staged; no turn has to act on it.
    """

    event: DecisionMade
    n: int
    verdict: str
    request: SurfacedRequest | None
    call: RecordedCall | None
    handed_in_at: int | None = None
    turn: RecordedTurn | None = None
    staged: bool = False
    staging_failed: bool = False
    withdrawn_at: int | None = None

    def __repr__(self) -> str:
        about = f" of {self.call.label}" if self.call is not None else ""
        return f"<decision {self.verdict}{about}>"

    @property
    def approves(self) -> bool:
        """Whether it lets the call run; a plain true in place of a decision counts, too."""
        return self._meaning is True or self._meaning in APPROVING_VERDICTS

    @property
    def rejects(self) -> bool:
        """Whether it closes the call."""
        return self._meaning in REJECTING_VERDICTS

    @property
    def _meaning(self) -> object:
        """Its verdict; of a raw value the word or the truth that it holds, since `approve` as such is a decision."""
        if self.verdict != "raw":
            return self.verdict
        raw = self.event.raw.get("verdict") if isinstance(self.event.raw, dict) else None
        # Only hashable values are looked up among the verdicts.
        return raw if isinstance(raw, str | bool) else None

    @property
    def refused(self) -> bool:
        """Whether the agent refused it: the turn that took it failed before it reached a model or a tool."""
        return self.staging_failed or (self.turn is not None and self.turn.refused)

    @property
    def shown_tool(self) -> str | None:
        """The tool that its request showed last before it; None if it answers no surfaced request."""
        if self.request is None:
            return None
        return next((entry.get("tool") for n, entry in reversed(self.request.listings) if n < self.n), None)

    def is_about(self, call: RecordedCall) -> bool:
        """Return whether it was made about a call, or about the one of an earlier branch that this one is a copy of."""
        own = self.call
        if own is None or own is call:
            return own is call
        return (own.label, own.n, own.session) == (call.label, call.n, call.session)

    @property
    def is_replaced(self) -> bool:
        """Whether it was put into the state, and another one about the same call came before it took effect."""
        if not self.staged or self.turn is None or self.call is None:
            return False
        since = self.handed_in_at or 0
        return any(other.call is self.call and (other.handed_in_at or 0) > since for other in self.turn.decisions)

    def is_in_force(self, n: int) -> bool:
        """Return whether it was handed in before position *n*, and neither refused nor given up by then."""
        if self.handed_in_at is None or self.handed_in_at >= n or self.refused:
            return False
        return self.withdrawn_at is None or n <= self.withdrawn_at


@dataclass(slots=True, kw_only=True)
class Execution:
    """One execution of a tool.

    For a call that runs another agent it represents that agent's work: *x* is 0, *start* is None, and it begins with
    the first request to that agent's model.

    Attributes:
        n: The position of its start.
        x: Its number; executions are numbered as they begin.
        by: `agent`, or `provider` for a hosted call.
        ended: The position of its end.
        how: `open`, `returned`, `raised`, `asked` or `cancelled`.
    """

    n: int
    x: int
    session: str
    branch: int
    tool: str
    arguments: Any
    call_id: str | None = None
    agent: str = "main"
    by: str = "agent"
    start: ToolStart | None = None
    end: ToolEnd | None = None
    call: RecordedCall | None = None
    turn: RecordedTurn | None = None
    ended: int | None = None
    how: str = "open"

    def __repr__(self) -> str:
        call = f"{self.call.label} " if self.call is not None else ""
        end = f" {_VALUE_REPR.repr(self.result)}" if self.how == "returned" else ""
        return f"<execution of {call}{_shorten_call(self.tool, self.arguments)}: {self.how}{end}>"

    @property
    def asks_itself(self) -> bool:
        """Whether the body is a user's own, which was entered to ask."""
        return self.how == "asked" and self.start is not None and bool(self.start.real)

    @property
    def is_resumed(self) -> bool:
        """Whether its own body asked before and is entered again with the answer; what it does with it is not seen."""
        return self.start is not None and self.start.resumes is not None

    @property
    def result(self) -> Any:
        """What it returned."""
        return self.end.result if self.end is not None else None

    @property
    def error(self) -> list[str] | None:
        """Type and message of what it raised."""
        return self.end.error if self.end is not None else None


@dataclass(slots=True, kw_only=True)
class RecordedElicitation:
    """A question of an MCP server in the middle of an execution.

    Attributes:
        execution: The execution that asks; None if the caller is shown what no server asks.
        asked: What the server asks; None likewise.
        shown: Every time that the caller was shown it.
        answered: What the server got; None if it got nothing.
    """

    execution: Execution | None = None
    asked: ElicitationAsked | None = None
    shown: list[ElicitationShown] = field(default_factory=list)
    answered: ElicitationAnswered | None = None


@dataclass(slots=True, kw_only=True)
class DeliveredResult:
    """A result of a call that reached the model.

    Attributes:
        n: The position of the model request that holds it, or for a hosted call of the reply that reports it.
        text: What the model is told.
        item: Its index in that input; None for a hosted result in a reply.
        second: Another result of the same call precedes it in the same input.
    """

    n: int
    text: str | None
    item: int | None = None
    second: bool = False


class _NotComputed:
    """Marks a value that has not been computed yet."""


_NOT_COMPUTED = _NotComputed()


@dataclass(slots=True, kw_only=True)
class RecordedCall:
    """One occurrence of a call, in one branch of one session.

    Attributes:
        label: What the scenario calls it: `c1`, `o1/c1` in a nested conversation.
        occurrence: 1 for the first call with its id in its conversation.
        id: The id that the model gave it.
        n: The position of the reply that made it.
        answer: That reply.
        declaration: Its tool; None if the header does not declare it.
        latest_approval: What the application decided by the annotations of the tool since a restart; None if nothing
            has changed since.
        gates: What the policy answered about it.
        requests: The requests about it.
        decisions: The explicit decisions about it, in the caller's order.
        standing_decisions: The standing decisions that cover it; the list is shared by all calls that they cover.
        former_standing: Those that covered it up to a position, at which a changed save showed it with another tool.
        executions: The executions of its tool on its behalf.
        deliveries: The results that the model was given for it.
        approval_responses: For a hosted call: where the provider was sent an answer to its request, and whether it
            approved.
        latest_parameters: While a journal is read, the parameters of its tool since the agent was started last; None
            if they are as declared.
    """

    label: str
    session: str
    branch: int
    conversation: str
    agent: str
    occurrence: int
    id: str | None
    tool: str
    arguments: Any
    n: int
    answer: ModelAnswer
    kind: str = "function"
    server: str | None = None
    declaration: ToolDeclaration | None = None
    turn: RecordedTurn | None = None
    gates: list[PolicyAsked] = field(default_factory=list)
    requests: list[SurfacedRequest] = field(default_factory=list)
    decisions: list[RecordedDecision] = field(default_factory=list)
    standing_decisions: list[RecordedDecision] = field(default_factory=list)
    former_standing: list[tuple[int, list[RecordedDecision]]] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    deliveries: list[DeliveredResult] = field(default_factory=list)
    approval_responses: list[tuple[int, bool]] = field(default_factory=list)
    latest_parameters: Mapping[str, Mapping[str, Any]] | None = None
    latest_approval: Approval | None = None
    _gated: bool | None = None
    _decision: RecordedDecision | _NotComputed | None = _NOT_COMPUTED

    def __repr__(self) -> str:
        return f"<call {self.label} {_shorten_call(self.tool, self.arguments)}>"

    @property
    def parameters(self) -> Mapping[str, Mapping[str, Any]]:
        """The declared parameters of its tool."""
        return self.declaration.parameters if self.declaration is not None else {}

    @property
    def approval(self) -> Approval:
        """Whether calls of its tool needed approval when it was made; those of a tool that is not declared do not."""
        if self.latest_approval is not None:
            return self.latest_approval
        return self.declaration.approval if self.declaration is not None else "never"

    @property
    def possible_parameters(self) -> Sequence[Mapping[str, Mapping[str, Any]]]:
        """By which its arguments can have been read, while a journal is read: the declared and the latest ones."""
        return (self.parameters,) if self.latest_parameters is None else (self.parameters, self.latest_parameters)

    @property
    def is_gated(self) -> bool:
        """Whether it needs approval, by the last answer of the policy, or by the declaration if none was asked.

        The answer is cached; ask only when the journal was read to its end.
        """
        if self._gated is None:
            self._gated = self.is_gated_at(END_POSITION)
        return self._gated

    def exchange_decisions(self, other: RecordedCall) -> None:
        """Exchange requests and decisions with another call."""
        self.requests, other.requests = other.requests, self.requests
        self.decisions, other.decisions = other.decisions, self.decisions
        for call in (self, other):
            call._decision = _NOT_COMPUTED
            for request in call.requests:
                request.call = call
            for decision in call.decisions:
                decision.call = call

    @property
    def decision(self) -> RecordedDecision | None:
        """The decision in force at the end; cached like `is_gated`."""
        if self._decision is _NOT_COMPUTED:
            self._decision = self.decision_at(END_POSITION) if self.decisions or self.standing_decisions else None
        return self._decision  # type: ignore[return-value]  # the marker was just replaced

    def is_gated_at(self, n: int) -> bool:
        """Return whether it needs approval as far as was known at position *n*.

        A policy that raised keeps the gate closed. A tool that is not declared has no gate.
        """
        approval = self.approval
        if approval == "always" or approval == "never":
            return approval == "always"
        answered = [gate for gate in self.gates if gate.n < n]
        if answered:
            return answered[-1].answer is not False
        if approval == Condition():
            # The framework's own condition shows only by what it asks about.
            return any(request.n < n for request in self.requests)
        return needs_approval(approval, self.arguments)

    def needed_approval_for(self, execution: Execution) -> bool:
        """Return whether it needed approval to run as *execution* did.

        Either as far as was known then, or for the arguments that ran, which may not be those that the policy was
        asked about.
        """
        return self.is_gated_at(execution.n) or self._would_be_gated(execution.arguments)

    @property
    def may_be_gated(self) -> bool:
        """Whether a policy may want approval for it, with the arguments as written or as coerced."""
        return (
            self.is_gated
            or any(gate.answer is not False for gate in self.gates)
            or self._would_be_gated(normalize_arguments(self.arguments, self.parameters))
        )

    def _would_be_gated(self, arguments: Any) -> bool:
        approval = self.approval
        # Other conditions do not depend on the arguments.
        compares = isinstance(approval, Condition) and approval.argument is not None
        return compares and isinstance(arguments, Mapping) and needs_approval(approval, arguments)

    def decision_at(self, n: int) -> RecordedDecision | None:
        """Return the decision in force at position *n*, or None.

        That is the last explicit one that was handed in and not refused, else a standing one. A decision that came
        after the call was settled has no effect, unless the call was asked about again. Of two that contradict each
        other in one submission the rejection counts. A standing one counts in place of an explicit one that
        was lost, in a crash or with a full disk, if the call was listed as open once more before the standing one came.
        """
        chosen: RecordedDecision | None = None
        for decision in self.decisions:
            if decision.is_in_force(n) and (chosen is None or self._replaces(decision, chosen)):
                chosen = decision
        if chosen is None:
            return self._standing_decision_at(n)
        turn = chosen.turn
        if turn is None or not (turn.crashed or turn.unstored_from == ""):
            return chosen
        standing = self._standing_decision_at(n)
        is_lost = standing is not None and self.is_requested_between(turn.ended + 1, standing.n)
        return standing if is_lost else chosen

    def _standing_decision_at(self, n: int) -> RecordedDecision | None:
        replaced = None
        for decision in reversed(self._standing_decisions_at(n)):
            if decision.is_in_force(n) and not self._was_told_before(decision):
                if not decision.is_replaced:
                    return decision
                replaced = replaced or decision
        # Agents differ in whether a replaced one still stands for the calls that come later.
        return replaced

    def _standing_decisions_at(self, n: int) -> Sequence[RecordedDecision]:
        former = (decisions for until, decisions in self.former_standing if n <= until)
        return next(former, self.standing_decisions)

    def _was_told_before(self, decision: RecordedDecision) -> bool:
        """Return whether its model was told of the call before a standing decision, which covers what comes later."""
        taken = decision.handed_in_at or 0
        told = [*(delivery.n for delivery in self.deliveries), *(n for n, _ in self.approval_responses)]
        first = min(told, default=taken)
        return first < taken and not self.is_requested_between(first, taken)

    def _replaces(self, later: RecordedDecision, earlier: RecordedDecision) -> bool:
        # Two decisions in one submission: a rejection is never replaced.
        if later.handed_in_at == earlier.handed_in_at:
            return not earlier.rejects
        settled = self.settling_position(earlier)
        assert later.handed_in_at is not None
        return settled is None or later.handed_in_at < settled or self.is_requested_between(settled, later.handed_in_at)

    def settling_position(self, decision: RecordedDecision) -> int | None:
        """Return where *decision* settled the call, or None.

        An approval settles it when the execution returned; a rejection when the model was told, or before that when the
        turn that took it ended without failing and without listing the request again.
        """
        taken = decision.handed_in_at
        if taken is None or decision.refused:
            return None
        if decision.approves:
            return next(
                (
                    execution.ended
                    for execution in self.executions
                    if execution.n > taken and execution.how == "returned"
                ),
                None,
            )
        settled = [delivery.n for delivery in self.deliveries if delivery.n > taken][:1]
        end = decision.turn.end if decision.turn is not None and decision.rejects else None
        if end is not None and end.outcome not in ("failed", "timeout") and not self.is_listed_at(end.n):
            settled.append(end.n)
        return min(settled, default=None)

    def _edit_before_question(self, approval: RecordedDecision) -> RecordedDecision | None:
        """Return the edit with which the execution began that asked the question which *approval* answers."""
        taken = approval.handed_in_at or 0
        asked = [execution.n for execution in self.executions if execution.how == "asked" and execution.n < taken]
        edits = [each for each in self.decisions if each.verdict == "edit" and asked and each.is_in_force(asked[-1])]
        return edits[-1] if edits else None

    def effective_call_at(self, n: int) -> tuple[str, Any]:
        """Return tool and arguments with which it should run at position *n*: those of an edit, else the model's.

        A body that asks again after an edit goes on with what it began with when that is approved. An edit that names
        no tool is about the one that was shown, which may be another one than the model's in a changed save.
        """
        decision = self.decision_at(n)
        if decision is not None and decision.verdict != "edit" and decision.approves:
            decision = self._edit_before_question(decision)
        if decision is None or decision.verdict != "edit":
            return self.tool, self.arguments
        edited = decision.event.arguments
        tool = decision.event.tool or decision.shown_tool or self.tool
        return tool, self.arguments if edited is None else edited

    def is_listed_at(self, n: int) -> bool:
        """Return whether a request about it is listed at position *n*."""
        return any(at == n for request in self.requests for at, _ in request.listings)

    def is_requested_between(self, start: int, end: int) -> bool:
        """Return whether a request about it is listed from *start* to *end*."""
        return any(start <= at <= end for request in self.requests for at, _ in request.listings)

    @property
    def first_return(self) -> Execution | None:
        """Its first execution that returned."""
        return next((execution for execution in self.executions if execution.how == "returned"), None)


@dataclass(slots=True, kw_only=True)
class Branch:
    """One branch of a session's history.

    Attributes:
        number: 0 for the first branch of a session; unique within the session.
        session: The session.
        parent: The branch that it left; None for the first.
        save: The position of the save that it restored.
        n: Where it began.
        mode: How the state was kept: `copy`, `json`, `native.NAME`; empty for the first branch.
        forgets: The store has lost what the parent has stored since, or does not show it.
    """

    number: int
    session: str
    parent: int | None = None
    save: int | None = None
    n: int = 0
    mode: str = ""
    forgets: bool = False

    @property
    def shares_store(self) -> bool:
        """Whether it is kept in one durable store with its parent, so that an agent has to know of both."""
        return self.mode.startswith("native.") and not self.forgets

    @property
    def may_know_parent(self) -> bool:
        """Whether an agent may know of what its parent has done since, from its store or from elsewhere."""
        return self.mode.startswith("native.") or self.forgets


@dataclass(slots=True, kw_only=True)
class RecordedTurn:
    """A turn.

    Attributes:
        number: The number that the caller gave it; turns are numbered as they begin.
        decisions: What takes effect in it, staged decisions included.
        exchanges: Its model requests and their replies.
        executions: The tools that it entered.
        stream: What its stream showed.
        overlaps: Another turn of the same session ran at the same time.
        previous: The turn before it in its branch, that of a parent branch included.
        requested_calls: The calls that its end asks about.
        cut_off_at: Where it was cut off: the caller disconnected, so that it was cancelled, or the agent's process was
            killed; None if neither happened.
        crashed: It was cut off because the process was killed.
        was_over: It was over by then, and only its caller did not learn of its end.
        unstored_from: It could store nothing after the call with this label had returned, or from the beginning, if
            this is empty: its process died in the middle of the next write, or the disk was full; None if it could.
    """

    number: int
    session: str
    branch: int
    start: TurnStart
    end: TurnEnd | None = None
    decisions: list[RecordedDecision] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    stream: list[StreamShown] = field(default_factory=list)
    overlaps: bool = False
    previous: RecordedTurn | None = None
    requested_calls: list[RecordedCall] = field(default_factory=list)
    cut_off_at: int | None = None
    crashed: bool = False
    was_over: bool = False
    unstored_from: str | None = None

    def __repr__(self) -> str:
        return f"<turn {self.number}: {self.outcome}>"

    @property
    def outcome(self) -> str:
        """`paused`, `finished`, `failed`, `timeout`, or `open` if it has no end."""
        return self.end.outcome if self.end is not None else "open"

    @property
    def ended(self) -> int:
        """The position of its end; 0 if it has none."""
        return self.end.n if self.end is not None else 0

    @property
    def failed(self) -> bool:
        """Whether it ended with an error that the caller could see."""
        return self.end is not None and self.end.outcome == "failed"

    @property
    def refused(self) -> bool:
        """Whether it failed before it reached a model or a tool, by itself: a killed process refuses nothing."""
        return self.failed and not self.exchanges and not self.executions and not self.crashed

    @property
    def requests(self) -> Sequence[Mapping[str, Any]]:
        """What surfaced at its end."""
        return self.end.requests if self.end is not None else ()


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A model request and the reply to it.

    Attributes:
        n: The position of the request.
        m: The number of the request.
        reply: The answer, failure, refusal or exhaustion that followed; None if the journal ends before.
        placed_calls: The calls of the journal that the input contains, each with the index of its item.
        unanswered: Those of them that have no result in it.
        orphans: Indexes of results whose call is not in it.
        unknown_calls: Indexes of calls in it that the model never made.
        approvals: Indexes of approval requests and responses in it.
        previous: The exchange before it in the conversation, in the same branch.
        repeats_previous: The input begins with exactly the previous one.
        first_difference: Where the input stops repeating the previous one by kind, id and text; None if it repeats all.
    """

    n: int
    m: int
    session: str
    branch: int
    conversation: str
    agent: str
    items: Sequence[Mapping[str, Any]]
    tools: Sequence[str] = ()
    turn: RecordedTurn | None = None
    reply: Event | None = None
    placed_calls: list[tuple[int, RecordedCall]] = field(default_factory=list)
    unanswered: list[RecordedCall] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    unknown_calls: list[int] = field(default_factory=list)
    approvals: list[int] = field(default_factory=list)
    previous: Exchange | None = None
    repeats_previous: bool = False
    first_difference: int | None = None

    @property
    def answer(self) -> ModelAnswer | None:
        """The reply, if it is an answer."""
        return self.reply if isinstance(self.reply, ModelAnswer) else None

    @property
    def texts(self) -> list[str | None]:
        """The user messages of the input."""
        return [item.get("text") for item in self.items if item["kind"] == "user"]


@dataclass(slots=True, kw_only=True)
class RecordedSave:
    """A save, successful or not.

    Attributes:
        event: What the journal says.
        branch: The number of the branch that was saved.
        turn: The last turn of that branch; None if there was none.
    """

    event: StateSaved
    branch: int
    turn: RecordedTurn | None = None


@dataclass(slots=True, kw_only=True)
class RecordedRestore:
    """A restore, successful or not.

    Attributes:
        event: What the journal says.
        save: What was restored; None if the journal does not have it.
        n: The position whose state is restored: that of the save, the present one, or that before a turn that the store
            has lost or does not show.
        requested_calls: The calls that are asked about right after it.
        forgets: The store had lost what followed the save, or did not show it.
    """

    event: StateRestored
    save: RecordedSave | None = None
    n: int = 0
    forgets: bool = False
    requested_calls: list[RecordedCall] = field(default_factory=list)


@dataclass(slots=True)
class History:
    """What one journal tells; the module docstring lists what is in it.

    Attributes:
        events: The events from which it was built.
        events_by_class: The events by class, each in order, that no record here represents: skips, stages, gates, ...
        agent_starts: Every start of an agent: which tools there were from then on.
    """

    events: Sequence[Event]
    header: Header | None = None
    end: RunEnd | None = None
    declarations: dict[str, ToolDeclaration] = field(default_factory=dict)
    turns: list[RecordedTurn] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    elicitations: list[RecordedElicitation] = field(default_factory=list)
    requests: list[SurfacedRequest] = field(default_factory=list)
    decisions: list[RecordedDecision] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    saves: list[RecordedSave] = field(default_factory=list)
    restores: list[RecordedRestore] = field(default_factory=list)
    agent_starts: list[AgentStart] = field(default_factory=list)
    events_by_class: dict[type[Event], list[Event]] = field(default_factory=dict)

    @property
    def sessions(self) -> tuple[str, ...]:
        """The sessions, in the order in which they began."""
        return tuple(dict.fromkeys(branch.session for branch in self.branches))

    def find_call(self, label: str, session: str = "") -> RecordedCall | None:
        """Return the call of that label, as the latest branch that has it knows it."""
        matching = (call for call in reversed(self.calls) if call.label == label and call.session == session)
        return next(matching, None)

    def find_calls(self, label: str, session: str = "") -> Iterator[RecordedCall]:
        """Yield the call of that label in each branch."""
        return (call for call in self.calls if call.label == label and call.session == session)

    def events_of(self, kind: type[EventT]) -> Sequence[EventT]:
        """Return the events of a class, in order; only of those classes that no record here represents."""
        return cast("Sequence[EventT]", self.events_by_class.get(kind, ()))

    def tools_at(self, n: int, session: str = "") -> Sequence[str] | None:
        """Return the tools that the agent had at position *n*; None if the journal does not say."""
        build = self.agent_start_at(n, session)
        return build.tools if build is not None else None

    def parameters_at(self, call: RecordedCall, n: int, tool: str | None = None) -> Mapping[str, Mapping[str, Any]]:
        """Return the parameters that the tool of a call has at position *n*; they may have been others before.

        Args:
            call: The call.
            n: The position.
            tool: The tool that the call was changed to; by default its own.
        """
        declared, parameters = call.declaration, call.parameters
        if tool is not None and tool != call.tool:
            named = [known for known in self.declarations.values() if known.name == tool]
            declared = max(named, key=lambda known: known.agent == call.agent, default=None)
            parameters = declared.parameters if declared is not None else {}
        build = self.agent_start_at(n, call.session)
        others: Mapping[str, Mapping[str, Any]] = {} if build is None else build.parameters or {}
        return next((others[name] for name in others if self.declarations.get(name) is declared), parameters)

    def agent_start_at(self, n: int, session: str) -> AgentStart | None:
        """Return the start of the agent that a session had at position *n*; None if the journal does not say."""
        known = [build for build in self.agent_starts if build.n < n and build.session == session]
        return known[-1] if known else None

"""
The calls of a journal: everything that happened to one occurrence of a tool call, from being asked for to being told.

`History.of(events)` (history.py) derives them in one pass. What it gives:

    history.header, .end                the first and the last event, or None
    history.turns                       TurnSeen, in order; .outcome, .failed, .refused (derived), .requests, .decisions
    history.calls                       CallSeen, in the order in which the model made them
    history.call("c1"), .call("o1/c1")  one of them by its label, as the latest fork knows it
    history.exchanges                   Exchange: a question to the model and what came of it
    history.executions                  Execution, in order; .call is None where no call of the model stands behind it
    history.requests                    Asked: a surfaced request; .call is None where it is about no known call
    history.decisions                   Given: a decision, whom it reached and whether it was taken
    history.forks                       Fork: number, session, parent, save; 0 is the first line of a session
    history.saves, .restores            SaveSeen and RestoreSeen, with the turn before and with what was listed

    call.label, .session, .fork, .conversation, .agent, .occurrence, .id, .tool, .arguments, .kind, .server, .n
    call.declared, .gated, .gated_at(n)     what the header says of its tool; whether these arguments need approval
    call.decision                           the decision in force at the end: explicit or standing, or None
    call.asked                              [Asked]: .q, .n (first surfaced), .listed [(n, entry)]
    call.decisions                          [Given] in the caller's order; explicit ones
    call.decision_at(n)                     the decision in force at a position: explicit or standing, or None
    call.wanted_at(n)                       tool and arguments as decided at a position
    call.runs                               [Execution]: .n, .end, .x, .how, .tool, .arguments, .result, .error
    call.told                               [Told]: each delivery of a result to the model, .n, .text

A rewind forks the history: calls that were there at the save live on in both forks, with what happened up to the save.
Every fork's calls stand in `history.calls`; whatever happened before the save stands in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.conditions import Approval, Condition, needs_approval

from .events import Decide, Gate, ModelAnswer, ToolEnd, ToolStart

if TYPE_CHECKING:
    from .turns import TurnSeen

APPROVING = frozenset({"approve", "edit", "always"})
"""The verdicts that let a call run."""

REJECTING = frozenset({"reject", "never"})
"""The verdicts that close a call."""

END = 1 << 62
"""A position behind every journal."""


class _Unknown:
    """Stands for what was not worked out yet."""


_UNKNOWN = _Unknown()


@dataclass(slots=True, kw_only=True)
class Declared:
    """One tool as the header declares it."""

    name: str
    approval: Approval
    parameters: Mapping[str, Mapping[str, Any]]
    kind: str = "function"
    server: str | None = None
    agent: str = "main"
    runs: str | None = None

    @classmethod
    def of(cls, name: str, written: Mapping[str, Any]) -> Declared:
        """Reads one entry of `Header.tools`; its name is the one that model and agent know."""
        approval = written.get("approval", "never")
        if isinstance(approval, Mapping):
            approval = Condition(**{key: _frozen(value) for key, value in approval.items()})
        return cls(
            name=written.get("called") or name.rpartition("/")[2],
            approval=approval,
            parameters=written.get("parameters") or {},
            kind=written.get("kind") or "function",
            server=written.get("server"),
            agent=written.get("agent") or "main",
            runs=written.get("runs"),
        )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(slots=True, kw_only=True)
class Asked:
    """
    A surfaced request.

    Attributes:
        q: The harness' number of it.
        n: Where it surfaced first.
        entry: The request as it was shown first: `{q, id, call_id, tool, arguments, kind, server, agent, label}`.
        listed: Every place where it was listed, with what was shown there: turn ends, restores, the end.
        call: The call that it is about; None where it is about none that the model made.
    """

    q: str
    n: int
    session: str
    fork: int
    entry: Mapping[str, Any]
    listed: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    call: CallSeen | None = None

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
class Given:
    """
    A decision.

    Attributes:
        n: Where it was made.
        asked: The request that it answers; None where it answers nothing that was asked.
        call: The call that it is about.
        taken: Where it was handed in: the start of a turn, or a staging; None while it was not.
        turn: The turn that it takes effect in; for a staged decision the next one.
        staged: It was put into the state before that turn.
        lost: The staging failed.
    """

    event: Decide
    n: int
    verdict: str
    asked: Asked | None
    call: CallSeen | None
    taken: int | None = None
    turn: TurnSeen | None = None
    staged: bool = False
    lost: bool = False

    @property
    def approves(self) -> bool:
        """Whether it lets the call run; where a decision goes, a plain true may be one."""
        if self.verdict == "raw":
            return isinstance(self.event.raw, dict) and self.event.raw.get("verdict") is True
        return self.verdict in APPROVING

    @property
    def rejects(self) -> bool:
        """Whether it closes the call."""
        return self.verdict in REJECTING

    @property
    def refused(self) -> bool:
        """Whether the agent refused it: the turn that brought it reached neither model nor tool, and failed."""
        return self.lost or (self.turn is not None and self.turn.refused)

    def in_force(self, n: int) -> bool:
        """Whether it was handed in before position *n* and not refused."""
        return self.taken is not None and self.taken < n and not self.refused


@dataclass(slots=True, kw_only=True)
class Execution:
    """
    A tool's body was entered.

    For a call that runs another agent it stands for that agent's run: *x* is 0, *start* is None, and it begins with the
    first question to that agent's model.
    """

    n: int
    x: int
    session: str
    fork: int
    tool: str
    arguments: Any
    call_id: str | None = None
    agent: str = "main"
    by: str = "agent"
    start: ToolStart | None = None
    end: ToolEnd | None = None
    call: CallSeen | None = None
    turn: TurnSeen | None = None
    ended: int | None = None
    how: str = "open"

    @property
    def result(self) -> Any:
        """What it returned."""
        return self.end.result if self.end is not None else None

    @property
    def error(self) -> list[str] | None:
        """Type and message of what it raised."""
        return self.end.error if self.end is not None else None


@dataclass(slots=True, kw_only=True)
class Told:
    """
    A result of a call reached the model.

    Attributes:
        n: The position of the question whose input holds it, or for a hosted call of the reply that reports it.
        item: Its index in that input; None for a hosted result in a reply.
        second: Another result of the same call stands in the same input before it.
    """

    n: int
    text: str | None
    item: int | None = None
    second: bool = False


@dataclass(slots=True, kw_only=True)
class CallSeen:
    """One occurrence of a call, in one fork of one session."""

    label: str
    session: str
    fork: int
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
    declared: Declared | None = None
    turn: TurnSeen | None = None
    gates: list[Gate] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    decisions: list[Given] = field(default_factory=list)
    standing: list[Given] = field(default_factory=list)
    runs: list[Execution] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    responses: list[tuple[int, bool]] = field(default_factory=list)
    """For a hosted call: where the provider was sent an answer to its request, and whether it approved."""
    _gated: bool | None = None
    _decision: Given | _Unknown | None = _UNKNOWN

    @property
    def parameters(self) -> Mapping[str, Mapping[str, Any]]:
        """The declared parameters of its tool."""
        return self.declared.parameters if self.declared is not None else {}

    @property
    def gated(self) -> bool:
        """
        Whether it needs approval, by the last answer of the policy, or by the declaration where none was asked.

        It is kept; ask only when the journal was read to its end.
        """
        if self._gated is None:
            self._gated = self.gated_at(END)
        return self._gated

    @property
    def decision(self) -> Given | None:
        """The decision in force at the end; kept, as `gated` is."""
        if self._decision is _UNKNOWN:
            self._decision = self.decision_at(END) if self.decisions or self.standing else None
        return self._decision  # type: ignore[return-value]  # the marker was just replaced

    def gated_at(self, n: int) -> bool:
        """
        Whether it needs approval as far as it was known at position *n*.

        A policy that raised keeps the gate closed. A tool that nobody declared has no gate.
        """
        declared = self.declared
        if declared is None:
            return False
        approval = declared.approval
        if approval == "always" or approval == "never":
            return approval == "always"
        answered = [gate for gate in self.gates if gate.n < n]
        if answered:
            return answered[-1].answer is not False
        return needs_approval(approval, self.arguments)

    def decision_at(self, n: int) -> Given | None:
        """
        The decision in force at position *n*: the last explicit one that was handed in and not refused, else a standing
        one.

        A decision that came after the call was settled is none, unless the call had been asked about again. Of two that
        contradict each other in one submission the rejection counts.
        """
        chosen: Given | None = None
        for given in self.decisions:
            if given.in_force(n) and (chosen is None or self._replaces(given, chosen)):
                chosen = given
        if chosen is not None:
            return chosen
        for given in reversed(self.standing):
            if given.in_force(n):
                return given
        return None

    def _replaces(self, later: Given, earlier: Given) -> bool:
        if later.taken == earlier.taken:
            return not earlier.rejects
        settled = self.settled_by(earlier)
        assert later.taken is not None
        return settled is None or later.taken < settled or self.asked_between(settled, later.taken)

    def settled_by(self, given: Given) -> int | None:
        """
        Where *given* settled the call: its execution returned, or the turn that took the rejection ended without
        failing and without listing the request again; None where it did not.
        """
        taken = given.taken
        if taken is None or given.refused:
            return None
        if given.approves:
            return next((run.ended for run in self.runs if run.n > taken and run.how == "returned"), None)
        told = next((told.n for told in self.told if told.n > taken), None)
        if told is not None:
            return told
        turn = given.turn
        if not given.rejects or turn is None or turn.end is None or turn.end.outcome in ("failed", "timeout"):
            return None
        return None if self.listed_at(turn.end.n) else turn.end.n

    def wanted_at(self, n: int) -> tuple[str, Any]:
        """Tool and arguments with which it should run at position *n*: those of an edit, else those of the model."""
        given = self.decision_at(n)
        if given is None or given.verdict != "edit":
            return self.tool, self.arguments
        edited = given.event.arguments
        return given.event.tool or self.tool, self.arguments if edited is None else edited

    def listed_at(self, n: int) -> bool:
        """Whether a request about it is listed at position *n*."""
        return any(at == n for asked in self.asked for at, _ in asked.listed)

    def asked_between(self, start: int, end: int) -> bool:
        """Whether a request about it is listed after *start*, up to *end*."""
        return any(start <= at <= end for asked in self.asked for at, _ in asked.listed)

    @property
    def returned(self) -> Execution | None:
        """Its first execution that returned."""
        return next((run for run in self.runs if run.how == "returned"), None)

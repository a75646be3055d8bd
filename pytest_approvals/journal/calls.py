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

from pytest_approvals.agent_side.conditions import Condition, needs_approval

from .arguments import settled
from .events import Gate, ModelAnswer
from .records import APPROVING, END, REJECTING, Asked, Declared, Execution, Given, Told

if TYPE_CHECKING:
    from .turns import TurnSeen

__all__ = ["APPROVING", "END", "REJECTING", "Asked", "CallSeen", "Declared", "Execution", "Given", "Told"]


class _Unknown:
    """Stands for what was not worked out yet."""


_UNKNOWN = _Unknown()


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

    def gated_as(self, run: Execution) -> bool:
        """
        Whether it needed approval to run as *run* did: as far as it was known then, or for the arguments that ran,
        which may not be those that the policy was asked about.
        """
        return self.gated_at(run.n) or self._would_be_gated(run.arguments)

    @property
    def may_be_gated(self) -> bool:
        """Whether a policy may want approval for it, be it asked about the arguments as written or as coerced."""
        return (
            self.gated
            or any(gate.answer is not False for gate in self.gates)
            or self._would_be_gated(settled(self.arguments, self.parameters))
        )

    def _would_be_gated(self, arguments: Any) -> bool:
        approval = self.declared.approval if self.declared is not None else "never"
        compares = isinstance(approval, Condition) and approval.argument is not None
        return compares and isinstance(arguments, Mapping) and needs_approval(approval, arguments)

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

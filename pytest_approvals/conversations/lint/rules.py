"""Rules of the linter, checked in one pass over a conversation's call lifecycles.

A call that is still open at the end is reported as waiting if nothing came after it, because the conversation is
paused; otherwise it is a finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    DecisionEntry,
    DocumentNote,
    ExecutionEntry,
    JsonPath,
    OpaqueEntry,
    RequestEntry,
    ResultEntry,
    StoredConversation,
    TextEntry,
    format_path,
)
from pytest_approvals.conversations.lint.call_lifecycle import CallLifecycle, CallReader, OpenLifecycles
from pytest_approvals.conversations.lint.gates import Gate
from pytest_approvals.conversations.made_up_values import MadeUpValues, hide_secrets
from pytest_approvals.errors.printable import quote, shorten
from pytest_approvals.journal.history import APPROVING_VERDICTS

RULES = {
    "approval-before-execution": "a call that was asked about, or that a policy gates, runs only after its approval",
    "approved-runs": "an approved call does not have the result of a rejected one",
    "rejected-never-runs": "a rejected call has no result of a run",
    "runs-at-most-once": "a call that has run and returned does not run again",
    "arguments-as-approved": "what was decided, and what ran, has the tool and the arguments that were asked about",
    "request-shows-the-call": "a request shows the tool and the arguments of the call that it is about",
    "request-ids-unique": "two requests that are open at the same time have different ids",
    "call-ids-unique": "two calls that wait for their results at the same time have different ids",
    "pending-survives": "what waits for a decision is in all lists of a state that hold what waits",
    "history-not-rewritten": "a call that the model made is among the items of its run",
    "nothing-left-pending": "a request is decided before the conversation goes on",
    "invalid-decision-refused": "a decision answers a request that was made before it",
    "contradiction-not-executed": "a request has one decision, not two that contradict each other",
    "settled-stays-settled": "what is decided is not decided again",
    "result-delivered-once": "each call has one result",
    "result-matches-its-call": "a result belongs to a call made before it, of the tool it names, and to no other",
    "time-order": "a call runs after the model has been asked for it",
    "flags-agree": "all copies of a call say the same about whether somebody has dealt with it",
}
"""By slug, what must hold; slugs that are also checks of `pytest_approvals.checks` mean the same."""

WAITING = "waits"
"""The rule of notices about calls that are open at the end of a conversation: it is paused, which is not a mistake."""

ODD = "odd"
"""The rule of notices about irregularities of a document that are not mistakes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One finding or notice of the linter.

    Attributes:
        rule: The slug of the rule; `waits` or `odd` for notices, which are not mistakes.
        text: The problem, in one sentence.
        where: The place, in words.
        path: The place in the document.
        message: The number of the message; None for what is outside of messages.
        content: The number of the content in the message; None for what is outside of contents.
    """

    rule: str
    text: str
    where: str
    path: JsonPath
    message: int | None = None
    content: int | None = None

    @classmethod
    def at(
        cls,
        rule: str,
        text: str,
        conversation: StoredConversation,
        entry: ConversationEntry,
        other: ConversationEntry | None = None,
    ) -> LintFinding:
        """Create a finding about an entry; *other* is a second entry that it is about."""
        in_state = entry.message in conversation.state_paths
        return cls(
            rule=rule,
            text=text if other is None else f"{text} ({conversation.where(other)})",
            where=conversation.where(entry),
            path=conversation.path(entry),
            message=None if in_state else entry.message,
            content=entry.content if entry.content >= 0 and not in_state else None,
        )

    @classmethod
    def of_note(cls, note: DocumentNote) -> LintFinding:
        """Create the finding or the notice about an irregularity."""
        return cls(rule=note.rule or ODD, text=note.text, where=note.where or format_path(note.path), path=note.path)

    @property
    def is_mistake(self) -> bool:
        """Whether it makes the linter fail."""
        return self.rule in RULES


def lint_conversation(
    conversation: StoredConversation, gated: Sequence[str] = (), values: MadeUpValues | None = None
) -> list[LintFinding]:
    """Return the findings about one conversation, in the order of its messages.

    Args:
        conversation: The conversation.
        gated: Names of tools, or patterns, whose calls need approval, perhaps under a condition; see `Gate`.
        values: What is shown in place of the arguments' own values; by default only secrets are hidden.

    Raises:
        UsageError: A condition is none.
    """
    if values is not None:
        for value in conversation.values():
            values.avoid(value)
    findings = _ConversationLinter(conversation, gated, hide_secrets if values is None else values.replace).lint()
    return findings if len(findings) < 2 else sorted(findings, key=_sort_key)


def _sort_key(finding: LintFinding) -> tuple[float, int]:
    """Return the position of a finding; what is outside of messages comes last."""
    return (math.inf if finding.message is None else finding.message, finding.content or 0)


def _quote(call_id: str | None) -> str:
    return "None" if call_id is None else quote(call_id)


class _ConversationLinter:
    """Linter of one conversation.

    Attributes:
        round: The number of model responses and messages of the user so far.
        response_round: That number when the model last began a response.
        text_message: The message of the last text of the user; its texts are one.
        call_message: The message of the last call.
        is_model_speaking: The last entry belongs to a response of the model that may continue.
    """

    __slots__ = (
        "by_request",
        "call_message",
        "calls",
        "conversation",
        "findings",
        "gated",
        "is_model_speaking",
        "lifecycles",
        "response_round",
        "round",
        "text_message",
    )

    def __init__(
        self, conversation: StoredConversation, gated: Sequence[str], show: Callable[[Any], Any] = hide_secrets
    ) -> None:
        self.conversation = conversation
        self.gated = tuple(map(Gate.parse, gated))
        self.findings: list[LintFinding] = []
        self.calls = CallReader(show)
        self.lifecycles = OpenLifecycles()
        self.by_request: dict[str, CallLifecycle] = {}
        self.round = 0
        self.response_round = 0
        self.text_message = self.call_message = -1
        self.is_model_speaking = False

    def lint(self) -> list[LintFinding]:
        for entry in self.conversation.entries:
            kind = type(entry)
            # Half of all entries are texts, so they are handled here, without a function call for each.
            if kind is not TextEntry:
                _STEPS[kind](self, entry)
            elif entry.role == "user":  # type: ignore[attr-defined]
                self.is_model_speaking = False
                self.round += entry.message != self.text_message
                self.text_message = entry.message
            elif entry.role == "assistant":  # type: ignore[attr-defined]
                if not self.is_model_speaking:
                    self._continue_response()
                elif self.call_message < entry.message and self.lifecycles.open:
                    self._read_later_text(entry)  # type: ignore[arg-type]
        for lifecycle in self.lifecycles.unsettled():
            self._report_open(lifecycle)
        self.findings += map(LintFinding.of_note, self.conversation.notes)
        return self.findings

    def _report(self, rule: str, text: str, entry: ConversationEntry, other: ConversationEntry | None = None) -> None:
        self.findings.append(LintFinding.at(rule, text, self.conversation, entry, other))

    def _format(self, call: CallEntry | RequestEntry) -> str:
        return self.calls.format(call, call.tool)

    def _continue_response(self) -> None:
        """Begin a response of the model, or continue it."""
        if not self.is_model_speaking:
            self.is_model_speaking = True
            self.round += 1
            self.response_round = self.round

    def read_opaque(self, entry: OpaqueEntry) -> None:
        """Ignore an entry that plays no role in approvals."""

    def _read_later_text(self, entry: TextEntry) -> None:
        """Begin another response with a text in a later message than an open call, if messages are whole responses."""
        if entry.text and self.conversation.has_whole_responses:
            self.call_message = entry.message
            self.is_model_speaking = False
            self._continue_response()

    # --- calls and requests ---

    def read_call(self, entry: CallEntry) -> None:
        """Begin a lifecycle, or continue that of a request that was stored in place of the call."""
        lifecycles = self.lifecycles
        self.call_message = entry.message
        if not self.is_model_speaking and entry.kind == "function" and entry.id not in lifecycles.open:
            self._continue_response()
        if lifecycles.begin_function(entry, self.round):
            return
        # The provider may report a hosted call under another id, so its request is searched for in any case.
        may_be_known = entry.id in lifecycles.open or entry.kind == "hosted_mcp"
        lifecycle = lifecycles.find_placeholder(entry) if may_be_known else None
        if lifecycle is not None:
            lifecycle.call = entry
            tool, decided = lifecycle.decided_tool, lifecycle.decided_call
            if tool != entry.tool or not self.calls.arguments_match(decided, entry):
                text = f"the call is {self._format(entry)}, and {self.calls.format(decided, tool)} was decided about"
                self._report("arguments-as-approved", text, entry, lifecycle.decision or lifecycle.origin)
            return
        if not self.is_model_speaking:
            self._continue_response()
        if entry.id in lifecycles.open and entry.id is not None:
            text = f"call id {_quote(entry.id)} is used again while the call before has no result"
            self._report("call-ids-unique", text, entry, lifecycles.open[entry.id][0].origin)
        lifecycles.begin(entry.id, CallLifecycle(entry, self.round, None, entry))

    def read_request(self, entry: RequestEntry) -> None:
        """Add a request to the lifecycle of its call, or begin one if it is stored in place of the call."""
        is_in_state = entry.message in self.conversation.state_paths
        known = self.by_request.get(entry.id)
        if known is None or not (is_in_state or (known.result is None and known.decision is None)):
            lifecycle = self._lifecycle_of_request(entry, is_in_state=is_in_state)
            lifecycle.request = entry
            self.by_request[entry.id] = lifecycle
        elif not is_in_state or not self.calls.is_same_call(entry, known.origin):
            text = f"request id {quote(entry.id)} is used again while the request before is open"
            self._report("request-ids-unique", text, entry, known.request)
        elif known.result is not None:
            text = f"request {quote(entry.id)} is still kept as open, and its call has a result"
            self._report("settled-stays-settled", text, entry, known.result)

    def _lifecycle_of_request(self, entry: RequestEntry, *, is_in_state: bool) -> CallLifecycle:
        call_id = entry.call_id if entry.call_id is not None else entry.id
        lifecycle = self.lifecycles.find_unrequested(call_id)
        if lifecycle is not None:
            if not self.calls.is_same_call(entry, lifecycle.origin):
                call = self._format(lifecycle.origin)
                text = f"the request shows {self._format(entry)}, and the call is {call}"
                self._report("request-shows-the-call", text, entry, lifecycle.origin)
            return lifecycle
        if not entry.replaces_call and not self.conversation.is_continuation:
            text = f"the request is about call {quote(call_id)}, which nobody made, or which has its result"
            self._report("request-shows-the-call", text, entry)
        if not is_in_state:
            self._continue_response()
        lifecycle = CallLifecycle(entry, self.round)
        self.lifecycles.begin(call_id, lifecycle)
        return lifecycle

    # --- decisions ---

    def read_decision(self, entry: DecisionEntry) -> None:
        """Add a decision to the lifecycle of its request."""
        self.is_model_speaking = False
        lifecycle = self.by_request.get(entry.id)
        if lifecycle is None:
            if not self.conversation.is_continuation:
                text = f"a decision to {entry.verdict} answers request {quote(entry.id)}, which nobody made before it"
                self._report("invalid-decision-refused", text, entry)
            return
        if lifecycle.decision is not None:
            self._check_repeated_decision(lifecycle, lifecycle.decision, entry)
        elif lifecycle.result is not None:
            text = f"request {quote(entry.id)} is decided after its call has a result"
            self._report("settled-stays-settled", text, entry, lifecycle.result)
        lifecycle.decision, lifecycle.decision_round = entry, self.round
        assert lifecycle.request is not None
        self._check_decided_call(lifecycle.request, entry)

    def _check_repeated_decision(self, lifecycle: CallLifecycle, before: DecisionEntry, entry: DecisionEntry) -> None:
        same = before.verdict == entry.verdict and self.calls.arguments_match(before, entry)
        if same or lifecycle.result is not None:
            text = f"request {quote(entry.id)} is decided again: {entry.verdict} after {before.verdict}"
            self._report("settled-stays-settled", text, entry, before)
        else:
            verdicts = f"{before.verdict}, {entry.verdict}"
            text = f"request {quote(entry.id)} has decisions that contradict each other: {verdicts}"
            self._report("contradiction-not-executed", text, entry, before)

    def _check_decided_call(self, request: RequestEntry, entry: DecisionEntry) -> None:
        if entry.flagged is not None and request.flagged is not None and entry.flagged != request.flagged:
            which = "decision's" if entry.flagged else "request's"
            self._report("flags-agree", f"only the {which} copy of the call is flagged as dealt with", entry, request)
        if entry.verdict == "edit" or entry.arguments is None:
            return
        if entry.call_id is not None and request.call_id is not None and entry.call_id != request.call_id:
            text = f"the decision holds call {quote(entry.call_id)}, and the request is about {quote(request.call_id)}"
            self._report("arguments-as-approved", text, entry, request)
        elif entry.tool != request.tool or not self.calls.arguments_match(entry, request):
            decided = self.calls.format(entry, entry.tool or request.tool)
            text = f"the decision is about {decided}, and the request shows {self._format(request)}"
            self._report("arguments-as-approved", text, entry, request)

    # --- results ---

    def read_result(self, entry: ResultEntry) -> None:
        """End a lifecycle."""
        self.is_model_speaking = False
        lifecycle = self.lifecycles.end(entry)
        if lifecycle is None:
            self._report_orphan(entry)
            return
        if entry.tool is not None and entry.tool != lifecycle.origin.tool:
            tool, called = shorten(entry.tool), shorten(lifecycle.origin.tool)
            text = f"the result says to be of {tool}, and call {_quote(entry.call_id)} is of {called}"
            self._report("result-matches-its-call", text, entry, lifecycle.origin)
        decision = lifecycle.decision
        if entry.outcome == "denied" and decision is not None and decision.verdict in APPROVING_VERDICTS:
            text = f"{self._format(lifecycle.origin)} was decided with {decision.verdict}, and is said to be rejected"
            self._report("approved-runs", text, entry, decision)
        if entry.outcome == "interrupted":
            self._check_given_up(lifecycle, entry, "was interrupted")
        elif entry.outcome == "denied":
            if lifecycle.request is not None and lifecycle.request.needs_decision and self._shows_decisions(lifecycle):
                self._check_given_up(lifecycle, entry, "was rejected")
        elif lifecycle.execution is None and (lifecycle.request is not None or self.gated):
            # What ran is judged by its execution, if the conversation shows that.
            self._check_approval(lifecycle, entry)

    def _check_given_up(self, lifecycle: CallLifecycle, entry: ResultEntry, told: str) -> None:
        """Report a call that waited for a decision, and was given up without one."""
        is_undecided = lifecycle.decision is None and lifecycle.execution is None
        if is_undecided and (lifecycle.request is not None or self._is_gated(lifecycle, entry)):
            text = f"nobody decided about {self._format(lifecycle.origin)}, and the model is told that it {told}"
            self._report("nothing-left-pending", text, entry, lifecycle.request or lifecycle.origin)

    def _report_orphan(self, entry: ResultEntry) -> None:
        before = self.lifecycles.last_settled.get(entry.call_id)
        if before is not None:
            self._report(
                "result-delivered-once", f"call {_quote(entry.call_id)} has a second result", entry, before.result
            )
        elif not self.conversation.is_continuation:
            text = f"a result is for call {_quote(entry.call_id)}, which nobody made before it"
            self._report("result-matches-its-call", text, entry)

    def read_execution(self, entry: ExecutionEntry) -> None:
        """Judge an execution by what was decided about its call."""
        self.is_model_speaking = False
        lifecycle = self.lifecycles.find_executed(entry.call_id)
        if lifecycle is None:
            return
        before = lifecycle.execution
        if before is not None and before.outcome == "returned":
            if entry.outcome == "returned":
                text = f"{self._format(lifecycle.origin)} runs again, after it has returned"
                self._report("runs-at-most-once", text, entry, before)
            return
        lifecycle.execution = entry
        decided = lifecycle.decided_call
        if None not in (decided.arguments, entry.arguments) and not self.calls.arguments_match(decided, entry):
            ran, called = self.calls.format(entry, entry.tool), self.calls.format(decided, lifecycle.decided_tool)
            # A user may have edited the call, unless the conversation shows decisions.
            rule = "arguments-as-approved" if self.conversation.shows_decisions else ODD
            self._report(rule, f"{ran} ran, and the call is {called}", entry, lifecycle.decision or lifecycle.origin)
        if lifecycle.request is not None or self.gated:
            self._check_approval(lifecycle, entry)

    def _check_approval(self, lifecycle: CallLifecycle, entry: ResultEntry | ExecutionEntry) -> None:
        if lifecycle.decision is not None:
            verdict = lifecycle.decision.verdict
            if verdict not in APPROVING_VERDICTS and entry.outcome == "returned":
                text = f"{self._format(lifecycle.origin)} was decided with {verdict}, and has the result of a run"
                self._report("rejected-never-runs", text, entry, lifecycle.decision)
        elif lifecycle.request is not None and lifecycle.request.needs_decision and self._shows_decisions(lifecycle):
            text = f"{self._format(lifecycle.origin)} has a result, and nobody decided about its request"
            self._report("approval-before-execution", text, entry, lifecycle.request)
        elif self._is_unasked(lifecycle) and self._is_gated(lifecycle, entry):
            nowhere = "" if self.conversation.shows_decisions else "; this format never tells who approved a call"
            if lifecycle.origin.message < self.conversation.decided_from:
                nowhere = "; it is of an earlier run, whose decisions are stored elsewhere"
            text = f"{self._format(lifecycle.origin)} is gated, and has a result without an approval{nowhere}"
            self._report("approval-before-execution", text, entry, lifecycle.origin)

    def _is_gated(self, lifecycle: CallLifecycle, entry: ResultEntry | ExecutionEntry) -> bool:
        """Return whether the user's policy gates a call; what ran counts, if that is known."""
        call = lifecycle.decided_call
        arguments = (
            entry.arguments if isinstance(entry, ExecutionEntry) and entry.arguments is not None else call.arguments
        )
        names = [lifecycle.decided_tool]
        if lifecycle.origin.server is not None:
            # Claude Code knows the tool of a server by this name.
            names.append(f"mcp__{lifecycle.origin.server}__{lifecycle.decided_tool}")
        return any(gate.applies(name, arguments) for name in names for gate in self.gated)

    def _is_unasked(self, lifecycle: CallLifecycle) -> bool:
        """Return whether nobody approved, as far as is known: a trace may show the request and not its decision."""
        return lifecycle.request is None or not self.conversation.shows_executions

    def _shows_decisions(self, lifecycle: CallLifecycle) -> bool:
        """Return whether the format would show a decision about a call.

        The provider of a hosted call is sent the decision, so that every format shows it.
        """
        return self.conversation.shows_decisions or lifecycle.origin.kind == "hosted_mcp"

    # --- the end ---

    def _report_open(self, lifecycle: CallLifecycle) -> None:
        is_continued = lifecycle.round < self.round
        if lifecycle.decision is not None and lifecycle.decision.message not in self.conversation.state_paths:
            # The agent has not gone on yet if all that follows is what the user said with the decision. A decision
            # outside of messages is one that the agent has taken already.
            is_continued = lifecycle.round < self.response_round or lifecycle.decision_round + 1 < self.round
        request = lifecycle.request
        call, end = self._format(lifecycle.origin), ", and the conversation goes on"
        if request is not None and lifecycle.decision is None and request.flagged:
            self._report("flags-agree", f"{call} is flagged as dealt with, and nobody decided about it", request)
        elif request is not None and lifecycle.decision is None and request.needs_decision:
            if is_continued:
                self._report("nothing-left-pending", f"nobody decided about {call}{end}", request)
            else:
                self._report(WAITING, f"{call} waits for a decision", request)
        elif is_continued:
            self._report("result-delivered-once", f"{call} has no result{end}", lifecycle.origin)
        else:
            self._report(WAITING, f"{call} waits for its result", lifecycle.origin)


_STEPS: dict[type[ConversationEntry], Callable[[_ConversationLinter, Any], None]] = {
    OpaqueEntry: _ConversationLinter.read_opaque,
    CallEntry: _ConversationLinter.read_call,
    RequestEntry: _ConversationLinter.read_request,
    DecisionEntry: _ConversationLinter.read_decision,
    ExecutionEntry: _ConversationLinter.read_execution,
    ResultEntry: _ConversationLinter.read_result,
}

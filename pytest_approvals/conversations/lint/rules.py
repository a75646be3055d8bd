"""What lint finds, and the rules that it looks at.

The rules, looked at while the trails of a conversation are followed once from start to end.

What is still open at the end is told, where nothing came after it: the conversation is paused. Where something did, it
is a finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    DecisionEntry,
    DocumentNote,
    JsonPath,
    OpaqueEntry,
    RequestEntry,
    ResultEntry,
    StoredConversation,
    TextEntry,
    format_path,
)
from pytest_approvals.conversations.lint.call_lifecycle import (
    CallLifecycle,
    OpenLifecycles,
    format_short_call,
    format_stored_call,
    is_same_call,
)
from pytest_approvals.journal.arguments import arguments_match
from pytest_approvals.journal.history import APPROVING_VERDICTS

RULES = {
    "approval-before-execution": "a call that was asked about, or that a policy gates, runs only after its approval",
    "rejected-never-runs": "a rejected call has no result of a run",
    "arguments-as-approved": "what was decided, and what ran, has the tool and the arguments that were asked about",
    "request-shows-the-call": "a request shows the tool and the arguments of the call that it is about",
    "request-ids-unique": "two requests that are open at the same time have different ids",
    "call-ids-unique": "two calls that wait for their results at the same time have different ids",
    "nothing-left-pending": "a request is decided before the conversation goes on",
    "invalid-decision-refused": "a decision answers a request that was made before it",
    "contradiction-not-executed": "a request has one decision, not two that contradict each other",
    "settled-stays-settled": "what is decided is not decided again",
    "result-delivered-once": "each call has one result",
    "result-matches-its-call": "a result belongs to a call that was made before it, of the tool that it names",
    "flags-agree": "all copies of a call say the same about whether somebody has dealt with it",
}
"""By slug, what must hold; a slug that a check of the harness has means the same as there."""

WAITING = "waits"
"""What is told of calls that are open where a conversation ends: it is paused, which is no mistake."""

ODD = "odd"
"""What is told of a document that is no mistake, and that somebody may want to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """
    One thing that lint found.

    Attributes:
        rule: The slug of the rule; `waits` or `odd` for what is told and is no mistake.
        what: What is the matter, in one sentence.
        where: The place, for people.
        path: The place in the document.
        message, content: The numbers of the message and of the content in it; None for what stands outside of them.
    """

    rule: str
    what: str
    where: str
    path: JsonPath
    message: int | None = None
    content: int | None = None

    @classmethod
    def at(
        cls,
        rule: str,
        what: str,
        conversation: StoredConversation,
        entry: ConversationEntry,
        other: ConversationEntry | None = None,
    ) -> LintFinding:
        """Gives a finding about an entry; *other* is the place that it is also about."""
        beside = entry.message in conversation.beside
        return cls(
            rule=rule,
            what=what if other is None else f"{what} ({conversation.where(other)})",
            where=conversation.where(entry),
            path=conversation.path(entry),
            message=None if beside else entry.message,
            content=entry.content if entry.content >= 0 and not beside else None,
        )

    @classmethod
    def of_note(cls, note: DocumentNote) -> LintFinding:
        """Gives what is told about something odd."""
        return cls(rule=ODD, what=note.what, where=format_path(note.path), path=note.path)

    @property
    def is_mistake(self) -> bool:
        """Whether it lets lint fail."""
        return self.rule in RULES


def lint_conversation(conversation: StoredConversation, gated: Sequence[str] = ()) -> list[LintFinding]:
    """
    Gives what is found in one conversation, in the order of its places.

    Arguments:
        gated: Names of tools, or patterns, whose calls need approval.
    """
    found = _ConversationLinter(conversation, gated).judge()
    return found if len(found) < 2 else sorted(found, key=_sort_key)


def _sort_key(finding: LintFinding) -> tuple[float, int]:
    """Orders findings by their places; what stands beside the messages comes last."""
    return (math.inf if finding.message is None else finding.message, finding.content or 0)


class _ConversationLinter:
    """
    Goes through one conversation.

    Attributes:
        round: Counts the model's answers and the user's texts.
        model_spoke: The last that was said belongs to an answer of the model that may go on.
    """

    __slots__ = ("by_request", "conversation", "found", "gated", "model_spoke", "round", "trails")

    def __init__(self, conversation: StoredConversation, gated: Sequence[str]) -> None:
        self.conversation = conversation
        self.gated = gated
        self.found: list[LintFinding] = []
        self.trails = OpenLifecycles()
        self.by_request: dict[str, CallLifecycle] = {}
        self.round = 0
        self.model_spoke = False

    def judge(self) -> list[LintFinding]:
        for entry in self.conversation.entries:
            kind = type(entry)
            if kind is not TextEntry:
                _STEPS[kind](self, entry)
            elif entry.role == "user":  # type: ignore[attr-defined]  # half of all entries are texts, so no call here
                self.model_spoke = False
                self.round += 1
            elif not self.model_spoke and entry.role == "assistant":  # type: ignore[attr-defined]  # likewise
                self._model_speaks()
        for trail in self.trails:
            self._left_open(trail)
        self.found += map(LintFinding.of_note, self.conversation.notes)
        return self.found

    def _finds(self, rule: str, what: str, entry: ConversationEntry, other: ConversationEntry | None = None) -> None:
        self.found.append(LintFinding.at(rule, what, self.conversation, entry, other))

    def _model_speaks(self) -> None:
        """An answer of the model begins, or goes on."""
        if not self.model_spoke:
            self.model_spoke = True
            self.round += 1

    def opaque(self, entry: OpaqueEntry) -> None:
        """What is not understood changes nothing."""

    # --- calls and requests ---

    def called(self, entry: CallEntry) -> None:
        """A call begins a trail, or takes up the one of a request that stood for it."""
        trails = self.trails
        trail = trails.find_placeholder(entry) if entry.id in trails.open or entry.kind == "hosted_mcp" else None
        if trail is not None:
            trail.call = entry
            tool, arguments = trail.decided
            if tool != entry.tool or not arguments_match(arguments, entry.arguments):
                what = f"the call is {format_stored_call(entry)}, and {format_short_call(tool, arguments)} was decided about"
                self._finds("arguments-as-approved", what, entry, trail.decision or trail.made)
            return
        if not self.model_spoke:
            self._model_speaks()
        if entry.id in trails.open and entry.id is not None:
            what = f"call id {entry.id!r} is used again while the call before has no result"
            self._finds("call-ids-unique", what, entry, trails.open[entry.id][0].made)
        trails.begin(entry.id, CallLifecycle(entry, self.round, None, entry))

    def requested(self, entry: RequestEntry) -> None:
        """A request joins the trail of its call, or begins one where it stands for the call."""
        is_beside = entry.message in self.conversation.beside
        known = self.by_request.get(entry.id)
        if known is None or not (is_beside or (known.result is None and known.decision is None)):
            trail = self._asked_about(entry, is_beside=is_beside)
            trail.request = entry
            self.by_request[entry.id] = trail
        elif not is_beside or not is_same_call(entry, known.made):
            what = f"request id {entry.id!r} is used again while the request before is open"
            self._finds("request-ids-unique", what, entry, known.request)
        elif known.result is not None:
            what = f"request {entry.id!r} is still kept as open, and its call has a result"
            self._finds("settled-stays-settled", what, entry, known.result)

    def _asked_about(self, entry: RequestEntry, *, is_beside: bool) -> CallLifecycle:
        call_id = entry.call_id if entry.call_id is not None else entry.id
        trail = self.trails.find_unrequested(call_id)
        if trail is not None:
            if not is_same_call(entry, trail.made):
                what = (
                    f"the request shows {format_stored_call(entry)}, and the call is {format_stored_call(trail.made)}"
                )
                self._finds("request-shows-the-call", what, entry, trail.made)
            return trail
        if not entry.stands_for_call and not self.conversation.begins_elsewhere:
            what = f"the request is about call {call_id!r}, which nobody made, or which has its result"
            self._finds("request-shows-the-call", what, entry)
        if not is_beside:
            self._model_speaks()
        trail = CallLifecycle(entry, self.round)
        self.trails.begin(call_id, trail)
        return trail

    # --- decisions ---

    def decided(self, entry: DecisionEntry) -> None:
        """A decision joins the trail of its request."""
        self.model_spoke = False
        trail = self.by_request.get(entry.id)
        if trail is None:
            if not self.conversation.begins_elsewhere:
                what = f"a decision to {entry.verdict} answers request {entry.id!r}, which nobody made before it"
                self._finds("invalid-decision-refused", what, entry)
            return
        if trail.decision is not None:
            self._decided_again(trail, trail.decision, entry)
        elif trail.result is not None:
            what = f"request {entry.id!r} is decided after its call has a result"
            self._finds("settled-stays-settled", what, entry, trail.result)
        trail.decision = entry
        assert trail.request is not None
        self._decided_as_asked(trail.request, entry)

    def _decided_again(self, trail: CallLifecycle, before: DecisionEntry, entry: DecisionEntry) -> None:
        same = before.verdict == entry.verdict and arguments_match(before.arguments, entry.arguments)
        if same or trail.result is not None:
            what = f"request {entry.id!r} is decided again: {entry.verdict} after {before.verdict}"
            self._finds("settled-stays-settled", what, entry, before)
        else:
            what = f"request {entry.id!r} has decisions that contradict each other: {before.verdict}, {entry.verdict}"
            self._finds("contradiction-not-executed", what, entry, before)

    def _decided_as_asked(self, asked: RequestEntry, entry: DecisionEntry) -> None:
        if entry.flagged is not None and asked.flagged is not None and entry.flagged != asked.flagged:
            which = "decision's" if entry.flagged else "request's"
            self._finds("flags-agree", f"only the {which} copy of the call is flagged as dealt with", entry, asked)
        if entry.verdict == "edit" or entry.arguments is None:
            return
        if entry.call_id is not None and asked.call_id is not None and entry.call_id != asked.call_id:
            what = f"the decision holds call {entry.call_id!r}, and the request is about {asked.call_id!r}"
            self._finds("arguments-as-approved", what, entry, asked)
        elif entry.tool != asked.tool or not arguments_match(entry.arguments, asked.arguments):
            decided = format_short_call(entry.tool or asked.tool, entry.arguments)
            what = f"the decision is about {decided}, and the request shows {format_stored_call(asked)}"
            self._finds("arguments-as-approved", what, entry, asked)

    # --- results ---

    def resulted(self, entry: ResultEntry) -> None:
        """A result settles a trail."""
        self.model_spoke = False
        trail = self.trails.settle(entry)
        if trail is None:
            self._without_call(entry)
            return
        if entry.tool is not None and entry.tool != trail.made.tool:
            what = f"the result says to be of {entry.tool}, and call {entry.call_id!r} is of {trail.made.tool}"
            self._finds("result-matches-its-call", what, entry, trail.made)
        if entry.how != "denied":
            self._ran_with_approval(trail, entry)

    def _without_call(self, entry: ResultEntry) -> None:
        before = self.trails.settled.get(entry.call_id)
        if before is not None:
            self._finds("result-delivered-once", f"call {entry.call_id!r} has a second result", entry, before.result)
        elif not self.conversation.begins_elsewhere:
            what = f"a result is for call {entry.call_id!r}, which nobody made before it"
            self._finds("result-matches-its-call", what, entry)

    def _ran_with_approval(self, trail: CallLifecycle, entry: ResultEntry) -> None:
        if trail.decision is not None:
            verdict = trail.decision.verdict
            if verdict not in APPROVING_VERDICTS and entry.how == "returned":
                what = f"{format_stored_call(trail.made)} was decided with {verdict}, and has the result of a run"
                self._finds("rejected-never-runs", what, entry, trail.decision)
        elif trail.request is not None and trail.request.asks and self._tells_decisions_about(trail):
            what = f"{format_stored_call(trail.made)} has a result, and nobody decided about its request"
            self._finds("approval-before-execution", what, entry, trail.request)
        elif self.gated and any(fnmatchcase(trail.made.tool, pattern) for pattern in self.gated):
            nowhere = "" if self.conversation.tells_decisions else "; this format never tells who approved a call"
            what = f"{format_stored_call(trail.made)} is gated, and has a result without an approval{nowhere}"
            self._finds("approval-before-execution", what, entry, trail.made)

    def _tells_decisions_about(self, trail: CallLifecycle) -> bool:
        """The provider of a hosted call is sent the decision, so that it stands in the conversation in any format."""
        return self.conversation.tells_decisions or trail.made.kind == "hosted_mcp"

    # --- the end ---

    def _left_open(self, trail: CallLifecycle) -> None:
        goes_on = trail.round < self.round
        asked = trail.request
        call, end = format_stored_call(trail.made), ", and the conversation goes on"
        if asked is not None and trail.decision is None and asked.flagged:
            self._finds("flags-agree", f"{call} is flagged as dealt with, and nobody decided about it", asked)
        elif asked is not None and trail.decision is None and asked.asks:
            if goes_on:
                self._finds("nothing-left-pending", f"nobody decided about {call}{end}", asked)
            else:
                self._finds(WAITING, f"{call} waits for a decision", asked)
        elif goes_on:
            self._finds("result-delivered-once", f"{call} has no result{end}", trail.made)
        else:
            self._finds(WAITING, f"{call} waits for its result", trail.made)


_STEPS: dict[type[ConversationEntry], Callable[[_ConversationLinter, Any], None]] = {
    OpaqueEntry: _ConversationLinter.opaque,
    CallEntry: _ConversationLinter.called,
    RequestEntry: _ConversationLinter.requested,
    DecisionEntry: _ConversationLinter.decided,
    ResultEntry: _ConversationLinter.resulted,
}

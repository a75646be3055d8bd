"""
The rules, looked at while the trails of a conversation are followed once from start to end.

What is still open at the end is told, where nothing came after it: the conversation is paused. Where something did, it
is a finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pytest_approvals.histories.conversation import (
    Called,
    Conversation,
    Decided,
    Entry,
    Opaque,
    Requested,
    Resulted,
    Said,
)
from pytest_approvals.journal.arguments import same_arguments
from pytest_approvals.journal.calls import APPROVING

from .finding import WAITS, Finding
from .trails import OpenTrails, Trail, is_same_call, shown, shown_call


def lint(conversation: Conversation, gated: Sequence[str] = ()) -> list[Finding]:
    """
    Gives what is found in one conversation, in the order of its places.

    Arguments:
        gated: Names of tools, or patterns, whose calls need approval.
    """
    found = _Judge(conversation, gated).judge()
    return found if len(found) < 2 else sorted(found, key=_place)


def _place(finding: Finding) -> tuple[float, int]:
    """Orders findings by their places; what stands beside the messages comes last."""
    return (math.inf if finding.message is None else finding.message, finding.content or 0)


class _Judge:
    """
    Goes through one conversation.

    Attributes:
        round: Counts the model's answers and the user's texts.
        model_spoke: The last that was said belongs to an answer of the model that may go on.
    """

    __slots__ = ("by_request", "conversation", "found", "gated", "model_spoke", "round", "trails")

    def __init__(self, conversation: Conversation, gated: Sequence[str]) -> None:
        self.conversation = conversation
        self.gated = gated
        self.found: list[Finding] = []
        self.trails = OpenTrails()
        self.by_request: dict[str, Trail] = {}
        self.round = 0
        self.model_spoke = False

    def judge(self) -> list[Finding]:
        for entry in self.conversation.entries:
            kind = type(entry)
            if kind is not Said:
                _STEPS[kind](self, entry)
            elif entry.role == "user":  # type: ignore[attr-defined]  # half of all entries are texts, so no call here
                self.model_spoke = False
                self.round += 1
            elif not self.model_spoke and entry.role == "assistant":  # type: ignore[attr-defined]  # likewise
                self._model_speaks()
        for trail in self.trails:
            self._left_open(trail)
        self.found += map(Finding.of_note, self.conversation.notes)
        return self.found

    def _finds(self, rule: str, what: str, entry: Entry, other: Entry | None = None) -> None:
        self.found.append(Finding.at(rule, what, self.conversation, entry, other))

    def _model_speaks(self) -> None:
        """An answer of the model begins, or goes on."""
        if not self.model_spoke:
            self.model_spoke = True
            self.round += 1

    def opaque(self, entry: Opaque) -> None:
        """What is not understood changes nothing."""

    # --- calls and requests ---

    def called(self, entry: Called) -> None:
        """A call begins a trail, or takes up the one of a request that stood for it."""
        trails = self.trails
        trail = trails.stood_for(entry) if entry.id in trails.open or entry.kind == "hosted_mcp" else None
        if trail is not None:
            trail.call = entry
            tool, arguments = trail.decided
            if tool != entry.tool or not same_arguments(arguments, entry.arguments):
                what = f"the call is {shown(entry)}, and {shown_call(tool, arguments)} was decided about"
                self._finds("arguments-as-approved", what, entry, trail.decision or trail.made)
            return
        if not self.model_spoke:
            self._model_speaks()
        if entry.id in trails.open and entry.id is not None:
            what = f"call id {entry.id!r} is used again while the call before has no result"
            self._finds("call-ids-unique", what, entry, trails.open[entry.id][0].made)
        trails.begin(entry.id, Trail(entry, self.round, None, entry))

    def requested(self, entry: Requested) -> None:
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

    def _asked_about(self, entry: Requested, *, is_beside: bool) -> Trail:
        call_id = entry.call_id if entry.call_id is not None else entry.id
        trail = self.trails.unasked(call_id)
        if trail is not None:
            if not is_same_call(entry, trail.made):
                what = f"the request shows {shown(entry)}, and the call is {shown(trail.made)}"
                self._finds("request-shows-the-call", what, entry, trail.made)
            return trail
        if not entry.stands_for_call and not self.conversation.begins_elsewhere:
            what = f"the request is about call {call_id!r}, which nobody made, or which has its result"
            self._finds("request-shows-the-call", what, entry)
        if not is_beside:
            self._model_speaks()
        trail = Trail(entry, self.round)
        self.trails.begin(call_id, trail)
        return trail

    # --- decisions ---

    def decided(self, entry: Decided) -> None:
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

    def _decided_again(self, trail: Trail, before: Decided, entry: Decided) -> None:
        same = before.verdict == entry.verdict and same_arguments(before.arguments, entry.arguments)
        if same or trail.result is not None:
            what = f"request {entry.id!r} is decided again: {entry.verdict} after {before.verdict}"
            self._finds("settled-stays-settled", what, entry, before)
        else:
            what = f"request {entry.id!r} has decisions that contradict each other: {before.verdict}, {entry.verdict}"
            self._finds("contradiction-not-executed", what, entry, before)

    def _decided_as_asked(self, asked: Requested, entry: Decided) -> None:
        if entry.flagged is not None and asked.flagged is not None and entry.flagged != asked.flagged:
            which = "decision's" if entry.flagged else "request's"
            self._finds("flags-agree", f"only the {which} copy of the call is flagged as dealt with", entry, asked)
        if entry.verdict == "edit" or entry.arguments is None:
            return
        if entry.call_id is not None and asked.call_id is not None and entry.call_id != asked.call_id:
            what = f"the decision holds call {entry.call_id!r}, and the request is about {asked.call_id!r}"
            self._finds("arguments-as-approved", what, entry, asked)
        elif entry.tool != asked.tool or not same_arguments(entry.arguments, asked.arguments):
            decided = shown_call(entry.tool or asked.tool, entry.arguments)
            what = f"the decision is about {decided}, and the request shows {shown(asked)}"
            self._finds("arguments-as-approved", what, entry, asked)

    # --- results ---

    def resulted(self, entry: Resulted) -> None:
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

    def _without_call(self, entry: Resulted) -> None:
        before = self.trails.settled.get(entry.call_id)
        if before is not None:
            self._finds("result-delivered-once", f"call {entry.call_id!r} has a second result", entry, before.result)
        elif not self.conversation.begins_elsewhere:
            what = f"a result is for call {entry.call_id!r}, which nobody made before it"
            self._finds("result-matches-its-call", what, entry)

    def _ran_with_approval(self, trail: Trail, entry: Resulted) -> None:
        if trail.decision is not None:
            verdict = trail.decision.verdict
            if verdict not in APPROVING and entry.how == "returned":
                what = f"{shown(trail.made)} was decided with {verdict}, and has the result of a run"
                self._finds("rejected-never-runs", what, entry, trail.decision)
        elif trail.request is not None and trail.request.asks and self._tells_decisions_about(trail):
            what = f"{shown(trail.made)} has a result, and nobody decided about its request"
            self._finds("approval-before-execution", what, entry, trail.request)
        elif self.gated and any(fnmatchcase(trail.made.tool, pattern) for pattern in self.gated):
            nowhere = "" if self.conversation.tells_decisions else "; this format never tells who approved a call"
            what = f"{shown(trail.made)} is gated, and has a result without an approval{nowhere}"
            self._finds("approval-before-execution", what, entry, trail.made)

    def _tells_decisions_about(self, trail: Trail) -> bool:
        """The provider of a hosted call is sent the decision, so that it stands in the conversation in any format."""
        return self.conversation.tells_decisions or trail.made.kind == "hosted_mcp"

    # --- the end ---

    def _left_open(self, trail: Trail) -> None:
        goes_on = trail.round < self.round
        asked = trail.request
        call, end = shown(trail.made), ", and the conversation goes on"
        if asked is not None and trail.decision is None and asked.flagged:
            self._finds("flags-agree", f"{call} is flagged as dealt with, and nobody decided about it", asked)
        elif asked is not None and trail.decision is None and asked.asks:
            if goes_on:
                self._finds("nothing-left-pending", f"nobody decided about {call}{end}", asked)
            else:
                self._finds(WAITS, f"{call} waits for a decision", asked)
        elif goes_on:
            self._finds("result-delivered-once", f"{call} has no result{end}", trail.made)
        else:
            self._finds(WAITS, f"{call} waits for its result", trail.made)


_STEPS: dict[type[Entry], Callable[[_Judge, Any], None]] = {
    Opaque: _Judge.opaque,
    Called: _Judge.called,
    Requested: _Judge.requested,
    Decided: _Judge.decided,
    Resulted: _Judge.resulted,
}

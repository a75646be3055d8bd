"""
The trails of a conversation's calls, followed once from start to end.

A trail is one call with its request, its decisions and its result. A trail is settled by its result; an id that is used
again after that begins a new one. What is still open at the end is told, where nothing came after it: the conversation
is paused. Where something did, it is a finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pytest_approvals.histories.conversation import (
    Called,
    Conversation,
    Decided,
    Entry,
    Requested,
    Resulted,
    Said,
)
from pytest_approvals.journal.arguments import same_arguments
from pytest_approvals.journal.calls import APPROVING
from pytest_approvals.journal.wording import said_call

from .finding import WAITS, Finding

_LONGEST = 100
"""How many characters of a call are shown."""


def lint(conversation: Conversation, gated: Sequence[str] = ()) -> list[Finding]:
    """
    Gives what is found in one conversation, in the order of its places.

    Arguments:
        gated: Names of tools, or patterns, whose calls need approval.
    """
    found = Trails(conversation, gated).follow()
    return found if len(found) < 2 else sorted(found, key=_place)


@dataclass(slots=True, eq=False)
class Trail:
    """
    One call.

    Attributes:
        made: What began it: the call, or a request that stands for it.
        round: The model's answer that it belongs to, counted from the start of the conversation.
        last: The decision in force.
    """

    made: Called | Requested
    round: int
    request: Requested | None = None
    call: Called | None = None
    last: Decided | None = None
    result: Resulted | None = None


@dataclass(slots=True)
class Trails:
    """All trails of one conversation so far."""

    conversation: Conversation
    gated: Sequence[str] = ()
    found: list[Finding] = field(default_factory=list)
    open: dict[str | None, list[Trail]] = field(default_factory=dict)
    done: dict[str | None, Trail] = field(default_factory=dict)
    by_request: dict[str, Trail] = field(default_factory=dict)
    round: int = 0
    model_spoke: bool = False

    def follow(self) -> list[Finding]:
        """Goes through all entries."""
        for entry in self.conversation.entries:
            step = _STEPS.get(type(entry))
            if step is not None:
                step(self, entry)
        for trails in self.open.values():
            for trail in trails:
                self._left_open(trail)
        self.found += map(Finding.of_note, self.conversation.notes)
        return self.found

    def _finds(self, rule: str, what: str, entry: Entry, other: Entry | None = None) -> None:
        self.found.append(Finding.at(rule, what, self.conversation, entry, other))

    def _model_speaks(self) -> None:
        if not self.model_spoke:
            self.model_spoke = True
            self.round += 1

    # --- what is said ---

    def said(self, entry: Said) -> None:
        """A user's text, and a text of the model after results, end what was open before."""
        if entry.role == "assistant":
            self._model_speaks()
        elif entry.role == "user":
            self.model_spoke = False
            self.round += 1

    # --- calls and requests ---

    def called(self, entry: Called) -> None:
        """A call begins a trail, or takes up the one of a request that stood for it."""
        trail = self._stood_for(entry)
        if trail is not None:
            trail.call = entry
            self._runs_as_decided(trail, entry)
            return
        self._model_speaks()
        waiting = self.open.get(entry.id)
        if waiting and entry.id is not None:
            what = f"call id {entry.id!r} is used again while the call before has no result"
            self._finds("call-ids-unique", what, entry, waiting[-1].made)
        self._begin(entry.id, Trail(entry, self.round, call=entry))

    def requested(self, entry: Requested) -> None:
        """A request joins the trail of its call, or begins one where it stands for the call."""
        known = self.by_request.get(entry.id)
        if known is not None and known.result is None and known.last is None:
            if not self._is_listed_again(entry, known):
                what = f"request id {entry.id!r} is used again while the request before is open"
                self._finds("request-ids-unique", what, entry, known.request)
            return
        if known is not None and entry.message in self.conversation.beside:
            if known.result is not None:
                what = f"request {entry.id!r} is still kept as open, and its call has a result"
                self._finds("settled-stays-settled", what, entry, known.result)
            return
        trail = self._asked_about(entry)
        trail.request = entry
        self.by_request[entry.id] = trail

    def _asked_about(self, entry: Requested) -> Trail:
        call_id = entry.call_id if entry.call_id is not None else entry.id
        for trail in self.open.get(call_id, ()):
            if trail.request is None:
                if not _is_same_call(entry, trail.made):
                    what = f"the request shows {_shown(entry)}, and the call is {_shown(trail.made)}"
                    self._finds("request-shows-the-call", what, entry, trail.made)
                return trail
        if not entry.stands_for_call and not self.conversation.begins_elsewhere:
            what = f"the request is about call {call_id!r}, which nobody made, or which has its result"
            self._finds("request-shows-the-call", what, entry)
        if entry.message not in self.conversation.beside:
            self._model_speaks()
        trail = Trail(entry, self.round)
        self._begin(call_id, trail)
        return trail

    def _is_listed_again(self, entry: Requested, known: Trail) -> bool:
        """A state may keep a request beside the messages; in the messages it stands once."""
        return entry.message in self.conversation.beside and _is_same_call(entry, known.made)

    def _begin(self, call_id: str | None, trail: Trail) -> None:
        self.open.setdefault(call_id, []).append(trail)

    def _take(self, call_id: str | None, trail: Trail) -> None:
        waiting = self.open[call_id]
        waiting.remove(trail)
        if not waiting:
            del self.open[call_id]

    def _stood_for(self, entry: Called) -> Trail | None:
        """Finds the trail of a request that stood for the call."""
        for trail in self.open.get(entry.id, ()):
            if trail.call is None:
                return trail
        return self._reported(entry) if entry.kind == "hosted_mcp" else None

    def _reported(self, entry: Called) -> Trail | None:
        """Finds the trail of a hosted call that a provider reports under another id, and goes on with it under that."""
        for call_id, waiting in self.open.items():
            for trail in waiting:
                if trail.call is None and trail.made.kind == "hosted_mcp" and _is_same_call(entry, trail.made):
                    self._take(call_id, trail)
                    self._begin(entry.id, trail)
                    return trail
        return None

    def _runs_as_decided(self, trail: Trail, entry: Called) -> None:
        decided = trail.last
        tool, arguments = trail.made.tool, trail.made.arguments
        if decided is not None and decided.arguments is not None:
            tool, arguments = decided.tool or tool, decided.arguments
        if tool != entry.tool or not same_arguments(arguments, entry.arguments):
            what = f"the call is {_shown(entry)}, and {_call_text(tool, arguments)} was decided about"
            self._finds("arguments-as-approved", what, entry, decided or trail.made)

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
        if trail.last is not None:
            self._decided_again(trail, trail.last, entry)
        elif trail.result is not None:
            what = f"request {entry.id!r} is decided after its call has a result"
            self._finds("settled-stays-settled", what, entry, trail.result)
        trail.last = entry
        self._decided_as_asked(trail, entry)

    def _decided_again(self, trail: Trail, before: Decided, entry: Decided) -> None:
        same = before.verdict == entry.verdict and before.arguments == entry.arguments
        if same or trail.result is not None:
            what = f"request {entry.id!r} is decided again: {entry.verdict} after {before.verdict}"
            self._finds("settled-stays-settled", what, entry, before)
        else:
            what = f"request {entry.id!r} has decisions that contradict each other: {before.verdict}, {entry.verdict}"
            self._finds("contradiction-not-executed", what, entry, before)

    def _decided_as_asked(self, trail: Trail, entry: Decided) -> None:
        asked = trail.request
        assert asked is not None
        if entry.flagged is not None and asked.flagged is not None and entry.flagged != asked.flagged:
            which = "decision's" if entry.flagged else "request's"
            what = f"only the {which} copy of the call is flagged as dealt with"
            self._finds("flags-agree", what, entry, asked)
        if entry.verdict == "edit" or entry.arguments is None:
            return
        if entry.call_id is not None and asked.call_id is not None and entry.call_id != asked.call_id:
            what = f"the decision holds call {entry.call_id!r}, and the request is about {asked.call_id!r}"
            self._finds("arguments-as-approved", what, entry, asked)
        elif entry.tool != asked.tool or not same_arguments(entry.arguments, asked.arguments):
            decided = _call_text(entry.tool or asked.tool, entry.arguments)
            what = f"the decision is about {decided}, and the request shows {_shown(asked)}"
            self._finds("arguments-as-approved", what, entry, asked)

    # --- results ---

    def resulted(self, entry: Resulted) -> None:
        """A result settles a trail."""
        self.model_spoke = False
        waiting = self.open.get(entry.call_id)
        if not waiting:
            self._without_call(entry)
            return
        trail = waiting[0]
        self._take(entry.call_id, trail)
        trail.result = entry
        self.done[entry.call_id] = trail
        if entry.tool is not None and entry.tool != trail.made.tool:
            what = f"the result says to be of {entry.tool}, and call {entry.call_id!r} is of {trail.made.tool}"
            self._finds("result-matches-its-call", what, entry, trail.made)
        self._ran_with_approval(trail, entry)

    def _without_call(self, entry: Resulted) -> None:
        before = self.done.get(entry.call_id)
        if before is not None:
            what = f"call {entry.call_id!r} has a second result"
            self._finds("result-delivered-once", what, entry, before.result)
        elif not self.conversation.begins_elsewhere:
            what = f"a result is for call {entry.call_id!r}, which nobody made before it"
            self._finds("result-matches-its-call", what, entry)

    def _ran_with_approval(self, trail: Trail, entry: Resulted) -> None:
        verdict = trail.last.verdict if trail.last is not None else None
        if entry.how == "denied" or verdict in APPROVING:
            return
        if verdict is not None:
            if entry.how == "returned":
                what = f"{_shown(trail.made)} was decided with {verdict}, and has the result of a run"
                self._finds("rejected-never-runs", what, entry, trail.last)
        elif trail.request is not None and trail.request.asks:
            what = f"{_shown(trail.made)} has a result, and nobody decided about its request"
            self._finds("approval-before-execution", what, entry, trail.request)
        elif any(fnmatchcase(trail.made.tool, pattern) for pattern in self.gated):
            nowhere = "" if self.conversation.tells_decisions else "; this format never tells of approvals"
            what = f"{_shown(trail.made)} is gated, and has a result without an approval{nowhere}"
            self._finds("approval-before-execution", what, entry, trail.made)

    # --- the end ---

    def _left_open(self, trail: Trail) -> None:
        goes_on = trail.round < self.round
        asked = trail.request
        if asked is not None and asked.flagged and trail.last is None:
            self._finds("flags-agree", f"{_shown(asked)} is flagged as dealt with, and has no decision", asked)
        elif asked is not None and trail.last is None and asked.asks:
            if goes_on:
                self._finds(
                    "nothing-left-pending", f"nobody decided about {_shown(asked)}, and the conversation goes on", asked
                )
            else:
                self._finds(WAITS, f"{_shown(asked)} waits for a decision", asked)
        elif goes_on:
            self._finds(
                "result-delivered-once", f"{_shown(trail.made)} has no result, and the conversation goes on", trail.made
            )
        else:
            self._finds(WAITS, f"{_shown(trail.made)} waits for its result", trail.made)


_STEPS: dict[type[Entry], Callable[[Trails, Any], None]] = {
    Said: Trails.said,
    Called: Trails.called,
    Requested: Trails.requested,
    Decided: Trails.decided,
    Resulted: Trails.resulted,
}


def _place(finding: Finding) -> tuple[float, int]:
    """Orders findings by their places; what stands beside the messages comes last."""
    return (math.inf if finding.message is None else finding.message, finding.content or 0)


def _is_same_call(one: Called | Requested, other: Called | Requested) -> bool:
    return one.tool == other.tool and one.server == other.server and same_arguments(one.arguments, other.arguments)


def _shown(call: Called | Requested) -> str:
    return _call_text(call.tool, call.arguments)


def _call_text(tool: str, arguments: Any) -> str:
    text = said_call(tool, arguments)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."

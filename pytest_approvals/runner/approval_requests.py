"""Approval requests of one run: their calls, their numbers, and the caller's copies.

The framework's own request id is recorded but never used as a key: frameworks reuse it, share it between nested agents,
or use the call id for it. The harness numbers every request as it surfaces (`q1`, `q2`, ...); one that is still open
keeps its number.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_approvals.agent_side.contract.types import Request
from pytest_approvals.runner.journal_values import request_to_dict
from pytest_approvals.runner.script import ScriptState
from pytest_approvals.scenario.model import AnswerSource


@dataclass(slots=True, kw_only=True)
class TrackedRequest:
    """One request, with the copies that the caller has of it.

    Attributes:
        q: Its number, as journals name it.
        held: As a turn showed it last, in the process that showed it; of a state to which the caller went back, as the
            turn before the save showed it.
        latest: As the agent showed or listed it last.
        open: Whether it was in the last list that the agent gave.
    """

    q: str
    session: str
    label: str | None
    held: Request
    latest: Request
    open: bool = True

    def get_copy(self, source: AnswerSource) -> Request:
        """Return the copy of the request that an answer is made from."""
        if source == "rebuilt":
            return replace(self.latest, handle=None)
        return self.held if source == "held" else self.latest

    def to_dict(self) -> dict[str, Any]:
        """Return the request as journals hold it."""
        label = {} if self.label is None else {"label": self.label}
        return {"q": self.q, **label, **request_to_dict(self.latest)}


class ApprovalRequests:
    """All requests that surfaced in one run."""

    def __init__(self) -> None:
        self._requests: list[TrackedRequest] = []

    def update(
        self, session: str, listed: Sequence[Request], state: ScriptState, *, by_turn: bool = False
    ) -> list[TrackedRequest]:
        """Track a complete list of the open requests of one session, as the agent gave it.

        Requests that are missing from it are closed; those that were open before keep their numbers. What ids of its
        own the agent has for the calls is noted in *state*.

        Args:
            session: The session.
            listed: The open requests.
            state: The position in the script, which tells their calls.
            by_turn: The list is what a turn showed to the caller, who holds these copies from then on.

        Returns:
            The listed requests.
        """
        before = self.open_in(session)
        now: list[TrackedRequest] = []
        for request, label in zip(listed, _find_labels(listed, before, state), strict=True):
            state.note_id(state.find_call(label) if label else None, request.call_id)
            known = _find_same(before, now, request, label)
            now.append(_renew(known, request) if known else self._add(session, label, request))
        for tracked in before:
            tracked.open = tracked in now
        for tracked in now:
            tracked.held = tracked.latest if by_turn else self._find_shown(tracked)
        return now

    def find_still_open(self, session: str, listed: Sequence[Request], state: ScriptState) -> list[TrackedRequest]:
        """Return the open requests that are in a list; ignore new ones, which were not shown."""
        before, still = self.open_in(session), list[TrackedRequest]()
        for request, label in zip(listed, _find_labels(listed, before, state), strict=True):
            known = _find_same(before, still, request, label)
            still += [_renew(known, request)] if known else []
        return still

    def close(self, session: str, label: str) -> None:
        """Close a request that has led to an execution; if its call asks again, that is another request."""
        for tracked in self._requests:
            if tracked.session == session and tracked.label == label:
                tracked.open = False

    def find_about(self, session: str, label: str) -> TrackedRequest | None:
        """Return the latest request about a call."""
        about = (tracked for tracked in reversed(self._requests) if tracked.session == session)
        return next((tracked for tracked in about if tracked.label == label), None)

    def complete_label(self, session: str, label: str) -> str:
        """Return the full label of an inner agent's call, which the test of a user's agent need not know.

        The label itself is returned if no request about such a call has surfaced.
        """
        if self.find_about(session, label) is not None:
            return label
        full = (tracked.label for tracked in reversed(self._requests) if tracked.session == session and tracked.label)
        return next((one for one in full if one.endswith(f"/{label}")), label)

    def open_in(self, session: str) -> list[TrackedRequest]:
        """Return the open requests of a session, in the order in which they surfaced."""
        return [tracked for tracked in self._requests if tracked.session == session and tracked.open]

    def _find_shown(self, tracked: TrackedRequest) -> Request:
        """Return the copy of an open request that a turn showed: an earlier one if the agent lists that again."""
        if tracked.held.id == tracked.latest.id:
            return tracked.held
        about = [
            other.held for other in self._requests if (other.session, other.label) == (tracked.session, tracked.label)
        ]
        return next((held for held in reversed(about) if held.id == tracked.latest.id), tracked.held)

    def _add(self, session: str, label: str | None, request: Request) -> TrackedRequest:
        number = len(self._requests) + 1
        tracked = TrackedRequest(q=f"q{number}", session=session, label=label, held=request, latest=request)
        self._requests.append(tracked)
        return tracked


def _renew(tracked: TrackedRequest, request: Request) -> TrackedRequest:
    tracked.latest = request
    return tracked


def _find_same(
    known: Sequence[TrackedRequest], taken: Sequence[TrackedRequest], request: Request, label: str | None
) -> TrackedRequest | None:
    free = (tracked for tracked in known if tracked not in taken)
    return next((tracked for tracked in free if _is_same_request(tracked, request, label)), None)


def _is_same_request(tracked: TrackedRequest, request: Request, label: str | None) -> bool:
    if tracked.label is not None or label is not None:
        return tracked.label == label
    return request_to_dict(tracked.latest) == request_to_dict(request)


def _find_labels(listed: Sequence[Request], before: Sequence[TrackedRequest], state: ScriptState) -> list[str | None]:
    """Return the label of each listed request; each call is asked about once.

    One that shows no id of a call, or one of the agent's own, and is listed as before, keeps its label: equal calls
    cannot be told apart otherwise. One that shows the id of a call goes before one with another id, which an agent may
    have given an equal call.
    """
    known = {call.id for call in state.calls}
    kept = [_find_kept_label(request, before) if request.call_id not in known else None for request in listed]
    labels: dict[int, str | None] = {}
    for place in sorted(range(len(listed)), key=lambda place: listed[place].call_id not in known):
        label, taken = kept[place], {*labels.values(), *kept}
        labels[place] = label if label and label not in labels.values() else _find_label(listed[place], state, taken)
    return [labels[place] for place in range(len(listed))]


def _find_kept_label(request: Request, before: Sequence[TrackedRequest]) -> str | None:
    shown = request_to_dict(request)
    return next((tracked.label for tracked in before if request_to_dict(tracked.latest) == shown), None)


def _find_label(request: Request, state: ScriptState, taken: Collection[str | None]) -> str | None:
    matches = state.match_calls(request.tool, request.arguments, request.call_id, request.agent, rewritten=True)
    free = [call for call in matches if call.label not in taken]
    is_named = request.call_id in state.streamed_ids or any(call.id == request.call_id for call in state.calls)
    if state.asking and free and not is_named:
        equal = [call for call in free if call.equals(free[0])]
        if any(call.label in state.asking for call in equal):
            return min(equal, key=lambda call: _rank_asking(call.label, state)).label
    return free[0].label if free else None


def _rank_asking(label: str, state: ScriptState) -> int:
    """Return how likely it is that a call has asked in its middle, of equal ones that no id tells apart.

    One that was let run and has not run is the other one, by its label, of two whose requests come in another order.
    """
    is_released = label in state.released
    if label in state.asking:
        return 0 if is_released else 2
    return 1 if is_released and not state.executions[label] else 3

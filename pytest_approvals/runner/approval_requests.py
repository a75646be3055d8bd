"""
The requests of one run: which call each belongs to, what number it has, and which copies of it the caller holds.

The framework's own request id is recorded and is nobody's key: frameworks reuse it, share it between nested agents, or
take the call id for it. The harness numbers every request as it surfaces (`q1`, `q2`, ...); one that is still open
keeps its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_approvals.agent_side.contract.types import Request
from pytest_approvals.runner.script import ScriptState
from pytest_approvals.scenario.model import AnswerSource


@dataclass(slots=True, kw_only=True)
class TrackedRequest:
    """
    One request, with the copies that the caller has of it.

    Attributes:
        held: As it was first shown, in the process that showed it.
        latest: As the agent showed or listed it last.
        open: Whether it was in the last list that the agent gave.
    """

    q: str
    session: str
    label: str | None
    held: Request
    latest: Request
    open: bool = True

    def copy_from(self, source: AnswerSource) -> Request:
        """Gives the copy of the request that an answer is made from."""
        if source == "rebuilt":
            return replace(self.latest, handle=None)
        return self.held if source == "held" else self.latest

    def written(self) -> dict[str, Any]:
        """Gives the request as it stands in a journal."""
        label = {} if self.label is None else {"label": self.label}
        return {"q": self.q, **label, **request_to_dict(self.latest)}


def request_to_dict(request: Request) -> dict[str, Any]:
    """Gives what the framework tells of a request as it stands in a journal; what is None is left out."""
    written = {
        "id": request.id,
        "call_id": request.call_id,
        "tool": request.tool,
        "arguments": request.arguments,
        "kind": request.kind,
        "server": request.server,
        "agent": request.agent,
    }
    return {name: value for name, value in written.items() if value is not None}


class ApprovalRequests:
    """All requests that surfaced in one run."""

    def __init__(self) -> None:
        self._all: list[TrackedRequest] = []

    def seen(self, session: str, shown: Sequence[Request], progress: ScriptState) -> list[TrackedRequest]:
        """
        Takes in a complete list of the open requests of one session, as the agent gave it.

        Requests that are not in it are closed; those that were open before keep their numbers.
        """
        before = [one for one in self._all if one.session == session and one.open]
        now: list[TrackedRequest] = []
        taken: set[str] = set()
        for request in shown:
            label = _find_label(request, progress, taken)
            if label is not None:
                taken.add(label)
            known = next((one for one in before if one not in now and _is_same_request(one, request, label)), None)
            now.append(self._again(known, request) if known else self._new(session, label, request))
        for one in before:
            one.open = one in now
        return now

    def still_in(self, session: str, listed: Sequence[Request], progress: ScriptState) -> list[TrackedRequest]:
        """Gives those of the open requests that are in a list, and takes nothing in: nobody was shown what is new."""
        taken: set[str] = set()
        still: list[TrackedRequest] = []
        for request in listed:
            label = _find_label(request, progress, taken)
            taken |= {label} if label is not None else set()
            known = next(
                (one for one in self.open(session) if one not in still and _is_same_request(one, request, label)), None
            )
            still += [self._again(known, request)] if known else []
        return still

    def close(self, session: str, label: str) -> None:
        """Closes a request that has led to an execution: what its call asks after that is another request."""
        for one in self._all:
            if one.session == session and one.label == label:
                one.open = False

    def about(self, session: str, label: str) -> TrackedRequest | None:
        """Gives the latest request about a call."""
        return next((one for one in reversed(self._all) if one.session == session and one.label == label), None)

    def open(self, session: str) -> list[TrackedRequest]:
        """Gives the requests that are open, in the order in which they surfaced."""
        return [one for one in self._all if one.session == session and one.open]

    def _new(self, session: str, label: str | None, request: Request) -> TrackedRequest:
        one = TrackedRequest(q=f"q{len(self._all) + 1}", session=session, label=label, held=request, latest=request)
        self._all.append(one)
        return one

    def _again(self, known: TrackedRequest, request: Request) -> TrackedRequest:
        known.latest = request
        return known


def _is_same_request(known: TrackedRequest, request: Request, label: str | None) -> bool:
    if known.label is not None or label is not None:
        return known.label == label
    return request_to_dict(known.latest) == request_to_dict(request)


def _find_label(request: Request, progress: ScriptState, taken: set[str]) -> str | None:
    candidates = progress.candidates(request.tool, request.arguments, request.call_id, request.agent)
    return next((call.label for call in candidates if call.label not in taken), None)

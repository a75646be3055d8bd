"""The requests that a session holds open, read from its state without running anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .requests import REQUEST

_STATE = "tool_approval"


def waiting(session: Any, messages: Sequence[Any] | None = None) -> list[Any]:
    """
    Gives the open requests of *session*, in the order in which they were asked.

    The framework records them in the session's state, those of one reply until the last of them is answered, and beside
    them what was answered. Early releases have them in the stored messages only.

    Arguments:
        messages: The messages of the session, where it does not hold them itself.
    """
    if not _records():
        return _unanswered(_messages(session.state) if messages is None else messages)
    kept = session.state.get(_STATE)
    if not isinstance(kept, Mapping):
        return []
    # The middleware holds back what it shows later, and what it has approved by itself.
    aside = (*_contents(kept.get("queued_approval_requests")), *_contents(kept.get("collected_approval_responses")))
    ids = {one.id for one in (*aside, *_answered(kept))}
    return [one for one in _contents(kept.get("pending_approval_requests")) if one.id not in ids]


def _records() -> bool:
    """Says whether this release records the requests that it has asked."""
    from agent_framework import _tools

    return hasattr(_tools, "_PENDING_APPROVAL_REQUESTS_KEY")


def _answered(kept: Mapping[str, Any]) -> Iterator[Any]:
    """Gives the responses that wait for the others of their reply."""
    for group in kept.get("already_approved_approval_request_groups") or ():
        yield from _contents(group.get("approval_responses"))


def _contents(kept: Any) -> Iterator[Any]:
    from agent_framework import Content

    for one in kept or ():
        yield Content.from_dict(one) if isinstance(one, Mapping) else one


def _messages(state: Mapping[str, Any]) -> Iterator[Any]:
    for kept in state.values():
        if isinstance(kept, Mapping):
            yield from kept.get("messages") or ()


def _unanswered(messages: Iterable[Any]) -> list[Any]:
    open_requests: dict[str, Any] = {}
    for message in messages:
        for content in message.contents:
            if content.type == REQUEST:
                open_requests[content.id] = content
            elif content.type == "function_approval_response":
                open_requests.pop(content.id, None)
    return list(open_requests.values())

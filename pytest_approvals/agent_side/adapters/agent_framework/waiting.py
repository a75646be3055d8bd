"""The requests that a session holds open, read from its state without running anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .requests import REQUEST, RESPONSE

_STATE = "tool_approval"


def waiting(session: Any, messages: Sequence[Any] | None = None) -> list[Any]:
    """
    Gives the open requests of *session*, in the order in which they were asked.

    The framework records them in the session's state, all of a reply until the last of them is answered; what was
    answered before stands in the stored messages. Early releases have the requests in these messages only.

    Arguments:
        messages: The messages of the session, where it does not hold them itself.
    """
    stored = [*(_messages(session.state) if messages is None else messages)]
    if not _records():
        return _unanswered(stored)
    kept = session.state.get(_STATE)
    if not isinstance(kept, Mapping):
        return []
    # The middleware holds back what it shows later, and what it has approved by itself.
    aside = (*_contents(kept.get("queued_approval_requests")), *_contents(kept.get("collected_approval_responses")))
    ids = {one.id for one in aside} | _answered(stored)
    return [one for one in _contents(kept.get("pending_approval_requests")) if one.id not in ids]


def _records() -> bool:
    """Says whether this release records the requests that it has asked."""
    from agent_framework import _tools

    return hasattr(_tools, "_PENDING_APPROVAL_REQUESTS_KEY")


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
    for content in _asked_and_answered(messages):
        if content.type == REQUEST:
            open_requests[content.id] = content
        else:
            open_requests.pop(content.id, None)
    return list(open_requests.values())


def _answered(messages: Iterable[Any]) -> set[str]:
    last = {content.id: content.type for content in _asked_and_answered(messages)}
    return {one for one, kind in last.items() if kind == RESPONSE}


def _asked_and_answered(messages: Iterable[Any]) -> Iterator[Any]:
    for message in messages:
        yield from (content for content in message.contents if content.type in (REQUEST, RESPONSE))

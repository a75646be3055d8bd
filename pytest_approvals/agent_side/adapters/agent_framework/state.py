"""The requests that a session holds open, read from its state without running anything.

A provider of history as people write their own: rows by session, and a request is a row of its own.

The framework's own store of sessions, and its own trimming of what they hold.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent_framework import Message

from ...contract import Blueprint, Unsupported
from .messages import APPROVAL_REQUEST

_STATE_KEY = "tool_approval"


def open_requests(session: Any, messages: Sequence[Any] | None = None) -> list[Any]:
    """
    Gives the open requests of *session*, in the order in which they were asked.

    The framework records them in the session's state, those of one reply until the last of them is answered, and beside
    them what was answered. Early releases have them in the stored messages only.

    Arguments:
        messages: The messages of the session, where it does not hold them itself.
    """
    if not _records_requests():
        return _unanswered_requests(_stored_messages(session.state) if messages is None else messages)
    kept = session.state.get(_STATE_KEY)
    if not isinstance(kept, Mapping):
        return []
    # The middleware holds back what it shows later, and what it has approved by itself.
    aside = (
        *_load_contents(kept.get("queued_approval_requests")),
        *_load_contents(kept.get("collected_approval_responses")),
    )
    ids = {one.id for one in (*aside, *_held_responses(kept))}
    return [one for one in _load_contents(kept.get("pending_approval_requests")) if one.id not in ids]


def _records_requests() -> bool:
    """Says whether this release records the requests that it has asked."""
    from agent_framework import _tools

    return hasattr(_tools, "_PENDING_APPROVAL_REQUESTS_KEY")


def _held_responses(kept: Mapping[str, Any]) -> Iterator[Any]:
    """Gives the responses that wait for the others of their reply."""
    for group in kept.get("already_approved_approval_request_groups") or ():
        yield from _load_contents(group.get("approval_responses"))


def _load_contents(kept: Any) -> Iterator[Any]:
    from agent_framework import Content

    for one in kept or ():
        yield Content.from_dict(one) if isinstance(one, Mapping) else one


def _stored_messages(state: Mapping[str, Any]) -> Iterator[Any]:
    for kept in state.values():
        if isinstance(kept, Mapping):
            yield from kept.get("messages") or ()


def _unanswered_requests(messages: Iterable[Any]) -> list[Any]:
    open_requests: dict[str, Any] = {}
    for message in messages:
        for content in message.contents:
            if content.type == APPROVAL_REQUEST:
                open_requests[content.id] = content
            elif content.type == "function_approval_response":
                open_requests.pop(content.id, None)
    return list(open_requests.values())


try:
    from agent_framework import HistoryProvider
except ImportError:
    # What it was called first.
    from agent_framework import BaseHistoryProvider as HistoryProvider


class RowHistoryProvider(HistoryProvider):
    """Keeps the messages of all sessions of an agent."""

    def __init__(self) -> None:
        super().__init__("rows")
        self._rows: dict[str, list[Any]] = {}

    def of(self, session_id: str | None) -> list[Any]:
        """Gives the rows of one session."""
        return self._rows.setdefault(str(session_id), [])

    async def get_messages(self, session_id: str | None, **_: Any) -> list[Any]:
        """See `HistoryProvider.get_messages`."""
        return list(self.of(session_id))

    async def save_messages(self, session_id: str | None, messages: Sequence[Any], **_: Any) -> None:
        """See `HistoryProvider.save_messages`."""
        for message in messages:
            said = [content for content in message.contents if content.type != APPROVAL_REQUEST]
            asked = [[content] for content in message.contents if content.type == APPROVAL_REQUEST]
            self.of(session_id).extend(Message(message.role, row) for row in (said, *asked) if row)


def open_store(blueprint: Blueprint) -> Any:
    """Opens the store that a serialize mode asks for."""
    try:
        from agent_framework import FileSessionStore
    except ImportError as error:
        raise Unsupported("native.file", "this release has no store of sessions") from error
    with warnings.catch_warnings():
        # It is marked as experimental, which is no news to whoever chose it.
        warnings.simplefilter("ignore", FutureWarning)
        return FileSessionStore(blueprint.directory)


async def trim_history(agent: Any, session: Any, keep: int) -> None:
    """Excludes all but the last *keep* stored messages of *session*, as after a run."""
    try:
        from agent_framework import CompactionProvider, TruncationStrategy
    except ImportError as error:
        raise Unsupported("trim", "this release has no compaction of stored histories") from error
    compaction = CompactionProvider(after_strategy=TruncationStrategy(max_n=keep, compact_to=keep))
    await compaction.after_run(agent=agent, session=session, context=None, state={})

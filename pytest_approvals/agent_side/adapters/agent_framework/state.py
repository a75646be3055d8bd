"""State of a session: its open requests, a history in rows, and the framework's store."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent_framework import Message

from ...contract import Blueprint, Unsupported
from ...kit.store_check import name_broken_store
from .messages import APPROVAL_REQUEST

_STATE_KEY = "tool_approval"


def open_requests(session: Any, messages: Sequence[Any] | None = None) -> list[Any]:
    """Return the open requests of *session*, in the order in which they were asked.

    They are read without running anything. The framework records them in the session's state, those of one reply until
    the last of them is answered, and the answers with them. Early releases have them in the stored messages only.

    Args:
        session: The session.
        messages: The messages of the session, if it does not hold them itself.
    """
    if not _records_requests():
        return _unanswered_requests(_stored_messages(session.state) if messages is None else messages)
    recorded = session.state.get(_STATE_KEY)
    if not isinstance(recorded, Mapping):
        return []
    # The middleware holds back requests that it shows later, and those that it approved itself.
    held_back = (
        *_load_contents(recorded.get("queued_approval_requests")),
        *_load_contents(recorded.get("collected_approval_responses")),
    )
    ids = {content.id for content in (*held_back, *_held_responses(recorded))}
    return [content for content in _load_contents(recorded.get("pending_approval_requests")) if content.id not in ids]


def _records_requests() -> bool:
    """Return whether this release records the requests that it has asked."""
    from agent_framework import _tools

    # Nothing public tells; the records themselves are absent until something was asked.
    return hasattr(_tools, "_PENDING_APPROVAL_REQUESTS_KEY")


def _held_responses(recorded: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the responses that wait for the others of their reply."""
    for group in recorded.get("already_approved_approval_request_groups") or ():
        yield from _load_contents(group.get("approval_responses"))


def _load_contents(recorded: Any) -> Iterator[Any]:
    from agent_framework import Content

    for content in recorded or ():
        yield Content.from_dict(content) if isinstance(content, Mapping) else content


def _stored_messages(state: Mapping[str, Any]) -> Iterator[Any]:
    for provider_state in state.values():
        if isinstance(provider_state, Mapping):
            yield from provider_state.get("messages") or ()


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
    # Its name in early releases.
    from agent_framework import BaseHistoryProvider as HistoryProvider


class RowHistoryProvider(HistoryProvider):
    """History provider as users write their own: rows by session, each request its own row."""

    def __init__(self) -> None:
        super().__init__("rows")
        self._rows: dict[str, list[Any]] = {}

    def rows_of(self, session_id: str | None) -> list[Any]:
        """Return the rows of one session."""
        return self._rows.setdefault(str(session_id), [])

    async def get_messages(self, session_id: str | None, **_: Any) -> list[Any]:
        """See `HistoryProvider.get_messages`."""
        return list(self.rows_of(session_id))

    async def save_messages(self, session_id: str | None, messages: Sequence[Any], **_: Any) -> None:
        """See `HistoryProvider.save_messages`."""
        for message in messages:
            others = [content for content in message.contents if content.type != APPROVAL_REQUEST]
            request_rows = [[content] for content in message.contents if content.type == APPROVAL_REQUEST]
            self.rows_of(session_id).extend(Message(message.role, row) for row in (others, *request_rows) if row)


def open_store(blueprint: Blueprint) -> Any:
    """Open the store that a serialize mode asks for, which makes its folder."""
    try:
        from agent_framework import FileSessionStore
    except ImportError as error:
        raise Unsupported("native.file", "this release has no store of sessions") from error
    with warnings.catch_warnings():
        # It is marked as experimental; the serialize mode chose it knowingly.
        warnings.simplefilter("ignore", FutureWarning)
        return FileSessionStore(blueprint.directory)


async def write_session(blueprint: Blueprint, key: str, session: Any) -> None:
    """Store a session under a key.

    Raises:
        Unsupported: The folder cannot be written to.
    """
    try:
        await open_store(blueprint).set(key, session)
    except OSError as error:
        raise name_broken_store(blueprint.serialize, f"file:///{blueprint.directory}", error) from error


async def read_stored_session(blueprint: Blueprint, key: str) -> Any:
    """Return the session that the store holds under a key.

    Raises:
        LookupError: It holds none: the framework returns None, also for a folder that is not there.
        ValueError: What is there is damaged, or of another release.
        Unsupported: The folder cannot be read.
    """
    try:
        session = await open_store(blueprint).get(key)
    except OSError as error:
        raise name_broken_store(blueprint.serialize, f"file:///{blueprint.directory}", error) from error
    if session is None:
        raise LookupError(
            f"the store in {blueprint.directory!r} has no session {key!r}: it was never stored there, or was removed; "
            "name the folder that it was stored in, or begin a new session"
        )
    return session


async def trim_history(agent: Any, session: Any, keep: int) -> None:
    """Exclude all but the last *keep* stored messages of *session*, as after a run."""
    try:
        from agent_framework import CompactionProvider, TruncationStrategy
    except ImportError as error:
        raise Unsupported("trim", "this release has no compaction of stored histories") from error
    compaction = CompactionProvider(after_strategy=TruncationStrategy(max_n=keep, compact_to=keep))
    # The framework calls this after a run; it reads the messages from the session, and needs no context for that.
    await compaction.after_run(agent=agent, session=session, context=None, state={})

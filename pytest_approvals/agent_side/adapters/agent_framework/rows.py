"""A provider of history as people write their own: rows by session, and a request is a row of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_framework import Message

from .requests import REQUEST

try:
    from agent_framework import HistoryProvider
except ImportError:
    # What it was called first.
    from agent_framework import BaseHistoryProvider as HistoryProvider


class Rows(HistoryProvider):
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
            said = [content for content in message.contents if content.type != REQUEST]
            asked = [[content] for content in message.contents if content.type == REQUEST]
            self.of(session_id).extend(Message(message.role, row) for row in (said, *asked) if row)

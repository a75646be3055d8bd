"""
Streamed updates, and how they become messages again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .contents import Content, Message, Text


def coalesced(updates: Iterable[Message]) -> list[Message]:
    """
    Gives the messages that a caller makes of the updates.

    A new message begins where both author names or both message ids are there and differ, or the roles do; texts that
    stand side by side become one.
    """
    messages: list[Message] = []
    for update in updates:
        if not messages or _begins_another(update, messages[-1]):
            messages.append(update)
        else:
            messages[-1] = _continued(messages[-1], update)
    return [replace(message, contents=_merged(message.contents)) for message in messages]


def _begins_another(update: Message, last: Message) -> bool:
    return (
        _differ(update.author_name, last.author_name)
        or _differ(update.message_id, last.message_id)
        or _differ(update.role, last.role)
    )


def _differ(one: str | None, other: str | None) -> bool:
    return bool(one) and bool(other) and one != other


def _continued(message: Message, update: Message) -> Message:
    return replace(
        message,
        contents=(*message.contents, *update.contents),
        message_id=update.message_id or message.message_id,
        author_name=message.author_name or update.author_name,
        created_at=update.created_at or message.created_at,
    )


def _merged(contents: Sequence[Content]) -> tuple[Content, ...]:
    merged: list[Content] = []
    for content in contents:
        last = merged[-1] if merged else None
        if isinstance(content, Text) and isinstance(last, Text) and not (_annotated(content) or _annotated(last)):
            merged[-1] = replace(last, text=last.text + content.text)
        else:
            merged.append(content)
    return tuple(merged)


def _annotated(text: Text) -> bool:
    return bool(text.source and text.source.get("annotations"))

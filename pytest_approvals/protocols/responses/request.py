"""A request for a response, with what the provider kept before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .kept import Kept, Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    A request and the memory that it is read against.

    Attributes:
        before: What the provider kept of the conversation.
        given: What the request brings, as it is written.
        new: What the request brings, with references resolved.
    """

    body: Mapping[str, Any]
    kept: Kept
    before: tuple[Written, ...]
    given: tuple[Written, ...]
    new: tuple[Written, ...]

    @property
    def previous(self) -> str | None:
        """The response that it goes on from."""
        named = self.body.get("previous_response_id")
        return str(named) if named else None

    @property
    def conversation(self) -> str | None:
        """The conversation that it belongs to."""
        return conversation_of(self.body)

    @property
    def is_stored(self) -> bool:
        """Whether the provider keeps the response."""
        return self.body.get("store") is not False


def conversation_of(body: Mapping[str, Any]) -> str | None:
    """Gives the conversation that a request names: an id, or an object with one."""
    named = body.get("conversation")
    if isinstance(named, Mapping):
        named = named.get("id")
    return str(named) if named else None


def request_of(body: Mapping[str, Any], kept: Kept) -> Request:
    """Reads a request against what is kept; *body* has the shape of one."""
    given = body.get("input")
    if isinstance(given, str):
        given = [{"type": "message", "role": "user", "content": given}]
    items = tuple(given or ())
    previous = body.get("previous_response_id")
    return Request(
        body=body,
        kept=kept,
        before=tuple(kept.before(str(previous) if previous else None, conversation_of(body))),
        given=items,
        new=tuple(_resolved(item, kept) for item in items),
    )


def _resolved(item: Written, kept: Kept) -> Written:
    return (kept.item(str(item.get("id"))) or item) if is_reference(item) else item


def is_reference(item: Written) -> bool:
    """Says whether an item of a request only names one that the provider keeps."""
    return item.get("type") == "item_reference"

"""What the provider keeps: responses that can be gone on from, conversations, and the items that can be referred to.

A request for a response, with what the provider kept before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ItemObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _StoredResponse:
    before: str | None
    items: tuple[ItemObject, ...]


class ProviderStore:
    """
    The memory of the provider.

    Attributes:
        given: How often the provider gave out each id of an item.
    """

    def __init__(self) -> None:
        self.given: Counter[str] = Counter()
        self._responses: dict[str, _StoredResponse] = {}
        self._conversations: dict[str, list[ItemObject]] = {}
        self._items: dict[str, ItemObject] = {}

    def forget(self) -> None:
        """Forgets everything."""
        for held in (self.given, self._responses, self._conversations, self._items):
            held.clear()

    def has_response(self, response_id: str) -> bool:
        """Says whether a response can be gone on from."""
        return response_id in self._responses

    def has_conversation(self, conversation: str) -> bool:
        """Says whether a conversation was begun."""
        return conversation in self._conversations

    def item(self, item_id: str) -> ItemObject | None:
        """Gives an item by its id."""
        return self._items.get(item_id)

    def begin(self, conversation: str, items: Sequence[ItemObject] = ()) -> None:
        """Begins a conversation, with what it holds from the start."""
        self._conversations[conversation] = list(items)

    def before(self, response_id: str | None, conversation: str | None) -> list[ItemObject]:
        """Gives everything up to a response, or what a conversation holds."""
        if conversation is not None:
            return list(self._conversations.get(conversation, ()))
        links: list[tuple[ItemObject, ...]] = []
        while response_id is not None and (link := self._responses.get(response_id)) is not None:
            links.append(link.items)
            response_id = link.before
        return [item for items in reversed(links) for item in items]

    def add_output(self, output: Sequence[ItemObject]) -> None:
        """Notes the items that the provider gave out, kept or not."""
        self.given.update(str(item["id"]) for item in output if item.get("id"))

    def keep(self, response_id: str, before: str | None, conversation: str | None, items: Sequence[ItemObject]) -> None:
        """Keeps a response: what was new in its request, and its output."""
        self._responses[response_id] = _StoredResponse(before, tuple(items))
        if conversation is not None:
            self._conversations.setdefault(conversation, []).extend(items)
        self._items.update((str(item["id"]), item) for item in items if item.get("id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesRequest:
    """
    A request and the memory that it is read against.

    Attributes:
        before: What the provider kept of the conversation.
        given: What the request brings, as it is written.
        new: What the request brings, with references resolved.
    """

    body: Mapping[str, Any]
    kept: ProviderStore
    before: tuple[ItemObject, ...]
    given: tuple[ItemObject, ...]
    new: tuple[ItemObject, ...]

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


def resolve_request(body: Mapping[str, Any], kept: ProviderStore) -> ResponsesRequest:
    """Reads a request against what is kept; *body* has the shape of one."""
    given = body.get("input")
    if isinstance(given, str):
        given = [{"type": "message", "role": "user", "content": given}]
    items = tuple(given or ())
    previous = body.get("previous_response_id")
    return ResponsesRequest(
        body=body,
        kept=kept,
        before=tuple(kept.before(str(previous) if previous else None, conversation_of(body))),
        given=items,
        new=tuple(_resolve(item, kept) for item in items),
    )


def _resolve(item: ItemObject, kept: ProviderStore) -> ItemObject:
    return (kept.item(str(item.get("id"))) or item) if is_reference(item) else item


def is_reference(item: ItemObject) -> bool:
    """Says whether an item of a request only names one that the provider keeps."""
    return item.get("type") == "item_reference"

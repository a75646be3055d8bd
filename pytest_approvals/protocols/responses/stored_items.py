"""Stored responses, conversations and items, and a request resolved against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ItemObject = Mapping[str, Any]
"""An item as JSON."""


@dataclass(frozen=True, slots=True)
class _StoredResponse:
    previous: str | None
    items: tuple[ItemObject, ...]


class ProviderStore:
    """What the provider stores between requests.

    Attributes:
        id_counts: How often the provider sent out each item id, stored or not.
    """

    def __init__(self) -> None:
        self.id_counts: Counter[str] = Counter()
        self._responses: dict[str, _StoredResponse] = {}
        self._conversations: dict[str, list[ItemObject]] = {}
        self._items: dict[str, ItemObject] = {}

    def clear(self) -> None:
        """Remove everything."""
        for table in (self.id_counts, self._responses, self._conversations, self._items):
            table.clear()

    def has_response(self, response_id: str) -> bool:
        """Return whether a response can be continued from."""
        return response_id in self._responses

    def has_conversation(self, conversation: str) -> bool:
        """Return whether a conversation was begun."""
        return conversation in self._conversations

    def get_item(self, item_id: str) -> ItemObject | None:
        """Return a stored item, or None."""
        return self._items.get(item_id)

    def begin_conversation(self, conversation: str, items: Sequence[ItemObject] = ()) -> None:
        """Begin a conversation with its first items."""
        self._conversations[conversation] = list(items)

    def items_before(self, response_id: str | None, conversation: str | None) -> list[ItemObject]:
        """Return everything up to a response, or the items of a conversation."""
        if conversation is not None:
            return list(self._conversations.get(conversation, ()))
        # Responses are linked from the latest to the first.
        links: list[tuple[ItemObject, ...]] = []
        while response_id is not None and (link := self._responses.get(response_id)) is not None:
            links.append(link.items)
            response_id = link.previous
        return [item for items in reversed(links) for item in items]

    def add_output(self, output: Sequence[ItemObject]) -> None:
        """Count the ids of items that the provider sent out, stored or not."""
        self.id_counts.update(str(item["id"]) for item in output if item.get("id"))

    def add_response(
        self, response_id: str, previous: str | None, conversation: str | None, items: Sequence[ItemObject]
    ) -> None:
        """Store a response: what was new in its request, and its output."""
        self._responses[response_id] = _StoredResponse(previous, tuple(items))
        if conversation is not None:
            self._conversations.setdefault(conversation, []).extend(items)
        self._items.update((str(item["id"]), item) for item in items if item.get("id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesRequest:
    """A request and the state that it is resolved against.

    Attributes:
        before: What the provider stored of the conversation.
        written: The items of the request as they are written.
        new: The items of the request with references resolved.
    """

    body: Mapping[str, Any]
    store: ProviderStore
    before: tuple[ItemObject, ...]
    written: tuple[ItemObject, ...]
    new: tuple[ItemObject, ...]

    @property
    def previous(self) -> str | None:
        """The response that it continues from."""
        named = self.body.get("previous_response_id")
        return str(named) if named else None

    @property
    def conversation(self) -> str | None:
        """The conversation that it belongs to."""
        return conversation_of(self.body)

    @property
    def is_stored(self) -> bool:
        """Whether the provider stores the response."""
        return self.body.get("store") is not False


def conversation_of(body: Mapping[str, Any]) -> str | None:
    """Return the conversation that a request names: an id, or an object with one."""
    named = body.get("conversation")
    if isinstance(named, Mapping):
        named = named.get("id")
    return str(named) if named else None


def resolve_request(body: Mapping[str, Any], store: ProviderStore) -> ResponsesRequest:
    """Resolve a request against what is stored; *body* has the shape of one."""
    value = body.get("input")
    if isinstance(value, str):
        value = [{"type": "message", "role": "user", "content": value}]
    items = tuple(value or ())
    previous = body.get("previous_response_id")
    return ResponsesRequest(
        body=body,
        store=store,
        before=tuple(store.items_before(str(previous) if previous else None, conversation_of(body))),
        written=items,
        new=tuple(_resolve(item, store) for item in items),
    )


def _resolve(item: ItemObject, store: ProviderStore) -> ItemObject:
    # An unknown reference stays one, which the rule `reference_unknown` refuses.
    return (store.get_item(str(item.get("id"))) or item) if is_reference(item) else item


def is_reference(item: ItemObject) -> bool:
    """Return whether an item of a request only names a stored one."""
    return item.get("type") == "item_reference" or (item.get("type") is None and "id" in item and "role" not in item)

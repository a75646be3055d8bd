"""Stored responses, conversations and items, and a request resolved against them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any
from urllib.parse import parse_qs

from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.text import list_objects, object_or_empty

ItemObject = Mapping[str, Any]
"""An item as JSON."""

_PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}


@dataclass(slots=True)
class StoredResponse:
    """A response as the provider stores it.

    Attributes:
        previous: The response before it.
        items: What was new in its request, and its output.
        shown: The response as clients retrieve it; None if only its items are known.
        given: The items that its request held, with their ids.
        is_pending: Nobody has retrieved it since it was begun in the background.
        is_deleted: It cannot be retrieved or continued from; what was continued from it before keeps its items.
    """

    previous: str | None
    items: tuple[ItemObject, ...]
    shown: Mapping[str, Any] | None = None
    given: tuple[tuple[str, ItemObject], ...] = ()
    is_pending: bool = False
    is_deleted: bool = False


@dataclass(slots=True)
class StoredConversation:
    """A conversation as the provider stores it; its items have ids, which clients may not have given."""

    metadata: Mapping[str, Any]
    items: list[tuple[str, ItemObject]]


class ProviderStore:
    """What the provider stores between requests.

    Attributes:
        id_counts: How often the provider sent out each item id, stored or not.
        conversation_numbers: The numbers of the next conversations.
        reasoning: The reasoning items that the provider sent out, stored or not, by their ids.
        led_to: The id of the item that followed each of them.
    """

    def __init__(self) -> None:
        self.id_counts: Counter[str] = Counter()
        self._responses: dict[str, StoredResponse] = {}
        self._conversations: dict[str, StoredConversation] = {}
        self._made_ids = count(1)
        self.conversation_numbers = count(1)
        self.reasoning: dict[str, ItemObject] = {}
        self.led_to: dict[str, str] = {}
        self._items: dict[str, ItemObject] = {}

    def clear(self) -> None:
        """Remove everything."""
        for table in (
            self.id_counts,
            self._responses,
            self._conversations,
            self._items,
            self.reasoning,
            self.led_to,
        ):
            table.clear()

    def has_response(self, response_id: str) -> bool:
        """Return whether a response can be continued from."""
        return self.get_response(response_id) is not None

    def get_response(self, response_id: str) -> StoredResponse | None:
        """Return a stored response, or None."""
        found = self._responses.get(response_id)
        return None if found is None or found.is_deleted else found

    def get_conversation(self, conversation: str) -> StoredConversation | None:
        """Return a conversation, or None."""
        return self._conversations.get(conversation)

    def delete_conversation(self, conversation: str) -> None:
        """Remove a conversation."""
        del self._conversations[conversation]

    def has_conversation(self, conversation: str) -> bool:
        """Return whether a conversation was begun."""
        return conversation in self._conversations

    def get_item(self, item_id: str) -> ItemObject | None:
        """Return a stored item, or None."""
        return self._items.get(item_id)

    def begin_conversation(
        self, conversation: str, items: Sequence[ItemObject] = (), metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Begin a conversation with its first items."""
        self._conversations[conversation] = StoredConversation(metadata or {}, [])
        self.extend_conversation(conversation, items)

    def extend_conversation(self, conversation: str, items: Sequence[ItemObject]) -> list[tuple[str, ItemObject]]:
        """Add items to a conversation, and return them with their ids."""
        added = [(self.id_of(item), item) for item in items]
        self._conversations[conversation].items.extend(added)
        return added

    def id_of(self, item: ItemObject) -> str:
        """Return the id of an item, or a new one with the prefix of its type."""
        kind = str(item.get("type") or "message")
        return str(item.get("id") or f"{_PREFIXES.get(kind, kind)}_in_{next(self._made_ids)}")

    def items_before(self, response_id: str | None, conversation: str | None) -> list[ItemObject]:
        """Return everything up to a response, or the items of a conversation."""
        if conversation is not None:
            known = self._conversations.get(conversation)
            return [item for _, item in known.items] if known is not None else []
        # Responses are linked from the latest to the first.
        links: list[tuple[ItemObject, ...]] = []
        if response_id is not None and not self.has_response(response_id):
            return []
        while response_id is not None and (link := self._responses.get(response_id)) is not None:
            links.append(link.items)
            response_id = link.previous
        return [item for items in reversed(links) for item in items]

    def add_output(self, output: Sequence[ItemObject]) -> None:
        """Note the items that the provider sent out, stored or not."""
        self.id_counts.update(str(item["id"]) for item in output if item.get("id"))
        for item, following in pairwise(output):
            if item.get("type") == "reasoning":
                self.reasoning[str(item["id"])] = item
                self.led_to[str(item["id"])] = str(following["id"])

    def add_response(
        self,
        response_id: str,
        previous: str | None,
        conversation: str | None,
        items: Sequence[ItemObject],
        shown: Mapping[str, Any] | None = None,
    ) -> None:
        """Store a response: what was new in its request, and its output; *shown* is what clients retrieve."""
        given = () if shown is None else tuple((self.id_of(one), one) for one in items[: -len(shown["output"]) or None])
        is_pending = shown is not None and bool(shown.get("background"))
        self._responses[response_id] = StoredResponse(previous, tuple(items), shown, given, is_pending)
        if conversation is not None:
            if conversation not in self._conversations:
                self.begin_conversation(conversation)
            self.extend_conversation(conversation, items)
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


# --- what clients ask of it -------------------------------------------------------------------------------------------

_PATH = re.compile(
    r"(?:^|/)(?P<kind>responses|conversations)"
    r"(?:/(?P<id>[^/]+)(?:/(?P<part>cancel|input_items|items)(?:/(?P<item>[^/]+))?)?)?/?\Z"
)

_PAGE = 20
_MAX_PAGE = 100
"""How many items a list has: documentation of `limit` of openai 3.52.0."""


def serve_stored(
    store: ProviderStore, method: str, path: str, query: str, body: Mapping[str, Any]
) -> Mapping[str, Any] | ProviderError | None:
    """Answer a request about stored responses and conversations.

    The paths are those of `responses` and `conversations` of openai 3.52.0.

    Args:
        store: What is stored.
        method: The method of the request.
        path: Its path.
        query: Its query.
        body: Its body; empty if it has none.

    Returns:
        The answer, an error, or None if no such path is served.
    """
    found = _PATH.search(path)
    if found is None:
        return None
    known_id, part, item = str(found["id"] or ""), str(found["part"] or ""), found["item"]
    if found["kind"] == "responses":
        return _serve_response(store, method, known_id, part, query) if known_id and not item else None
    return _serve_conversation(store, method, known_id, part, item, query, body)


def _serve_response(
    store: ProviderStore, method: str, response_id: str, part: str, query: str
) -> Mapping[str, Any] | ProviderError | None:
    if (method, part) not in (("GET", ""), ("DELETE", ""), ("POST", "cancel"), ("GET", "input_items")):
        return None
    stored = store.get_response(response_id)
    if stored is None or stored.shown is None:
        return ProviderError(text=f"Response with id '{response_id}' not found.", status=404)
    if part == "input_items":
        return _page(stored.given, query)
    if method == "DELETE":
        stored.is_deleted = True
        return {"id": response_id, "object": "response", "deleted": True}
    if part == "cancel":
        if not stored.shown.get("background"):
            return ProviderError(text="Cannot cancel a synchronous response.")
        if stored.is_pending:
            stored.shown = {**stored.shown, "status": "cancelled", "output": [], "completed_at": None, "usage": None}
    stored.is_pending = False
    return stored.shown


def _serve_conversation(
    store: ProviderStore,
    method: str,
    conversation: str,
    part: str,
    item_id: str | None,
    query: str,
    body: Mapping[str, Any],
) -> Mapping[str, Any] | ProviderError | None:
    if not conversation and method == "POST":
        conversation = f"conv_{next(store.conversation_numbers)}"
        store.begin_conversation(conversation, list_objects(body.get("items")), object_or_empty(body.get("metadata")))
    elif not conversation or part not in ("", "items"):
        return None
    stored = store.get_conversation(conversation)
    if stored is None:
        return ProviderError(text=f"Conversation with id '{conversation}' not found.", status=404)
    if item_id is not None:
        return _serve_item(conversation, stored, method, item_id)
    if part == "items":
        if method == "POST":
            added = store.extend_conversation(conversation, list_objects(body.get("items")))
            return _page(added, f"order=asc&limit={_MAX_PAGE}")
        return _page(stored.items, query) if method == "GET" else None
    if method == "DELETE":
        store.delete_conversation(conversation)
        return {"id": conversation, "object": "conversation.deleted", "deleted": True}
    if method == "POST" and "metadata" in body:
        stored.metadata = object_or_empty(body["metadata"])
    return _show_conversation(conversation, stored)


def _serve_item(
    conversation: str, stored: StoredConversation, method: str, item_id: str
) -> Mapping[str, Any] | ProviderError | None:
    position = next((number for number, (known, _) in enumerate(stored.items) if known == item_id), None)
    if position is None:
        return ProviderError(text=f"Item with id '{item_id}' not found.", status=404)
    if method == "DELETE":
        del stored.items[position]
        return _show_conversation(conversation, stored)
    return _show_item(*stored.items[position]) if method == "GET" else None


def _show_conversation(conversation: str, stored: StoredConversation) -> dict[str, Any]:
    return {"id": conversation, "object": "conversation", "created_at": 0, "metadata": dict(stored.metadata)}


def _page(items: Sequence[tuple[str, ItemObject]], query: str) -> Mapping[str, Any] | ProviderError:
    options = {name: values[-1] for name, values in parse_qs(query).items()}
    ordered = list(items) if options.get("order") == "asc" else list(reversed(items))
    after = options.get("after")
    if after is not None:
        positions = [number for number, (known, _) in enumerate(ordered) if known == after]
        ordered = ordered[positions[-1] + 1 :] if positions else []
    written = options.get("limit", str(_PAGE))
    limit = int(written) if written.isdecimal() else 0
    if not 1 <= limit <= _MAX_PAGE:
        text = f"Invalid 'limit': expected an integer from 1 to {_MAX_PAGE}, but got {written!r}."
        return ProviderError(text=text, param="limit", code="invalid_value")
    shown = [_show_item(*one) for one in ordered[:limit]]
    ids = [known for known, _ in ordered[:limit]] or [""]
    return {
        "object": "list",
        "data": shown,
        "first_id": ids[0],
        "last_id": ids[-1],
        "has_more": len(ordered) > limit,
    }


def _show_item(item_id: str, item: ItemObject) -> dict[str, Any]:
    """Return an item as lists of items show it: with an id, and a message with its content in parts."""
    kind = item.get("type") or "message"
    if kind not in ("message", "function_call", "function_call_output"):
        return {**item, "id": item_id}
    shown = {"type": kind, "status": "completed", **item, "id": item_id}
    if isinstance(item.get("content"), str):
        shown["content"] = [_text_part(str(item.get("role")), str(item["content"]))]
    return shown


def _text_part(role: str, text: str) -> dict[str, Any]:
    if role != "assistant":
        return {"type": "input_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

"""What the provider keeps: responses that can be gone on from, conversations, and the items that can be referred to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Written = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Link:
    before: str | None
    items: tuple[Written, ...]


class Kept:
    """
    The memory of the provider.

    Attributes:
        given: How often the provider gave out each id of an item.
    """

    def __init__(self) -> None:
        self.given: Counter[str] = Counter()
        self._responses: dict[str, _Link] = {}
        self._conversations: dict[str, list[Written]] = {}
        self._items: dict[str, Written] = {}

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

    def item(self, item_id: str) -> Written | None:
        """Gives an item by its id."""
        return self._items.get(item_id)

    def begin(self, conversation: str, items: Sequence[Written] = ()) -> None:
        """Begins a conversation, with what it holds from the start."""
        self._conversations[conversation] = list(items)

    def before(self, response_id: str | None, conversation: str | None) -> list[Written]:
        """Gives everything up to a response, or what a conversation holds."""
        if conversation is not None:
            return list(self._conversations.get(conversation, ()))
        links: list[tuple[Written, ...]] = []
        while response_id is not None and (link := self._responses.get(response_id)) is not None:
            links.append(link.items)
            response_id = link.before
        return [item for items in reversed(links) for item in items]

    def gave(self, output: Sequence[Written]) -> None:
        """Notes the items that the provider gave out, kept or not."""
        self.given.update(str(item["id"]) for item in output if item.get("id"))

    def keep(self, response_id: str, before: str | None, conversation: str | None, items: Sequence[Written]) -> None:
        """Keeps a response: what was new in its request, and its output."""
        self._responses[response_id] = _Link(before, tuple(items))
        if conversation is not None:
            self._conversations.setdefault(conversation, []).extend(items)
        self._items.update((str(item["id"]), item) for item in items if item.get("id"))

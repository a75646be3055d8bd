"""
One conversation with a model: its calls, and which of them each input of the model contains and answers.

Inputs are aligned from their end, since histories are trimmed at the front: the j-th last call of an id in the input is
the j-th last occurrence of that id. Results settle by position: each is used once, by the earliest call of its id that
stands before it without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .arguments import same_arguments
from .calls import CallSeen, Told
from .turns import Exchange


@dataclass(slots=True)
class Conversation:
    """
    One conversation in one fork.

    Attributes:
        by_id: Its calls by the id under which they are known; an agent may rename ids.
        last: The exchange that was aligned last.
        placed, open, closed: What the last input contains: its calls with the indexes of their items, those without a
            result, and the last one with a result, by id.
    """

    calls: list[CallSeen] = field(default_factory=list)
    by_id: dict[str | None, list[CallSeen]] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    last: Exchange | None = None
    placed: list[tuple[int, CallSeen]] = field(default_factory=list)
    open: dict[str | None, list[CallSeen]] = field(default_factory=dict)
    closed: dict[str | None, CallSeen] = field(default_factory=dict)
    orphans: list[int] = field(default_factory=list)
    strangers: list[int] = field(default_factory=list)

    def add(self, call: CallSeen) -> None:
        """Takes in a call that the model made."""
        self.calls.append(call)
        self.by_id.setdefault(call.id, []).append(call)

    def align(self, exchange: Exchange) -> list[tuple[str, CallSeen]]:
        """
        Takes in the next input of the model, and records on its calls what the model is told.

        Returns:
            The ids that the agent gave to calls in place of the model's.
        """
        start = self._repeated(exchange)
        self.last = exchange
        self.exchanges.append(exchange)
        items = exchange.items
        renamed: list[tuple[str, CallSeen]] = []
        if start < len(items):
            places, renamed = self._places(items, start)
            self._read(exchange, start, places)
        exchange.placed = self.placed[:] if self.placed else []
        if self.open:
            exchange.unanswered = [call for calls in self.open.values() for call in calls]
        exchange.orphans, exchange.strangers = self.orphans[:], self.strangers[:]
        return renamed

    def _repeated(self, exchange: Exchange) -> int:
        """Gives the index from which the input is new; 0 where it does not repeat the one before."""
        before = self.last
        exchange.before = before
        if before is None:
            return 0
        count = len(before.items)
        if list(exchange.items[:count]) == before.items:
            return count
        exchange.differs = first_difference(before.items, exchange.items)
        self.placed, self.open, self.closed, self.orphans, self.strangers = [], {}, {}, [], []
        return 0

    def _places(
        self, items: Sequence[Mapping[str, Any]], start: int
    ) -> tuple[dict[int, CallSeen], list[tuple[str, CallSeen]]]:
        """Finds the calls of the items from *start* on, and the ids that are not the model's own."""
        indexes: dict[str | None, list[int]] = {}
        for index in range(start, len(items)):
            if items[index]["kind"] in ("call", "approval_request"):
                indexes.setdefault(items[index].get("id"), []).append(index)
        if not indexes:
            return {}, []
        known = {id(call) for _, call in self.placed}
        places: dict[int, CallSeen] = {}
        renamed: list[tuple[str, CallSeen]] = []
        for seen, where in indexes.items():
            occurrences = self.by_id.get(seen, ())
            for index, call in zip(reversed(where), reversed(occurrences), strict=False):
                if id(call) not in known:
                    places[index] = call
                    known.add(id(call))
        for seen, where in indexes.items():
            for index in where:
                if index not in places and seen not in self.by_id:
                    found = self._by_content(items[index], known)
                    if found is not None:
                        places[index] = found
                        known.add(id(found))
                        renamed.append((str(seen), found))
        for seen, call in renamed:
            self.by_id.setdefault(seen, []).append(call)
        return places, renamed

    def _by_content(self, item: Mapping[str, Any], known: set[int]) -> CallSeen | None:
        tool, arguments = item.get("tool"), item.get("arguments")
        for call in self.calls:
            if id(call) in known or call.tool != tool:
                continue
            if same_arguments(arguments, call.arguments, call.parameters):
                return call
        return None

    def _read(self, exchange: Exchange, start: int, places: Mapping[int, CallSeen]) -> None:
        items = exchange.items
        for index in range(start, len(items)):
            item = items[index]
            kind = item["kind"]
            if kind in ("call", "approval_request"):
                self._read_call(index, item, places.get(index))
            elif kind == "result":
                self._read_result(exchange, index, item)
            elif kind == "approval_response":
                self._read_response(exchange, item)

    def _read_call(self, index: int, item: Mapping[str, Any], call: CallSeen | None) -> None:
        if call is None:
            self.strangers.append(index)
            return
        self.placed.append((index, call))
        if item["kind"] == "call":
            self.open.setdefault(item.get("id"), []).append(call)

    def _read_result(self, exchange: Exchange, index: int, item: Mapping[str, Any]) -> None:
        seen = item.get("id")
        waiting = self.open.get(seen)
        if waiting:
            call = waiting.pop(0)
            if not waiting:
                del self.open[seen]
            self.closed[seen] = call
            tell(call, exchange.n, item.get("text"), index)
        elif seen in self.closed:
            call = self.closed[seen]
            call.told.append(Told(n=exchange.n, text=item.get("text"), item=index, second=True))
        else:
            self.orphans.append(index)

    def _read_response(self, exchange: Exchange, item: Mapping[str, Any]) -> None:
        known = self.by_id.get(item.get("id"))
        if known:
            known[-1].responses.append((exchange.n, bool(item.get("approved"))))


def tell(call: CallSeen, n: int, text: str | None, item: int | None) -> None:
    """Records that the model is told *text* as the result of *call*, unless it is repeated."""
    if not call.told or call.told[-1].text != text:
        call.told.append(Told(n=n, text=text, item=item))
    if call.runs and call.runs[-1].start is None and call.runs[-1].how == "open":
        call.runs[-1].how, call.runs[-1].ended = "returned", n


def first_difference(before: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> int | None:
    """Gives the index at which *items* ceases to repeat *before* by kind, id and text; None where it repeats it all."""
    for index, old in enumerate(before):
        if index >= len(items):
            return index
        new = items[index]
        if old["kind"] != new["kind"] or old.get("id") != new.get("id") or old.get("text") != new.get("text"):
            return index
    return None

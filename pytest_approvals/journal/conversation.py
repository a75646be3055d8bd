"""Conversation with a model: its calls, and which of them each model input contains and answers.

Inputs are aligned from their end, since histories are trimmed at the front: the j-th last call of an id in the input is
the j-th last occurrence of that id.

Call ids come again within a conversation, so a result cannot be matched by its id alone. Results settle by position:
each is used once, by the earliest call of its id before it that has none.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pytest_approvals.journal.arguments import are_same_values, arguments_match
from pytest_approvals.journal.history import DeliveredResult, Exchange, RecordedCall

T = TypeVar("T")

Rewrite = tuple[str, str]
"""A text, and the one that took its place in a save."""


class PositionalSettlement(Generic[T]):
    """Open and settled calls of one conversation, by id.

    Attributes:
        open: The calls without a result, in their order.
        last_settled: The call of each id that was settled last.
    """

    __slots__ = ("last_settled", "open")

    def __init__(self) -> None:
        # Nearly every id is open only once, and a tuple costs less than a queue.
        self.open: dict[str | None, tuple[T] | deque[T]] = {}
        self.last_settled: dict[str | None, T] = {}

    def begin(self, call_id: str | None, call: T) -> None:
        """Add a call that has no result yet."""
        waiting = self.open.get(call_id)
        if waiting is None:
            self.open[call_id] = (call,)
        elif isinstance(waiting, deque):
            waiting.append(call)
        else:
            self.open[call_id] = deque((*waiting, call))

    def settle(self, call_id: str | None) -> T | None:
        """Return the call that a result of that id settles; None if no such call is open."""
        waiting = self.open.get(call_id)
        if waiting is None:
            return None
        if isinstance(waiting, deque) and len(waiting) > 1:
            call = waiting.popleft()
        else:
            (call,) = waiting
            del self.open[call_id]
        self.last_settled[call_id] = call
        return call

    def unsettled(self) -> list[T]:
        """Return the calls without a result."""
        return [call for calls in self.open.values() for call in calls]


@dataclass(slots=True)
class ConversationAligner:
    """Aligns the inputs of one conversation in one branch with the calls that the model made.

    Attributes:
        rewrites: How the text of a save of its branch was changed: what was replaced by what.
        calls: The calls that the model made.
        by_id: Its calls by the id under which they are known; an agent may rename ids.
        exchanges: The exchanges so far.
        last: The exchange that was aligned last.
        placed_calls: The calls in the last input, with the indexes of their items.
        results: Which calls of the last input have no result, and the last one with a result, by id.
        orphans, unknown_calls, approvals: As in `Exchange`, of the last input.
        known: The identities of the placed calls.
        places: Which item shows which call, for ids that are used more than once; None until it is needed.
        renamed: The ids that the agent gave to calls in the last input.
    """

    rewrites: list[Rewrite] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)
    by_id: dict[str | None, list[RecordedCall]] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    last: Exchange | None = None
    placed_calls: list[tuple[int, RecordedCall]] = field(default_factory=list)
    results: PositionalSettlement[RecordedCall] = field(default_factory=PositionalSettlement)
    orphans: list[int] = field(default_factory=list)
    unknown_calls: list[int] = field(default_factory=list)
    approvals: list[int] = field(default_factory=list)
    known: set[int] = field(default_factory=set)
    places: dict[int, RecordedCall] | None = None
    renamed: list[tuple[str, RecordedCall]] = field(default_factory=list)

    def add(self, call: RecordedCall) -> None:
        """Add a call that the model made."""
        self.calls.append(call)
        self.by_id.setdefault(call.id, []).append(call)

    def align(self, exchange: Exchange) -> list[tuple[str, RecordedCall]]:
        """Read the next model input, and record on its calls what the model is told.

        Returns:
            The ids that the agent gave to calls in place of the model's.
        """
        start = self._start_of_new_items(exchange)
        self.last = exchange
        self.exchanges.append(exchange)
        self.places, self.renamed = None, []
        if start < len(exchange.items):
            self._read(exchange, start)
        exchange.placed_calls = self.placed_calls[:]
        exchange.orphans, exchange.unknown_calls, exchange.approvals = (
            self.orphans[:],
            self.unknown_calls[:],
            self.approvals[:],
        )
        if self.results.open:
            exchange.unanswered = self.results.unsettled()
        return self.renamed

    def _start_of_new_items(self, exchange: Exchange) -> int:
        """Return the index from which the input is new; 0 if it does not repeat the previous one."""
        before = self.last
        if before is None:
            return 0
        exchange.previous = before
        # Most inputs repeat the previous one: then only what is new is read.
        count = len(before.items)
        if exchange.items[:count] == before.items:
            exchange.repeats_previous = True
            return count
        exchange.first_difference = find_first_difference(before.items, exchange.items)
        self.placed_calls, self.results, self.known = [], PositionalSettlement(), set()
        self.orphans, self.unknown_calls, self.approvals = [], [], []
        return 0

    def _read(self, exchange: Exchange, start: int) -> None:
        items = exchange.items
        for index in range(start, len(items)):
            item = items[index]
            kind = item["kind"]
            if kind == "call":
                self._read_call(exchange, start, index, item)
            elif kind == "result":
                self._read_result(exchange, index, item)
            elif kind == "approval_request":
                self.approvals.append(index)
                self._read_call(exchange, start, index, item)
            elif kind == "approval_response":
                self.approvals.append(index)
                self._read_response(exchange, index, item)

    def _read_call(self, exchange: Exchange, start: int, index: int, item: Mapping[str, Any]) -> None:
        seen = item.get("id")
        same = self.by_id.get(seen)
        # The usual case, without any alignment: the id was used once.
        if same is not None and len(same) == 1 and id(same[0]) not in self.known:
            call = same[0]
        else:
            repeated = self._find_repeated_call(exchange.items, start, index)
            if repeated is None:
                self.unknown_calls.append(index)
                return
            call = repeated
        self.known.add(id(call))
        self.placed_calls.append((index, call))
        if item["kind"] == "call":
            self.results.begin(seen, call)

    def _find_repeated_call(self, items: Sequence[Mapping[str, Any]], start: int, index: int) -> RecordedCall | None:
        """Return the call of an item whose id is used more than once, or is not the model's own."""
        seen = items[index].get("id")
        if seen not in self.by_id:
            return self._match_renamed_call(items[index], str(seen))
        if self.places is None:
            self.places = self._align_from_end(items, start)
        call = self.places.get(index)
        # An agent may make up an id once more for a call of a later reply.
        if call is None and all(known.id != seen for known in self.by_id[seen]):
            return self._match_renamed_call(items[index], str(seen))
        return call

    def _align_from_end(self, items: Sequence[Mapping[str, Any]], start: int) -> dict[int, RecordedCall]:
        """Align ids that are used more than once from the end: the last item is the last occurrence.

        Items that show the call as the model made it, or as its request showed it last, come first, since one of two
        calls may have got another id.
        """
        indexes: dict[str | None, list[int]] = {}
        for index in range(len(items) - 1, start - 1, -1):
            if items[index]["kind"] in ("call", "approval_request"):
                indexes.setdefault(items[index].get("id"), []).append(index)
        places: dict[int, RecordedCall] = {}
        for seen, where in indexes.items():
            # A call that the input has shown already cannot be shown by another item.
            free = [call for call in reversed(self.by_id.get(seen, ())) if id(call) not in self.known]
            # Another item shows one that is known under an id of its own, so that it comes last.
            elsewhere = {
                id(calls[0])
                for name, calls in self.by_id.items()
                if name != seen and name in indexes and len(calls) == 1
            }
            free.sort(key=lambda call: id(call) in elsewhere)
            for index in where:
                item = items[index]
                equal = next(
                    (
                        call
                        for shows in (_repeats_call, _shows_call, _shows_last_request)
                        for call in free
                        if shows(call, item)
                    ),
                    None,
                )
                if equal is not None:
                    places[index] = equal
                    free = [call for call in free if call is not equal]
            free = [call for call in free if id(call) not in elsewhere]
            places.update(zip((index for index in where if index not in places), free, strict=False))
        return places

    def _match_renamed_call(self, item: Mapping[str, Any], seen: str) -> RecordedCall | None:
        call = self._find_by_content(item)
        if call is not None:
            self.by_id.setdefault(seen, []).append(call)
            self.renamed.append((seen, call))
        return call

    def _find_by_content(self, item: Mapping[str, Any]) -> RecordedCall | None:
        free = [call for call in self.calls if id(call) not in self.known]
        equal = (
            [call for call in free if _shows_call(call, item)]
            or [call for call in free if _shows_changed_request(call, item)]
            or [call for call in free if self.rewrites and _shows_rewritten_call(call, item, self.rewrites)]
        )
        if len(equal) < 2:
            return equal[0] if equal else None
        # One that the agent has given an id already, and that was trimmed since, is less likely than one without.
        # A call of an earlier reply was shown before, if only under the name that a change of the save has given it.
        renamed = {id(call) for seen, calls in self.by_id.items() for call in calls if seen != call.id}
        return min(equal, key=lambda call: (id(call) in renamed, -call.n))

    def _read_result(self, exchange: Exchange, index: int, item: Mapping[str, Any]) -> None:
        seen = item.get("id")
        call = self.results.settle(seen)
        if call is not None:
            record_delivery(call, exchange.n, item.get("text"), index)
        elif seen in self.results.last_settled:
            call = self.results.last_settled[seen]
            call.deliveries.append(DeliveredResult(n=exchange.n, text=item.get("text"), item=index, second=True))
        else:
            self.orphans.append(index)

    def _read_response(self, exchange: Exchange, index: int, item: Mapping[str, Any]) -> None:
        seen = item.get("id")
        known = self.by_id.get(seen)
        if not known:
            return
        call = known[-1]
        if len(known) > 1:
            # Of several hosted calls with one id, each has a response of its own, in their order.
            asked = [
                each
                for place, each in self.placed_calls
                if each.kind == "hosted_mcp" and exchange.items[place].get("id") == seen
            ]
            before = sum(
                each["kind"] == "approval_response" and each.get("id") == seen for each in exchange.items[:index]
            )
            call = asked[before] if before < len(asked) else call
        call.approval_responses.append((exchange.n, item.get("approved") is True))


def _repeats_call(call: RecordedCall, item: Mapping[str, Any]) -> bool:
    """Return whether an item shows a call in the model's own words, which may tell no arguments from empty ones."""
    return call.tool == item.get("tool") and are_same_values(item.get("arguments"), call.arguments)


def _shows_call(call: RecordedCall, item: Mapping[str, Any]) -> bool:
    shown = item.get("arguments")
    return call.tool == item.get("tool") and (
        arguments_match(shown, call.arguments, call.parameters) or _holds_unreadable_text(shown, call.arguments)
    )


def _holds_unreadable_text(shown: Any, arguments: Any) -> bool:
    """Return whether arguments that are no JSON are shown in an object, as providers want one."""
    return isinstance(arguments, str) and isinstance(shown, Mapping) and [*shown.values()] == [arguments]


def _shows_changed_request(call: RecordedCall, item: Mapping[str, Any]) -> bool:
    """Return whether an item shows a call as its request did last, after that had shown another tool or arguments."""
    listed = [(entry.get("tool"), entry.get("arguments")) for request in call.requests for _, entry in request.listings]
    return bool(listed) and listed[-1] != listed[0] and _shows_last_request(call, item)


def _shows_last_request(call: RecordedCall, item: Mapping[str, Any]) -> bool:
    """Return whether an item shows a call as its request did last."""
    listed = [entry for request in call.requests for _, entry in request.listings[-1:]]
    if not listed:
        return False
    tool, arguments = listed[-1].get("tool"), listed[-1].get("arguments")
    return tool == item.get("tool") and arguments_match(item.get("arguments"), arguments, call.parameters)


def _shows_rewritten_call(call: RecordedCall, item: Mapping[str, Any], rewrites: Sequence[Rewrite]) -> bool:
    """Return whether an item shows a call as a changed save has it, in its tool, its arguments, or both."""
    changed = apply_rewrites([call.tool, call.arguments], rewrites)
    if changed is None:
        return False
    tool, arguments = changed
    return item.get("tool") in (call.tool, tool) and any(
        arguments_match(item.get("arguments"), shown, call.parameters) for shown in (arguments, call.arguments)
    )


def apply_rewrites(value: Any, rewrites: Iterable[Rewrite]) -> Any:
    """Return a JSON value as changes of the text that holds it have left it; None if that is no JSON any more.

    >>> apply_rewrites({"done": "10", "cents": 10}, [("10", "77")])
    {'done': '77', 'cents': 77}
    """
    saved = json.dumps(value, ensure_ascii=False)
    for old, new in rewrites:
        saved = saved.replace(old, new)
    try:
        return json.loads(saved)
    except ValueError:
        # Such as a comma in place of a quote: nothing can be restored from that.
        return None


def record_delivery(call: RecordedCall, n: int, text: str | None, item: int | None) -> None:
    """Record that the model is told *text* as the result of *call*, unless that only repeats what it was told."""
    if not call.deliveries or call.deliveries[-1].text != text:
        call.deliveries.append(DeliveredResult(n=n, text=text, item=item))
    if call.executions and call.executions[-1].start is None and call.executions[-1].how == "open":
        call.executions[-1].how, call.executions[-1].ended = "returned", n


def find_first_difference(before: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the index at which *items* stops repeating *before* by kind, id and text; None if it repeats all."""
    for index, old in enumerate(before):
        if index >= len(items):
            return index
        new = items[index]
        if old["kind"] != new["kind"] or old.get("id") != new.get("id") or old.get("text") != new.get("text"):
            return index
    return None

"""A model input read once, so that each rule of a provider has only to look at what is odd about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class ReadInput:
    """
    An input, read once: how calls and results, requests and responses settle each other, and what is odd about it.

    Everything is empty for an input that every provider takes, but *closed*, *requests* and *responses*.
    """

    __slots__ = (
        "_message",
        "blank",
        "closed",
        "doubled",
        "first",
        "interrupted",
        "items",
        "nameless",
        "open",
        "orphans",
        "repeated",
        "requests",
        "responses",
        "seconds",
        "textual",
    )

    def __init__(self) -> None:
        self.items: Sequence[Mapping[str, Any]] = ()
        self.open: dict[str | None, list[int]] = {}
        self.closed: set[str | None] = set()
        self.orphans: list[int] = []
        self.seconds: list[int] = []
        self.doubled: list[int] = []
        self.repeated: list[int] = []
        self.nameless: list[int] = []
        self.blank: list[int] = []
        self.textual: list[int] = []
        self.requests: dict[str | None, int] = {}
        self.responses: list[int] = []
        self.interrupted = False
        self.first = ""
        self._message: int | None = None

    def read(self, items: Sequence[Mapping[str, Any]], start: int = 0) -> ReadInput:
        """Reads *items* from *start* on, where what stands before was read already."""
        self.items = items
        for index in range(start, len(items)):
            item = items[index]
            kind = item["kind"]
            if kind == "other":
                continue
            if not self.first:
                self.first = kind
            if kind == "result":
                self._result(index, item.get("id"))
                self._message = None
            elif kind != "hosted_result":
                self._other(index, kind, item)
        return self

    def _other(self, index: int, kind: str, item: Mapping[str, Any]) -> None:
        if self.open and (kind == "user" or self._message is None or item.get("message") != self._message):
            self.interrupted = True
        if kind == "call":
            self._call(index, item)
            self._message = item.get("message")
        elif kind == "approval_request":
            self.requests[item.get("id")] = index
        elif kind == "approval_response":
            self.responses.append(index)
        elif not str(item.get("text") or "").strip():
            self.blank.append(index)

    def _call(self, index: int, item: Mapping[str, Any]) -> None:
        call_id = item.get("id")
        if not call_id:
            self.nameless.append(index)
        if not isinstance(item.get("arguments"), Mapping | None):
            self.textual.append(index)
        if call_id in self.open:
            self.doubled.append(index)
            self.open[call_id].append(index)
            return
        if call_id in self.closed:
            self.repeated.append(index)
        self.open[call_id] = [index]

    def _result(self, index: int, call_id: str | None) -> None:
        waiting = self.open.get(call_id)
        if waiting:
            waiting.pop(0)
            if not waiting:
                del self.open[call_id]
            self.closed.add(call_id)
        else:
            (self.seconds if call_id in self.closed else self.orphans).append(index)

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing in it that any provider may refuse."""
        if self.open or self.orphans or self.seconds or self.doubled or self.repeated or self.nameless:
            return False
        if self.blank or self.textual or self.requests or self.responses or self.interrupted:
            return False
        return self.first == "user" or self.first == "result"

    @property
    def is_empty(self) -> bool:
        return not self.first

    @property
    def has_approvals(self) -> bool:
        return bool(self.requests or self.responses)

    def id(self, index: int) -> str:
        return str(self.items[index].get("id") or "")

    def ids(self, indexes: Iterable[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.id(index) for index in indexes))

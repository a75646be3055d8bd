"""Settlement of calls by position: a result belongs to the earliest open call of its id.

Call ids come again within a conversation, so a result cannot be matched by its id alone. Each result is used once, by
the earliest call of its id before it that has none.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class PositionalSettlement(Generic[T]):
    """Open and settled calls of one conversation, by id.

    Attributes:
        open: The calls without a result, in their order.
        last_settled: The call of each id that was settled last.
    """

    __slots__ = ("last_settled", "open")

    def __init__(self) -> None:
        self.open: dict[str | None, list[T]] = {}
        self.last_settled: dict[str | None, T] = {}

    def begin(self, call_id: str | None, call: T) -> None:
        """Add a call that has no result yet."""
        # Not `setdefault`: it would make a list for every call of the hot path.
        if call_id in self.open:
            self.open[call_id].append(call)
        else:
            self.open[call_id] = [call]

    def settle(self, call_id: str | None) -> T | None:
        """Return the call that a result of that id settles; None if no such call is open."""
        waiting = self.open.get(call_id)
        if not waiting:
            return None
        call = waiting.pop(0)
        if not waiting:
            del self.open[call_id]
        self.last_settled[call_id] = call
        return call

    def unsettled(self) -> list[T]:
        """Return the calls without a result."""
        return [call for calls in self.open.values() for call in calls]

"""Settlement of calls by position: a result belongs to the earliest open call of its id.

Call ids come again within a conversation, so a result cannot be matched by its id alone. Each result is used once, by
the earliest call of its id before it that has none.
"""

from __future__ import annotations

from collections import deque
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

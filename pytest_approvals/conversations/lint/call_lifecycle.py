"""
Trails: each call of a conversation with its request, its decisions and its result.

A trail is settled by its result; an id that is used again after that begins a new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from pytest_approvals.conversations.histories.conversation import CallEntry, DecisionEntry, RequestEntry, ResultEntry
from pytest_approvals.journal.arguments import arguments_match
from pytest_approvals.journal.formatting import format_call

_MAX_CALL_LENGTH = 100
"""How many characters of a call are shown."""


class CallLifecycle(Struct, eq=False):
    """
    One call.

    Attributes:
        made: What began it: the call, or a request that stands for it.
        round: The model's answer that it belongs to, counted from the start of the conversation.
        decision: The one in force.
    """

    made: CallEntry | RequestEntry
    round: int
    request: RequestEntry | None = None
    call: CallEntry | None = None
    decision: DecisionEntry | None = None
    result: ResultEntry | None = None

    @property
    def decided(self) -> tuple[str, Any]:
        """The tool and the arguments that were decided about; those that the model asked for where nobody decided."""
        decision = self.decision
        if decision is None or decision.arguments is None:
            return self.made.tool, self.made.arguments
        return decision.tool or self.made.tool, decision.arguments


@dataclass(slots=True)
class OpenLifecycles:
    """The trails without a result, by call id, and the last settled one of each id."""

    open: dict[str | None, list[CallLifecycle]] = field(default_factory=dict)
    settled: dict[str | None, CallLifecycle] = field(default_factory=dict)

    def __iter__(self) -> Iterator[CallLifecycle]:
        """Gives those without a result."""
        return (trail for waiting in self.open.values() for trail in waiting)

    def begin(self, call_id: str | None, trail: CallLifecycle) -> None:
        """Adds a trail, or goes on with one under another call id."""
        if call_id in self.open:
            self.open[call_id].append(trail)
        else:
            self.open[call_id] = [trail]

    def take(self, call_id: str | None, trail: CallLifecycle) -> None:
        """Takes a trail out."""
        waiting = self.open[call_id]
        waiting.remove(trail)
        if not waiting:
            del self.open[call_id]

    def settle(self, result: ResultEntry) -> CallLifecycle | None:
        """Ends the oldest one of the call id that a result says; None where there is none."""
        waiting = self.open.get(result.call_id)
        if waiting is None:
            return None
        trail = waiting.pop(0)
        if not waiting:
            del self.open[result.call_id]
        trail.result = result
        self.settled[result.call_id] = trail
        return trail

    def find_unrequested(self, call_id: str) -> CallLifecycle | None:
        """Gives one of a call id that nobody has been asked about."""
        return next((trail for trail in self.open.get(call_id, ()) if trail.request is None), None)

    def find_placeholder(self, call: CallEntry) -> CallLifecycle | None:
        """Gives the one of a request that stood for the call until it was made."""
        for trail in self.open.get(call.id, ()):
            if trail.call is None:
                return trail
        return self._reported(call) if call.kind == "hosted_mcp" else None

    def _reported(self, call: CallEntry) -> CallLifecycle | None:
        """Finds the one of a hosted call that a provider reports under another id, and goes on with it under that."""
        for call_id, waiting in self.open.items():
            for trail in waiting:
                if trail.call is None and trail.made.kind == "hosted_mcp" and is_same_call(call, trail.made):
                    self.take(call_id, trail)
                    self.begin(call.id, trail)
                    return trail
        return None


def is_same_call(one: CallEntry | RequestEntry, other: CallEntry | RequestEntry) -> bool:
    """Says whether tool, server and arguments are the same."""
    return one.tool == other.tool and one.server == other.server and arguments_match(one.arguments, other.arguments)


def format_stored_call(call: CallEntry | RequestEntry) -> str:
    """Says a call, cut where it is long."""
    return format_short_call(call.tool, call.arguments)


def format_short_call(tool: str, arguments: Any) -> str:
    """Says tool and arguments, cut where they are long."""
    text = format_call(tool, arguments)
    return text if len(text) <= _MAX_CALL_LENGTH else f"{text[: _MAX_CALL_LENGTH - 3]}..."

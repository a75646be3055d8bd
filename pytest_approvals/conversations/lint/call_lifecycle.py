"""Lifecycles of calls: each with its request, its decisions and its result.

A lifecycle ends with the result; an id that is used again after that begins a new one.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from pytest_approvals.conversations.histories.conversation import CallEntry, DecisionEntry, RequestEntry, ResultEntry
from pytest_approvals.journal.arguments import arguments_match
from pytest_approvals.journal.formatting import format_call
from pytest_approvals.journal.settlement import PositionalSettlement

_MAX_CALL_LENGTH = 100
"""The maximum number of characters of a call in a message."""


class CallLifecycle(Struct, eq=False):
    """One call.

    Attributes:
        origin: What began it: the call, or a request that is stored in its place.
        round: The number of the model's response that it belongs to, from the start of the conversation.
        decision: The latest one.
    """

    origin: CallEntry | RequestEntry
    round: int
    request: RequestEntry | None = None
    call: CallEntry | None = None
    decision: DecisionEntry | None = None
    result: ResultEntry | None = None

    @property
    def decided_call(self) -> tuple[str, Any]:
        """The tool and the arguments that were decided about; those of the call if nobody decided."""
        decision = self.decision
        if decision is None or decision.arguments is None:
            return self.origin.tool, self.origin.arguments
        return decision.tool or self.origin.tool, decision.arguments


class OpenLifecycles(PositionalSettlement[CallLifecycle]):
    """The lifecycles without a result, by call id, and the last ended one of each id."""

    __slots__ = ()

    def end(self, result: ResultEntry) -> CallLifecycle | None:
        """End the oldest lifecycle of a result's call id and return it; None if there is none."""
        lifecycle = self.settle(result.call_id)
        if lifecycle is not None:
            lifecycle.result = result
        return lifecycle

    def remove(self, call_id: str | None, lifecycle: CallLifecycle) -> None:
        """Remove a lifecycle."""
        waiting = self.open[call_id]
        waiting.remove(lifecycle)
        if not waiting:
            del self.open[call_id]

    def find_unrequested(self, call_id: str) -> CallLifecycle | None:
        """Return a lifecycle of a call id that has no request yet."""
        return next((lifecycle for lifecycle in self.open.get(call_id, ()) if lifecycle.request is None), None)

    def find_placeholder(self, call: CallEntry) -> CallLifecycle | None:
        """Return the lifecycle of a request that was stored in place of *call*."""
        for lifecycle in self.open.get(call.id, ()):
            if lifecycle.call is None:
                return lifecycle
        return self._find_reported(call) if call.kind == "hosted_mcp" else None

    def _find_reported(self, call: CallEntry) -> CallLifecycle | None:
        """Return the lifecycle of a hosted call that the provider reports under another id, moved to that id."""
        for call_id, waiting in self.open.items():
            for lifecycle in waiting:
                if (
                    lifecycle.call is None
                    and lifecycle.origin.kind == "hosted_mcp"
                    and is_same_call(call, lifecycle.origin)
                ):
                    self.remove(call_id, lifecycle)
                    self.begin(call.id, lifecycle)
                    return lifecycle
        return None


def is_same_call(call: CallEntry | RequestEntry, other: CallEntry | RequestEntry) -> bool:
    """Return whether tool, server and arguments are the same."""
    if call.tool != other.tool or call.server != other.server:
        return False
    return arguments_match(call.arguments, other.arguments)


def format_stored_call(call: CallEntry | RequestEntry) -> str:
    """Return a call as text, shortened if it is long."""
    return format_short_call(call.tool, call.arguments)


def format_short_call(tool: str, arguments: Any) -> str:
    """Return tool and arguments as text, shortened if they are long."""
    text = format_call(tool, arguments)
    return text if len(text) <= _MAX_CALL_LENGTH else f"{text[: _MAX_CALL_LENGTH - 3]}..."

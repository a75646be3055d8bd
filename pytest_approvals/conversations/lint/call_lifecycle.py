"""Lifecycles of calls: each with its request, its decisions and its result.

A lifecycle ends with the result; an id that is used again after that begins a new one. Whatever a conversation repeats,
each lookup takes the same time: what can no longer be found is dropped from the front of a queue when it is met there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

from msgspec import Struct

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    ExecutionEntry,
    RequestEntry,
    ResultEntry,
)
from pytest_approvals.conversations.made_up_values import hide_secrets
from pytest_approvals.journal.arguments import arguments_key, parse_arguments
from pytest_approvals.journal.conversation import PositionalSettlement
from pytest_approvals.journal.formatting import format_call

_MAX_CALL_LENGTH = 100
"""The maximum number of characters of a call in a message."""


class CallLifecycle(Struct, eq=False, gc=False):
    """One call.

    Attributes:
        origin: What began it: the call, or a request that is stored in its place.
        round: The number of the model's response that it belongs to, from the start of the conversation.
        decision: The latest one.
        decision_round: As *round*, when it was decided.
        execution: The latest one that returned, else the latest; only traces show them.
    """

    origin: CallEntry | RequestEntry
    round: int
    request: RequestEntry | None = None
    call: CallEntry | None = None
    decision: DecisionEntry | None = None
    decision_round: int = 0
    result: ResultEntry | None = None
    execution: ExecutionEntry | None = None

    @property
    def decided_call(self) -> CallEntry | RequestEntry | DecisionEntry:
        """The entry with the arguments that were decided about; the origin if nobody decided."""
        return self.origin if self.decision is None or self.decision.arguments is None else self.decision

    @property
    def decided_tool(self) -> str:
        """The tool that was decided about; that of the call if nobody decided."""
        return self.decided_call.tool or self.origin.tool


def _is_unrequested(lifecycle: CallLifecycle) -> bool:
    return lifecycle.request is None and lifecycle.result is None


def _is_placeholder(lifecycle: CallLifecycle) -> bool:
    """Return whether it began with a request that is stored in place of the call, which did not follow yet."""
    return lifecycle.call is None and lifecycle.result is None


class OpenLifecycles(PositionalSettlement[CallLifecycle]):
    """The lifecycles without a result, by call id, and the last ended one of each id."""

    __slots__ = ("_hosted", "_placeholders", "_unrequested")

    def __init__(self) -> None:
        super().__init__()
        # Only of ids that are open more than once.
        self._unrequested: dict[str | None, deque[CallLifecycle]] = {}
        self._placeholders: dict[str | None, deque[CallLifecycle]] = {}
        # By tool, server and arguments.
        self._hosted: dict[Hashable, deque[tuple[str | None, CallLifecycle]]] = {}

    def begin(self, call_id: str | None, call: CallLifecycle) -> None:
        """Add a lifecycle."""
        super().begin(call_id, call)
        for queues in (self._unrequested, self._placeholders):
            if call_id in queues:
                queues[call_id].append(call)
        if call.origin.kind == "hosted_mcp" and call.call is None:
            self._hosted.setdefault(_content_key(call.origin), deque()).append((call_id, call))

    def begin_function(self, entry: CallEntry, round_number: int) -> bool:
        """Begin the lifecycle of a function call, as nearly all calls are; return False if its id needs more care."""
        if entry.kind != "function" or entry.id in self.open or self._unrequested or self._placeholders:
            return False
        self.open[entry.id] = (CallLifecycle(entry, round_number, None, entry),)
        return True

    def end(self, result: ResultEntry) -> CallLifecycle | None:
        """End the oldest lifecycle of a result's call id and return it; None if there is none."""
        lifecycle = self.settle(result.call_id)
        if lifecycle is not None:
            lifecycle.result = result
        return lifecycle

    def find_executed(self, call_id: str | None) -> CallLifecycle | None:
        """Return the lifecycle of an execution: the oldest open one of its call id, else the last ended."""
        waiting = self.open.get(call_id)
        return waiting[0] if waiting else self.last_settled.get(call_id)

    def find_unrequested(self, call_id: str) -> CallLifecycle | None:
        """Return the first lifecycle of a call id that has no request yet."""
        return self._find_first(call_id, self._unrequested, _is_unrequested)

    def find_placeholder(self, call: CallEntry) -> CallLifecycle | None:
        """Return the first lifecycle of a request that was stored in place of *call*."""
        lifecycle = self._find_first(call.id, self._placeholders, _is_placeholder)
        return lifecycle or (self._find_reported(call) if call.kind == "hosted_mcp" else None)

    def _find_first(
        self,
        call_id: str | None,
        queues: dict[str | None, deque[CallLifecycle]],
        is_wanted: Callable[[CallLifecycle], bool],
    ) -> CallLifecycle | None:
        waiting = self.open.get(call_id, ())
        if len(waiting) < 2:
            return next(filter(is_wanted, waiting), None)
        # None of them becomes wanted again.
        queue = queues.setdefault(call_id, deque(waiting) if call_id not in queues else deque())
        while queue and not is_wanted(queue[0]):
            queue.popleft()
        return queue[0] if queue else None

    def _find_reported(self, call: CallEntry) -> CallLifecycle | None:
        """Return the lifecycle of a hosted call that the provider reports under another id, moved to that id."""
        queue = self._hosted.get(_content_key(call))
        while queue:
            call_id, lifecycle = queue.popleft()
            if _is_placeholder(lifecycle):
                self._remove(call_id, lifecycle)
                self.begin(call.id, lifecycle)
                return lifecycle
        return None

    def _remove(self, call_id: str | None, lifecycle: CallLifecycle) -> None:
        waiting = self.open[call_id]
        if isinstance(waiting, deque) and len(waiting) > 1:
            waiting.remove(lifecycle)
        else:
            del self.open[call_id]


def _content_key(call: CallEntry | RequestEntry) -> Hashable:
    return call.tool, call.server, arguments_key(call.arguments)


ShownCall = CallEntry | RequestEntry | DecisionEntry | ExecutionEntry
"""An entry with arguments."""


class CallReader:
    """Arguments and texts of the calls in entries, parsed and formatted once for each entry.

    One request may have thousands of decisions, each of which is compared with it.

    Args:
        show: Returns what is shown of arguments.
    """

    __slots__ = ("_parsed", "_show", "_texts")

    def __init__(self, show: Callable[[Any], Any] = hide_secrets) -> None:
        self._show = show
        # By identity: entries stay as long as their conversation.
        self._parsed: dict[int, Any] = {}
        self._texts: dict[int, str] = {}

    def arguments_match(self, first: ShownCall, second: ShownCall) -> bool:
        """Return whether the arguments of two entries are the same."""
        return bool(first.arguments == second.arguments or self._parse(first) == self._parse(second))

    def is_same_call(self, call: CallEntry | RequestEntry, other: CallEntry | RequestEntry) -> bool:
        """Return whether tool, server and arguments are the same."""
        return call.tool == other.tool and call.server == other.server and self.arguments_match(call, other)

    def format(self, entry: ShownCall, tool: str) -> str:
        """Return a call of *tool* with the arguments of an entry, shortened if it is long."""
        text = self._texts.get(id(entry))
        if text is None:
            text = format_call(tool, self._show(parse_arguments(entry.arguments)))
            text = text if len(text) <= _MAX_CALL_LENGTH else f"{text[: _MAX_CALL_LENGTH - 3]}..."
            self._texts[id(entry)] = text
        return text

    def _parse(self, entry: ShownCall) -> Any:
        if type(entry.arguments) is not str:
            return {} if entry.arguments is None else entry.arguments
        key = id(entry)
        if key not in self._parsed:
            self._parsed[key] = parse_arguments(entry.arguments)
        return self._parsed[key]

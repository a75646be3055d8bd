"""Progress of a run: the calls that it works on, and whether all wait for the user.

A run that waits in an approval function does not end, so the framework does not report that it is the user's turn. It
is when every unfinished call of the model waits for an answer, or works on a sub-agent for which that is true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_CURRENT_CALL: ContextVar[CallProgress] = ContextVar("pytest_approvals_autogen_call")


class CallProgress:
    """One call of the model, or the run itself, whose calls are its children."""

    def __init__(self, id: str | None = None, tool: str = "") -> None:
        self.id = id
        self.tool = tool
        self.entered = False
        self.waiting = False
        self.children: list[CallProgress] = []

    def is_blocked(self) -> bool:
        """Return whether nothing can happen here before the user answers."""
        return self.waiting or (bool(self.children) and all(child.is_blocked() for child in self.children))


class RunProgress:
    """The calls that one run works on."""

    def __init__(self) -> None:
        self._run = CallProgress()
        self._changed = asyncio.Event()

    def is_blocked(self) -> bool:
        """Return whether the run waits for the user, and for nothing else."""
        return self._run.is_blocked()

    async def wait_until_blocked(self, task: asyncio.Task[Any], event_hops: int) -> bool:
        """Wait until the run waits for the user or has ended; return whether it waits.

        Args:
            task: The task of the run.
            event_hops: Iterations of the event loop for which the run has to wait without a change; within them its
                pending events arrive.
        """
        task.add_done_callback(lambda _: self._changed.set())
        while not task.done():
            self._changed.clear()
            if self.is_blocked() and await self._is_still_blocked(event_hops):
                return True
            if not task.done():
                await self._changed.wait()
        return False

    async def _is_still_blocked(self, event_hops: int) -> bool:
        # A run may leave one question and reach the next one meanwhile, whose events need as many iterations again.
        for _ in range(event_hops):
            await asyncio.sleep(0)
            if self._changed.is_set():
                return False
        return self.is_blocked()

    def expect(self, calls: Iterable[tuple[str | None, str]]) -> None:
        """Add the calls of a reply that will be entered, each an id and a tool."""
        parent = self._current_call()
        parent.children = [CallProgress(*call) for call in calls]

    @contextmanager
    def enter(self, id: str | None, tool: str) -> Iterator[None]:
        """Mark a call as worked on by the running task."""
        parent = self._current_call()
        call = next((child for child in parent.children if not child.entered and _matches(child, id, tool)), None)
        if call is None:
            call = CallProgress(id, tool)
            parent.children.append(call)
        call.entered = True
        # The framework runs each call in a task of its own, so the variable need not be reset.
        _CURRENT_CALL.set(call)
        try:
            yield
        finally:
            # A run that was stopped has dropped its calls already.
            parent.children = [child for child in parent.children if child is not call]
            self._changed.set()

    @contextmanager
    def wait_for_user(self) -> Iterator[None]:
        """Mark the running task's call as waiting for the user."""
        call = self._current_call()
        call.waiting = True
        self._changed.set()
        try:
            yield
        finally:
            call.waiting = False

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Mark the run as worked on by the running task and those that it starts."""
        _CURRENT_CALL.set(self._run)
        try:
            yield
        finally:
            self._run.children = []
            self._changed.set()

    def _current_call(self) -> CallProgress:
        return _CURRENT_CALL.get(self._run)


def _matches(call: CallProgress, id: str | None, tool: str) -> bool:
    # In older releases a tool does not receive the id.
    return call.tool == tool and (id is None or call.id == id)

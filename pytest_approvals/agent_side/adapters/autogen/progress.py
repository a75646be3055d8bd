"""
What a run is at: the calls that it works on, and whether all of them wait for a person.

A run that waits in an approval function does not end, so nothing of the framework says that it is a person's turn. It
is when every call of the model that is not done waits for an answer, or works on a sub-agent of which that is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CURRENT_CALL: ContextVar[CallProgress] = ContextVar("pytest_approvals_autogen_call")


class CallProgress:
    """One call of the model, or the run itself, whose calls are its children."""

    def __init__(self, id: str | None = None, tool: str = "") -> None:
        self.id = id
        self.tool = tool
        self.entered = False
        self.waiting = False
        self.children: list[CallProgress] = []

    def blocked(self) -> bool:
        """Says whether nothing can happen here before a person answers."""
        return self.waiting or (bool(self.children) and all(child.blocked() for child in self.children))


class RunProgress:
    """
    The calls that one run works on.

    Arguments:
        moved: Is called when something changed.
    """

    def __init__(self, moved: Callable[[], None]) -> None:
        self._run = CallProgress()
        self._moved = moved

    def blocked(self) -> bool:
        """Says whether the run waits for a person, and for nothing else."""
        return self._run.blocked()

    def expect(self, calls: Iterable[tuple[str | None, str]]) -> None:
        """Takes in the calls of a reply, an id and a tool each, that are going to be entered."""
        parent = self._current()
        parent.children = [CallProgress(*call) for call in calls]

    @contextmanager
    def entered(self, id: str | None, tool: str) -> Iterator[None]:
        """Within, a call is worked on, by the task that is running."""
        parent = self._current()
        call = next((one for one in parent.children if not one.entered and _matches(one, id, tool)), None)
        if call is None:
            call = CallProgress(id, tool)
            parent.children.append(call)
        call.entered = True
        # The framework works on each call in a task of its own, so that nothing is to be set back.
        _CURRENT_CALL.set(call)
        try:
            yield
        finally:
            # A run that was given up has let go of its calls.
            parent.children = [one for one in parent.children if one is not call]
            self._moved()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within, the call that is worked on waits for a person."""
        call = self._current()
        call.waiting = True
        self._moved()
        try:
            yield
        finally:
            call.waiting = False

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Within, the run is worked on, by the task that is running and those that it starts."""
        _CURRENT_CALL.set(self._run)
        try:
            yield
        finally:
            self._run.children = []
            self._moved()

    def _current(self) -> CallProgress:
        return _CURRENT_CALL.get(self._run)


def _matches(call: CallProgress, id: str | None, tool: str) -> bool:
    # Older releases tell a tool nothing of the id.
    return call.tool == tool and (id is None or call.id == id)

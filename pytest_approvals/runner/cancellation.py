"""Turns that are cut off: the caller disconnects, or the process of the agent is killed.

A caller disconnects when a web client goes away, or a time limit around the run is over: the turn is cancelled.
Whatever reaches the place of the disconnect is held there until the turn has ended, so that the cancellation finds the
agent where the story says, however fast the machine is.

If the process is killed, the harness knows what it had asked for and what had an effect before, because it stands on
all sides of the agent. From the kill on, nothing that the dead process had still sent is answered or recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from pytest_approvals.agent_side.process.load_clock import LoadTimer, wait_until_done
from pytest_approvals.errors import HostError
from pytest_approvals.scenario.vocabulary import AT_OUTCOME

T = TypeVar("T")

HOLD_TIMEOUT = 1.0
"""Seconds after which what is held continues, in a turn that does not end because it waits for that."""


# The name of this class is written into journals and transcripts as the error of the turn.
class CallerGone(Exception):
    """A turn was cancelled; nobody sees how it ended."""

    def __init__(self) -> None:
        super().__init__("the caller hung up")


class Disconnect:
    """A caller's disconnect in one turn.

    Args:
        place: Where it happens: `started LABEL`, or `model`.
        on_disconnect: Records that it happens.

    Attributes:
        has_happened: Whether the turn reached the place.
    """

    def __init__(self, place: str, on_disconnect: Callable[[], object]) -> None:
        self.has_happened = False
        self._place = place
        self._on_disconnect = on_disconnect
        self._over = asyncio.Event()
        self._turn: asyncio.Task[Any] | None = None
        self._limit: LoadTimer | None = None

    async def run(self, turn: Coroutine[Any, Any, T]) -> T:
        """Run a turn and return its result, unless the caller disconnected.

        Raises:
            CallerGone: The turn was cancelled, or ended as if nobody had cancelled it.
        """
        self._turn = task = asyncio.ensure_future(turn)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            # The run itself is cancelled: the turn must not outlive it.
            task.cancel()
            await wait_until_done(task, HOLD_TIMEOUT)
            raise
        finally:
            self._over.set()
            if self._limit is not None:
                self._limit.cancel()
        if self.has_happened and (task.cancelled() or task.exception() is None):
            raise CallerGone
        return task.result()

    def trigger(self, place: str) -> bool:
        """Disconnect if this is the place, the first time it is reached; return whether it is."""
        if self.has_happened or place != self._place or self._turn is None:
            return False
        self.has_happened = True
        self._on_disconnect()
        # Only requested here: the turn is cancelled at its next await, which is the hold that follows.
        self._turn.cancel()
        self._limit = LoadTimer(asyncio.get_running_loop(), HOLD_TIMEOUT, self._over.set)
        return True

    async def hold(self) -> None:
        """Wait until the turn has ended, or `HOLD_TIMEOUT` has passed."""
        await self._over.wait()


# The name of this class is written into journals and transcripts as the error of the turn.
class ProcessKilled(Exception):
    """The agent's process was killed; nobody sees how the turn ends."""

    def __init__(self) -> None:
        super().__init__("the process of the agent was killed")


class Crash:
    """A crash in one turn.

    Args:
        place: Where it happens: `before LABEL`, `started LABEL`, `ended LABEL`, `model`, `shown`, or `outcome`.
        kill: Kills the process and records that.

    Attributes:
        has_happened: Whether the turn reached the place.
    """

    def __init__(self, place: str, kill: Callable[[], object]) -> None:
        self.has_happened = False
        self._place = place
        self._kill = kill

    async def run(self, turn: Awaitable[T]) -> T:
        """Run a turn and return its result, unless the process was killed.

        Raises:
            ProcessKilled: It was.
        """
        try:
            outcome = await turn
        except HostError:
            if not self.has_happened:
                raise
            raise ProcessKilled from None
        if self.reach(AT_OUTCOME):
            raise ProcessKilled
        return outcome

    def reach(self, place: str) -> bool:
        """Kill the process if this is the place; return whether the process is dead now."""
        if not self.has_happened and place == self._place:
            self.has_happened = True
            self._kill()
        return self.has_happened

    def stop_if_dead(self, place: str) -> None:
        """Go no further at a place where the process dies, or if it is dead.

        Raises:
            CancelledError: The process is dead, so nobody waits for what would come.
        """
        if self.reach(place):
            raise asyncio.CancelledError

"""Crashes: the process of an agent is killed while a turn runs.

The harness stands on all sides of the agent, so it knows what the process had asked for and what had an effect before
it died. From the kill on, nothing that the dead process had still sent is answered or recorded.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pytest_approvals.errors import HostError

T = TypeVar("T")


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
        if self.reach("outcome"):
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
            raise CancelledError

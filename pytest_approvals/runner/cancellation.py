"""
A caller who hangs up: a turn that is cancelled while it runs, as when a web client goes away or a time limit around the
run is over.

Whatever reaches the place is held there until the turn has ended, so that the cancellation finds the agent where the
story says, however fast the machine is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

HOLD_TIMEOUT = 1.0
"""After how many seconds what is held goes on, in a turn that does not end because it waits for that."""


class CallerGone(Exception):
    """A turn was cancelled; nobody sees how it ended."""

    def __init__(self) -> None:
        super().__init__("the caller hung up")


class Disconnect:
    """
    One caller who hangs up in one turn.

    Arguments:
        place: Where: `started LABEL`, or `model`.
        happens: Records that it happens.

    Attributes:
        happened: It did.
    """

    def __init__(self, place: str, happens: Callable[[], object]) -> None:
        self.happened = False
        self._place = place
        self._happens = happens
        self._over = asyncio.Event()
        self._turn: asyncio.Task[Any] | None = None

    async def taken(self, turn: Coroutine[Any, Any, T]) -> T:
        """
        Takes a turn and gives what it gives, unless the caller hung up in it.

        Errors:
            CallerGone: The turn was cancelled, or ended as if nobody had cancelled it.
            Anything else: What the turn raises.
        """
        self._turn = task = asyncio.ensure_future(turn)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task}, timeout=HOLD_TIMEOUT)
            raise
        finally:
            self._over.set()
        if self.happened and (task.cancelled() or task.exception() is None):
            raise CallerGone
        return task.result()

    def is_at(self, place: str) -> bool:
        """Says whether this is the place, for the first time; then the turn is cancelled at the next chance."""
        if self.happened or place != self._place or self._turn is None:
            return False
        self.happened = True
        self._happens()
        self._turn.cancel()
        asyncio.get_running_loop().call_later(HOLD_TIMEOUT, self._over.set)
        return True

    async def over(self) -> None:
        """Waits until the turn has ended, or does not end without what waits here."""
        await self._over.wait()

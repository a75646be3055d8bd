"""Turns that are cut off, or held up: the caller disconnects, or the process of the agent is killed or stopped.

A caller disconnects when a web client goes away, or a time limit around the run is over: the turn is cancelled.
Whatever reaches the place of the disconnect is held there until the turn has ended, so that the cancellation finds the
agent where the story says, however fast the machine is.

If the process is killed, the harness knows what it had asked for and what had an effect before, because it stands on
all sides of the agent. From the kill on, nothing that the dead process had still sent is answered or recorded.

A process that is stopped, as by a full machine or a sleeping laptop, knows nothing of what others do meanwhile. The
harness does not answer it until it goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from pytest_approvals.agent_side.process.load_clock import LoadTimer, wait_until_done
from pytest_approvals.errors import HostError
from pytest_approvals.runner.probe_tools import Signals
from pytest_approvals.scenario.model import is_cut_write
from pytest_approvals.scenario.vocabulary import AT_OUTCOME, AT_WRITE

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


class StoppableProcess(Protocol):
    """The process of an agent that is stopped in a turn."""

    def stop(self) -> None:
        """Stop it at once."""

    def wake(self) -> None:
        """Let it go on."""


class Stop:
    """A stop of the process in one turn.

    Args:
        place: Where it happens: `before LABEL`, `started LABEL`, `ended LABEL`, or `model`.
        process: The process.
        signals: The signals of the run, which learn that the turn waits.
        on_stop: Records that it is stopped.
        on_wake: Records that it goes on.

    Attributes:
        has_happened: Whether the turn reached the place.
    """

    def __init__(
        self,
        place: str,
        process: StoppableProcess,
        signals: Signals,
        *,
        on_stop: Callable[[], object],
        on_wake: Callable[[], object],
    ) -> None:
        self.has_happened = False
        self._place = place
        self._process = process
        self._signals = signals
        self._on_stop = on_stop
        self._on_wake = on_wake
        self._woken = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether the process goes on by now."""
        return self._woken.is_set()

    async def wait_until_woken(self) -> None:
        """Return when the process goes on, if it is stopped: what it had still sent is answered only then."""
        if self.has_happened:
            await self._woken.wait()

    async def hold(self, place: str) -> None:
        """Stop the process if this is the place, and return when it goes on."""
        if self.has_happened or place != self._place:
            return
        self.has_happened = True
        self._on_stop()
        self._process.stop()
        self._signals.note_waiter()
        try:
            await self._woken.wait()
            self._on_wake()
        finally:
            # Also if the run ends here, so that the process can end.
            self._process.wake()

    def wake(self) -> None:
        """Let the process go on."""
        self._woken.set()


class MortalProcess(Protocol):
    """The process of an agent that dies in a turn, or cannot store anything."""

    on_loss: Callable[[], object] | None

    @property
    def has_died_in_write(self) -> bool:
        """Whether it has ended in a write that was cut off."""

    def kill(self) -> None:
        """Kill it at once."""

    def cut_next_write(self) -> None:
        """Let it end in the middle of its next write."""

    def allow_writes(self) -> None:
        """Let it write again."""


class FullDisk:
    """A disk that is full in one turn, from a place on.

    Args:
        place: Where it is full: `write`, from the beginning; `write LABEL`, when that call has returned.
        process: The process.
        on_full: Records that it is full.
        once: It has room again as soon as the turn comes to a call or a model request.

    Attributes:
        has_happened: Whether the turn reached the place.
    """

    def __init__(
        self, place: str, process: MortalProcess, on_full: Callable[[], object], *, once: bool = False
    ) -> None:
        self.has_happened = False
        self._place = place
        self._process = process
        self._on_full = on_full
        self._once = once

    async def run(self, turn: Awaitable[T]) -> T:
        """Run a turn, and let the process store again when it has ended."""
        self.reach(AT_WRITE)
        try:
            return await turn
        finally:
            if self.has_happened:
                self._process.allow_writes()

    def reach(self, place: str) -> None:
        """Let all writes fail from now on if this is the place."""
        if not self.has_happened and place == self._place:
            self.has_happened = True
            self._on_full()
            self._process.cut_next_write()

    def come_to_a_point(self) -> None:
        """Note that the turn has come to a call or a model request, by when a write that fails once has failed."""
        if self._once and self.has_happened:
            self._process.allow_writes()


class Crash:
    """A crash in one turn.

    At a place in the middle of a write, the kernel ends the process: the harness only says from where on.

    Args:
        place: Where it happens: `before LABEL`, `started LABEL`, `ended LABEL`, `write LABEL`, `model`, `shown`,
            `write`, or `outcome`.
        process: The process.
        on_death: Records that it dies.

    Attributes:
        has_happened: Whether the process is dead.
    """

    def __init__(self, place: str, process: MortalProcess, on_death: Callable[[], object]) -> None:
        self.has_happened = False
        self._place = place
        self._process = process
        self._on_death = on_death

    async def run(self, turn: Awaitable[T]) -> T:
        """Run a turn and return its result, unless the process dies.

        Raises:
            ProcessKilled: It has died.
            HostError: It has ended otherwise.
        """
        self.reach(AT_WRITE)
        try:
            outcome = await turn
        except HostError:
            if not self.has_happened or (is_cut_write(self._place) and not self._process.has_died_in_write):
                raise
            raise ProcessKilled from None
        finally:
            self._process.on_loss = None
            if is_cut_write(self._place) and not self.has_happened:
                # The turn has written nothing, or its failure.
                self._process.allow_writes()
        if self.reach(AT_OUTCOME):
            raise ProcessKilled
        return outcome

    def reach(self, place: str) -> bool:
        """Let the process die if this is the place; return whether it is dead now."""
        if not self.has_happened and place == self._place:
            if is_cut_write(place):
                # At once, so that what is cancelled because of the death is recorded after it.
                self._process.on_loss = self._die
                self._process.cut_next_write()
            else:
                self._die()
        return self.has_happened

    def _die(self) -> None:
        self.has_happened = True
        self._on_death()
        # Also a process that has ended: what it has started is still there.
        self._process.kill()

    def stop_if_dead(self, place: str) -> None:
        """Go no further at a place where the process dies, or if it is dead.

        Raises:
            CancelledError: The process is dead, so nobody waits for what would come.
        """
        if self.reach(place):
            raise asyncio.CancelledError

"""Signals: how a scenario schedules what happens at the same time, without sleeping."""

from __future__ import annotations

import asyncio


class Signals:
    """
    The signals of one run.

    A signal, once given, stays given. `started LABEL` and `ended LABEL` are given by the harness as calls run; all
    other names are given by the caller's script.
    """

    def __init__(self) -> None:
        self._given: dict[str, asyncio.Event] = {}
        self._held = asyncio.Event()

    def give(self, name: str) -> None:
        """Gives a signal; whoever waits for it goes on."""
        self._event(name).set()

    async def wait(self, name: str) -> None:
        """Waits until the signal is given; at once if it was."""
        event = self._event(name)
        if not event.is_set():
            self._held.set()
            await event.wait()

    async def something_is_held(self) -> None:
        """Waits until, from now on, somebody begins to wait for a signal that was not given."""
        self._held.clear()
        await self._held.wait()

    def _event(self, name: str) -> asyncio.Event:
        return self._given.setdefault(name, asyncio.Event())

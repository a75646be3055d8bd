"""Signals: how a scenario schedules what happens at the same time, without sleeping."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class Signals:
    """
    The signals of one run.

    A signal, once given, stays given. `started LABEL` and `ended LABEL` are given by the harness as calls run; all
    other names are given by the caller's script.
    """

    def __init__(self) -> None:
        self._given: dict[str, asyncio.Event] = {}

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

    @cached_property
    def _held(self) -> asyncio.Event:
        return _new_event()

    def _event(self, name: str) -> asyncio.Event:
        if name not in self._given:
            self._given[name] = _new_event()
        return self._given[name]


def _new_event() -> asyncio.Event:
    """Imports asyncio where a signal is used at all: the loopback server is to answer before that would be done."""
    from asyncio import Event

    return Event()

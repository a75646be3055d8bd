"""The event loop in which answers wait that cannot come at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from threading import Thread
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.protocols.endpoint import HttpResponse


class BackgroundLoop:
    """An event loop in a thread of its own; every thread may ask it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="loopback-worlds", daemon=True)
        self._thread.start()

    def answer(self, asked: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
        """
        Waits for an answer.

        Errors:
            ModelDown: It was given up.
        """
        try:
            return asyncio.run_coroutine_threadsafe(asked, self._loop).result()
        except CancelledError:
            raise ModelDown(0) from None

    def give_up(self) -> None:
        """Cancels the answers that wait for something, so that nobody waits for them."""
        asyncio.run_coroutine_threadsafe(_cancel_all_tasks(), self._loop).result()

    def close(self) -> None:
        """Ends the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_all_tasks() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()

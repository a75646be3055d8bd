"""Background event loop of the model server, for responses that have to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from threading import Thread
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.protocols.endpoint import HttpResponse


class BackgroundLoop:
    """Event loop in its own thread, which the threads of all connections share."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="loopback-worlds", daemon=True)
        self._thread.start()

    def run(self, response: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
        """Return a response, waiting for it.

        Raises:
            ModelDown: It was cancelled.
        """
        try:
            return asyncio.run_coroutine_threadsafe(response, self._loop).result()
        except CancelledError:
            raise ModelDown(0) from None

    def cancel_all(self) -> None:
        """Cancel the responses that wait for something, so that no thread waits for them."""
        asyncio.run_coroutine_threadsafe(_cancel_all_tasks(), self._loop).result()

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_all_tasks() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()

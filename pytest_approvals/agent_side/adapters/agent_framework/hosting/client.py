"""A client of a Responses server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .asgi import Application, Exchange, exchange
from .items import shown_in

Shown = Callable[..., None]

_ENDS = ("response.completed", "response.incomplete", "response.failed")


class RequestRefused(Exception):
    """The server refused a request with an error status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"status {status}: {text}")


class ResponseFailed(Exception):
    """A response ended with another status than `completed`."""

    def __init__(self, response: dict[str, Any]) -> None:
        error = response.get("error") or response.get("incomplete_details") or {}
        super().__init__(f"{response.get('status')}: {error.get('message') or error.get('reason') or 'no reason'}")


class StreamBroke(Exception):
    """A stream ended without the end of its response."""


class Client:
    """
    A client of the server *application*.

    Every method gives a response as an object, its output among it.

    Errors:
        RequestRefused: The server refused.
        ResponseFailed: The response failed.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def create(self, body: dict[str, Any]) -> dict[str, Any]:
        """Asks for a response and waits for it."""
        return _whole(await self._asked("POST", "/responses", body))

    async def stream(self, body: dict[str, Any], shown: Shown) -> dict[str, Any]:
        """
        Asks for a response and follows its stream.

        Arguments:
            shown: Is told what the stream shows.

        Errors:
            StreamBroke: The response never ended.
        """
        async with exchange(self._application, "POST", "/responses", {**body, "stream": True}) as one:
            response = await _followed(one, shown)
        return _whole(_ended(one.status, response))

    async def get(self, response: str) -> dict[str, Any]:
        """Asks for a response that was made before."""
        return await self._asked("GET", f"/responses/{response}", None)

    async def _asked(self, method: str, path: str, body: Any) -> dict[str, Any]:
        async with exchange(self._application, method, path, body) as one:
            text = await one.text()
        return _read(one.status, text)


def _read(status: int, text: str) -> dict[str, Any]:
    if status >= 400:
        raise RequestRefused(status, text)
    read: dict[str, Any] = json.loads(text)
    return read


async def _followed(one: Exchange, shown: Shown) -> dict[str, Any]:
    """
    Gives the response that a stream tells: its items as they were done, and how it ended.

    One that never ended has no status, and the errors that came instead.
    """
    output: list[Any] = []
    ended: dict[str, Any] = {}
    async for event in one.events():
        kind = event.get("type", "")
        if kind in _ENDS:
            ended = event["response"]
        elif kind == "error" or "error" in event:
            ended = {"error": event}
        else:
            for what, told in shown_in(event):
                shown(what, **told)
            if kind == "response.output_item.done":
                output.append(event["item"])
    shown("end")
    return {**ended, "output": output}


def _ended(status: int, response: dict[str, Any]) -> dict[str, Any]:
    if status >= 400:
        raise RequestRefused(status, json.dumps(response.get("error")))
    if "status" not in response:
        raise StreamBroke(json.dumps(response.get("error")))
    return response


def _whole(response: dict[str, Any]) -> dict[str, Any]:
    if response.get("status") != "completed":
        raise ResponseFailed(response)
    return response

"""
Requests to a server that runs in this process, without a network between.

What a server sends is handed on piece by piece, as it is sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

Application = Callable[..., Awaitable[None]]

_END = b""


class Exchange:
    """
    One request and what comes back.

    Attributes:
        status: The status of the answer, once its head was sent; 0 before.
    """

    def __init__(self, body: bytes) -> None:
        self.status = 0
        self._request = [{"type": "http.request", "body": body, "more_body": False}]
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._gone = asyncio.Event()

    async def receive(self) -> MutableMapping[str, Any]:
        """Gives the server the request, and tells it when the client is gone."""
        if self._request:
            return self._request.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Takes what the server sends."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body" and message.get("body"):
            self._pieces.put_nowait(message["body"])
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.end()

    def end(self) -> None:
        """Ends the answer."""
        self._pieces.put_nowait(_END)

    def leave(self) -> None:
        """Lets the client go."""
        self._gone.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Gives the body as it comes."""
        while piece := await self._pieces.get():
            yield piece

    async def text(self) -> str:
        """Gives the whole body."""
        return b"".join([piece async for piece in self.pieces()]).decode()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Gives the data of the server-sent events in the body."""
        rest = b""
        async for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n\n")
            for event in whole:
                data = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
                if data:
                    yield json.loads(b"\n".join(data))


@asynccontextmanager
async def exchange(application: Application, method: str, path: str, body: Any = None) -> AsyncIterator[Exchange]:
    """
    Asks *application* for something.

    Errors:
        Whatever the application lets out.
    """
    content = b"" if body is None else json.dumps(body).encode()
    one = Exchange(content)
    task = asyncio.ensure_future(application(_scope(method, path, content), one.receive, one.send))
    task.add_done_callback(lambda _: one.end())
    try:
        yield one
    except BaseException:
        task.cancel()
        raise
    finally:
        one.leave()
        await asyncio.wait([task])
    task.result()


def _scope(method: str, path: str, content: bytes) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
        ],
        "client": ("127.0.0.1", 50000),
        "server": ("localhost", 80),
    }

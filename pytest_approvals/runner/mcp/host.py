"""MCP host: serves the MCP servers of this process in one thread.

One port for HTTP, one for stdio bridges, and a key for each server. An agent may block the event loop of this process
while it waits for a server, so servers have an event loop of their own.

HTTP is uvicorn's, because the sessions of the SDK are an ASGI application with streams in both directions; what it
accepts is what `protocols/http/server.py` accepts.
"""

from __future__ import annotations

import asyncio
import atexit
import socket
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import count
from logging import NullHandler, getLogger
from threading import Thread
from typing import Any, TypeVar

from pytest_approvals.errors import UsageError
from pytest_approvals.protocols.endpoint import HttpResponse
from pytest_approvals.protocols.http.server import MAX_BODY_SIZE, MAX_HEAD_SIZE, error_of, path_of

# Whoever handles logs gets them. A client that is gone in the middle of an answer is worth no traceback on a terminal.
for _name in ("mcp", "uvicorn"):
    getLogger(_name).addHandler(NullHandler())

T = TypeVar("T")

MAX_LINE_LENGTH = 16 * 1024 * 1024
"""Size limit of one message over stdio, in bytes."""


@dataclass(slots=True)
class _HostedServer:
    """A server that is being served.

    Attributes:
        stop: Set to end it.
        manager: The SDK's manager of its sessions over HTTP.
        running: Keeps the manager running.
        bridged: Connections through stdio bridges.
    """

    server: Any
    stop: asyncio.Event
    manager: Any
    running: asyncio.Task[None] | None = None
    bridged: set[asyncio.Task[Any]] = field(default_factory=set)


class McpHost:
    """Thread that serves MCP servers, from the first use until the process ends.

    Attributes:
        http_port: The port of streamable HTTP; the path is `/KEY/mcp`.
        stdio_port: The port that stdio bridges connect to; the first line is the key, what follows is the protocol of
            stdio.
    """

    def __init__(self) -> None:
        self._servers: dict[str, _HostedServer] = {}
        self._numbers = count(1)
        http, stdio = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        self.http_port, self.stdio_port = http.getsockname()[1], stdio.getsockname()[1]
        started: Future[asyncio.AbstractEventLoop] = Future()
        Thread(target=self._run, args=(http, stdio, started), name="mcp-servers", daemon=True).start()
        self._loop = started.result()
        for listening in (http, stdio):
            atexit.register(listening.close)

    def add(self, server: Any) -> str:
        """Serve a server of the SDK from now on; return its key."""
        return self._run_in_thread(self._add(server))

    def remove(self, key: str) -> None:
        """End the connections to a server and stop serving it."""
        self._run_in_thread(self._remove(key))

    def _run_in_thread(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # --- in the thread of the servers ---------------------------------------------------------------------------------

    def _run(self, http: socket.socket, stdio: socket.socket, started: Future[asyncio.AbstractEventLoop]) -> None:
        try:
            asyncio.run(self._serve(http, stdio, started))
        except BaseException as error:
            if started.done():
                raise
            http.close()
            stdio.close()
            started.set_exception(error)

    async def _serve(
        self, http: socket.socket, stdio: socket.socket, started: Future[asyncio.AbstractEventLoop]
    ) -> None:
        import uvicorn

        # Without a log configuration, uvicorn leaves the logging of the test session as it is.
        config = uvicorn.Config(
            self._handle_http,
            interface="asgi3",
            lifespan="off",
            proxy_headers=False,
            access_log=False,
            log_config=None,
            # Of its parsers, the one that limits heads.
            http="h11",
            h11_max_incomplete_event_size=MAX_HEAD_SIZE,
        )
        async with await asyncio.start_server(self._handle_bridge, sock=stdio, limit=MAX_LINE_LENGTH):
            started.set_result(asyncio.get_running_loop())
            await uvicorn.Server(config).serve(sockets=[http])

    async def _add(self, server: Any) -> str:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        key = f"s{next(self._numbers)}"
        hosted = self._servers[key] = _HostedServer(server, asyncio.Event(), StreamableHTTPSessionManager(server))
        ready = asyncio.Event()
        hosted.running = asyncio.create_task(_keep_running(hosted, ready))
        await ready.wait()
        return key

    async def _remove(self, key: str) -> None:
        hosted = self._servers.pop(key)
        hosted.stop.set()
        for task in hosted.bridged:
            task.cancel()
        if hosted.running is not None:
            await asyncio.wait([hosted.running, *hosted.bridged])

    async def _handle_http(self, scope: Any, receive: Any, send: Any) -> None:
        scope["path"] = path_of(scope["path"])
        scope["raw_path"] = path_of(scope["raw_path"].decode("latin-1")).encode("latin-1")
        hosted = self._servers.get(scope["path"].strip("/").partition("/")[0])
        if hosted is None:
            await _send_response(error_of("no server is here; its run may be over", 404), send)
            return
        body = _LimitedBody(scope, receive)
        if body.is_too_large:
            await _send_response(_too_large(), send)
            return
        await hosted.manager.handle_request(scope, body.receive, body.wrap(send))

    async def _handle_bridge(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hosted = self._servers.get((await reader.readline()).decode(errors="replace").strip())
        if hosted is not None:
            # What asyncio itself started must not be cancelled: before Python 3.12 that is logged as an error.
            conversation = asyncio.create_task(_serve_connection(hosted.server, reader, writer))
            hosted.bridged.add(conversation)
            await asyncio.wait([conversation])
            hosted.bridged.discard(conversation)
        writer.close()


class _LimitedBody:
    """The body of a request, of which no more than `MAX_BODY_SIZE` is read.

    Attributes:
        is_too_large: It is larger, or announced to be.
    """

    def __init__(self, scope: Any, receive: Any) -> None:
        announced = [value for name, value in scope["headers"] if name == b"content-length"]
        self.is_too_large = any(int(value) > MAX_BODY_SIZE for value in announced)
        self._receive = receive
        self._size = 0

    async def receive(self) -> Any:
        """Receive a part; the client seems to be gone once the body is too large."""
        message = await self._receive()
        self._size += len(message.get("body", b""))
        self.is_too_large = self.is_too_large or self._size > MAX_BODY_SIZE
        return {"type": "http.disconnect"} if self.is_too_large else message

    def wrap(self, send: Any) -> Any:
        """Return what sends a response, in place of which a body that is too large is refused."""
        refused = False

        async def send_or_refuse(message: Any) -> None:
            nonlocal refused
            if not self.is_too_large:
                await send(message)
            elif not refused:
                refused = True
                await _send_response(_too_large(), send)

        return send_or_refuse


def _too_large() -> HttpResponse:
    return error_of(f"the body of the request is larger than {MAX_BODY_SIZE} bytes", 413)


async def _send_response(response: HttpResponse, send: Any) -> None:
    headers = [(b"content-type", response.content_type.encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"".join(response.pieces)})


async def _serve_connection(server: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    from mcp.server.stdio import stdio_server

    lines: Any = _LineStreams(reader, writer)
    async with stdio_server(lines, lines) as streams:
        await server.run(*streams, server.create_initialization_options())


async def _keep_running(hosted: _HostedServer, ready: asyncio.Event) -> None:
    async with hosted.manager.run():
        ready.set()
        await hosted.stop.wait()


class _LineStreams:
    """A connection in place of the SDK's standard input and output."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._reader:
            yield line.decode(errors="replace")

    async def write(self, text: str) -> None:
        self._writer.write(text.encode())

    async def flush(self) -> None:
        await self._writer.drain()


@cache
def get_mcp_host() -> McpHost:
    """Return the host of this process.

    Raises:
        UsageError: The MCP SDK is not installed.
    """
    try:
        for module in ("mcp.server.lowlevel", "uvicorn"):
            import_module(module)
    except ImportError as error:
        raise UsageError(
            f"Missing MCP SDK, which MCP servers of tests need ({error}): pip install 'pytest-approvals[mcp]'"
        ) from None
    return McpHost()

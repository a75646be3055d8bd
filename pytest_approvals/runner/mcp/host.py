"""MCP host: serves the MCP servers of this process in one thread.

One port for HTTP, one for stdio bridges, and a key for each server. An agent may block the event loop of this process
while it waits for a server, so servers have an event loop of their own.
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
            self._handle_http, interface="asgi3", lifespan="off", proxy_headers=False, access_log=False, log_config=None
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
        from starlette.responses import PlainTextResponse

        hosted = self._servers.get(scope["path"].strip("/").partition("/")[0])
        if hosted is not None:
            await hosted.manager.handle_request(scope, receive, send)
        else:
            await PlainTextResponse("no server is here; its run may be over\n", 404)(scope, receive, send)

    async def _handle_bridge(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hosted = self._servers.get((await reader.readline()).decode(errors="replace").strip())
        if hosted is not None:
            # What asyncio itself started must not be cancelled: before Python 3.12 that is logged as an error.
            conversation = asyncio.create_task(_serve_connection(hosted.server, reader, writer))
            hosted.bridged.add(conversation)
            await asyncio.wait([conversation])
            hosted.bridged.discard(conversation)
        writer.close()


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

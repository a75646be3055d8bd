"""
Where the MCP servers of this process are: one thread, a port for HTTP and one for relays, a key for each server.

An agent may stand still in this process while it waits for a server, so servers have an event loop of their own.
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
from threading import Thread
from typing import Any, TypeVar

from pytest_approvals.errors import UsageError

T = TypeVar("T")

MAX_LINE_LENGTH = 16 * 1024 * 1024
"""How many bytes one message over stdio may have."""


@dataclass(slots=True)
class _HostedServer:
    """A server that is in the house, what keeps it there, and those who are connected to it through relays."""

    server: Any
    over: asyncio.Event
    manager: Any
    alive: asyncio.Task[None] | None = None
    relayed: set[asyncio.Task[Any]] = field(default_factory=set)


class McpHost:
    """
    Serves MCP servers, from the first use until the process ends.

    Attributes:
        http: The port of streamable HTTP; the path is `/KEY/mcp`.
        lines: The port that relays connect to; the first line is the key, what follows is the protocol of stdio.
    """

    def __init__(self) -> None:
        self._lodgers: dict[str, _HostedServer] = {}
        self._numbers = count(1)
        http, lines = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        self.http, self.lines = http.getsockname()[1], lines.getsockname()[1]
        started: Future[asyncio.AbstractEventLoop] = Future()
        Thread(target=self._run, args=(http, lines, started), name="mcp-servers", daemon=True).start()
        self._loop = started.result()
        for one in (http, lines):
            atexit.register(one.close)

    def take_in(self, server: Any) -> str:
        """Serves a server of the SDK from now on, and gives its key."""
        return self._done(self._take_in(server))

    def let_go(self, key: str) -> None:
        """Ends the connections to a server, and serves it no more."""
        self._done(self._let_go(key))

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # --- in the thread of the servers ---------------------------------------------------------------------------------

    def _run(self, http: socket.socket, lines: socket.socket, started: Future[asyncio.AbstractEventLoop]) -> None:
        try:
            asyncio.run(self._serve(http, lines, started))
        except BaseException as error:
            if started.done():
                raise
            http.close()
            lines.close()
            started.set_exception(error)

    async def _serve(
        self, http: socket.socket, lines: socket.socket, started: Future[asyncio.AbstractEventLoop]
    ) -> None:
        import uvicorn

        config = uvicorn.Config(
            self._handle, interface="asgi3", lifespan="off", proxy_headers=False, access_log=False, log_config=None
        )
        async with await asyncio.start_server(self._relayed, sock=lines, limit=MAX_LINE_LENGTH):
            started.set_result(asyncio.get_running_loop())
            await uvicorn.Server(config).serve(sockets=[http])

    async def _take_in(self, server: Any) -> str:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        key = f"s{next(self._numbers)}"
        lodger = self._lodgers[key] = _HostedServer(server, asyncio.Event(), StreamableHTTPSessionManager(server))
        ready = asyncio.Event()
        lodger.alive = asyncio.create_task(_keep_running(lodger, ready))
        await ready.wait()
        return key

    async def _let_go(self, key: str) -> None:
        lodger = self._lodgers.pop(key)
        lodger.over.set()
        for task in lodger.relayed:
            task.cancel()
        if lodger.alive is not None:
            await asyncio.wait([lodger.alive, *lodger.relayed])

    async def _handle(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.responses import PlainTextResponse

        lodger = self._lodgers.get(scope["path"].strip("/").partition("/")[0])
        if lodger is not None:
            await lodger.manager.handle_request(scope, receive, send)
        else:
            await PlainTextResponse("no server is here; its run may be over\n", 404)(scope, receive, send)

    async def _relayed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lodger = self._lodgers.get((await reader.readline()).decode(errors="replace").strip())
        if lodger is not None:
            # What asyncio itself started must not be cancelled: before Python 3.12 that is logged as an error.
            conversation = asyncio.create_task(_serve_connection(lodger.server, reader, writer))
            lodger.relayed.add(conversation)
            await asyncio.wait([conversation])
            lodger.relayed.discard(conversation)
        writer.close()


async def _serve_connection(server: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    from mcp.server.stdio import stdio_server

    lines: Any = _LineStreams(reader, writer)
    async with stdio_server(lines, lines) as streams:
        await server.run(*streams, server.create_initialization_options())


async def _keep_running(lodger: _HostedServer, ready: asyncio.Event) -> None:
    async with lodger.manager.run():
        ready.set()
        await lodger.over.wait()


class _LineStreams:
    """A connection as the SDK takes standard input and output."""

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
    """
    Gives the house of this process.

    Errors:
        UsageError: The MCP SDK is not installed.
    """
    try:
        for module in ("mcp.server.lowlevel", "uvicorn"):
            import_module(module)
    except ImportError as error:
        raise UsageError(
            f"an MCP server of ours needs the MCP SDK ({error}); install it: pip install 'pytest-approvals[mcp]'"
        ) from None
    return McpHost()

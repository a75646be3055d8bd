"""
A transport object for HTTP clients in this process, for `httpx` and for `httpx2`, sync and async.

It is handed to a client (`http_client=httpx2.Client(transport=...)`), patches nothing, and nothing leaves the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from pytest_approvals.agent_side.failures import ModelDown

from .complaints import Complaint
from .endpoint import Answer, Endpoint

T = TypeVar("T")


def transport(endpoint: Endpoint, library: str = "httpx2") -> Any:
    """
    Gives a transport whose other end is *endpoint*.

    Arguments:
        library: `httpx2`, which newer client libraries are made on, or `httpx`.
    """
    hx = import_module(library)

    class Transport(hx.BaseTransport, hx.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        """See `transport`."""

        def handle_request(self, request: Any) -> Any:
            """Answers a request of a synchronous client."""
            return _response(hx, request, _run(_answer(endpoint, hx, request, request.read())))

        async def handle_async_request(self, request: Any) -> Any:
            """Answers a request of an asynchronous client."""
            return _response(hx, request, await _answer(endpoint, hx, request, await request.aread()))

    return Transport()


async def _answer(endpoint: Endpoint, hx: ModuleType, request: Any, raw: bytes) -> Answer:
    if request.method != "POST" or not request.url.path.endswith(endpoint.format.path):
        nothing = endpoint.format.failure(404)
        return endpoint.refused(
            Complaint(
                rule="wrong-path",
                text=f"{nothing.text} ({request.method} {request.url.path})",
                status=404,
                kind=nothing.kind,
            )
        )
    try:
        return await endpoint.post(raw)
    except ModelDown as down:
        raise hx.ConnectError(str(down), request=request) from None


def _response(hx: ModuleType, request: Any, answer: Answer) -> Any:
    headers = {"content-type": answer.content_type}
    return hx.Response(answer.status, headers=headers, stream=_body(hx, request, answer.pieces), request=request)


def _body(hx: ModuleType, request: Any, pieces: Iterator[bytes]) -> Any:
    """Gives a body for both kinds of clients; a connection that breaks is the library's own error."""

    class Body(hx.SyncByteStream, hx.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from pieces
            except ModelDown as down:
                raise hx.ReadError(str(down), request=request) from None

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in iter(self):
                yield piece

    return Body()


def _run(asked: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, beside a loop that this thread may be running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(asked)
    with ThreadPoolExecutor(max_workers=1) as beside:
        return beside.submit(asyncio.run, asked).result()

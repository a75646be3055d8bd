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
from typing import Any, Protocol, Self, TypeVar

from pytest_approvals.agent_side.failures import ModelDown

from .endpoint import Answer

T = TypeVar("T")


class Served(Protocol):
    """What stands at the other end: an endpoint, or all that a conversation serves."""

    async def serve(self, method: str, path: str, raw: bytes) -> Answer:
        """
        Answers one request.

        Errors:
            ModelDown: The connection breaks before there is an answer.
        """


class Transport:
    """
    The transport of clients whose requests *served* answers.

    It serves every library whose requests and responses are like those of `httpx`, and tells it by the request.
    """

    def __init__(self, served: Served) -> None:
        self._served = served

    def handle_request(self, request: Any) -> Any:
        """Answers a request of a synchronous client."""
        return answered(self._served, request, request.read())

    async def handle_async_request(self, request: Any) -> Any:
        """Answers a request of an asynchronous client."""
        hx, raw = _library_of(request), await request.aread()
        try:
            return _response(hx, request, await self._served.serve(request.method, request.url.path, raw))
        except ModelDown as down:
            raise _broken(hx, request, down) from None

    def __enter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Does nothing: several clients may share it."""

    async def aclose(self) -> None:
        """Does nothing: several clients may share it."""


def answered(served: Served, request: Any, raw: bytes, errors: ModuleType | None = None) -> Any:
    """
    Gives the answer to *request* as a response of its library, for a client that does not await.

    Arguments:
        errors: The library whose errors the client knows; that of the request where none is given.

    Errors:
        ReadError, ReadTimeout: The library's own; the connection breaks, or no answer comes.
    """
    errors = errors or _library_of(request)
    try:
        return _response(errors, request, _run(served.serve(request.method, request.url.path, raw)))
    except ModelDown as down:
        raise _broken(errors, request, down) from None


def _broken(errors: ModuleType, request: Any, down: ModelDown) -> Exception:
    """Gives what the library raises where that happens on a real connection; a time-out comes without the waiting."""
    kind = errors.ReadTimeout if down.how == "timeout" else errors.ReadError
    error: Exception = kind(str(down), request=request)
    return error


def _library_of(request: Any) -> ModuleType:
    return import_module(type(request).__module__.partition(".")[0])


def _response(errors: ModuleType, request: Any, answer: Answer) -> Any:
    hx = _library_of(request)
    headers = [("content-type", answer.content_type), *answer.headers]
    return hx.Response(answer.status, headers=headers, stream=_body(errors, request, answer.pieces), request=request)


def _body(errors: ModuleType, request: Any, pieces: Iterator[bytes]) -> Any:
    """Gives a body for both kinds of clients; a connection that breaks is the library's own error."""
    hx = _library_of(request)

    class Body(hx.SyncByteStream, hx.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from pieces
            except ModelDown as down:
                raise _broken(errors, request, down) from None

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

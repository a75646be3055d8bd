"""A transport object for HTTP clients in this process, for `httpx` and for `httpx2`, sync and async.

It is handed to a client (`http_client=httpx2.Client(transport=...)`), patches nothing, and nothing leaves the process.

The scripted model as routes of respx, for people whose tests use it already.

The mocker of `httpx2` hands requests over as those of `httpx` and takes such responses, so that one route serves both;
what is raised must be of the library that the client is made on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, Self, TypeVar

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.protocols.endpoint import HttpResponse

T = TypeVar("T")


class RequestHandler(Protocol):
    """What stands at the other end: an endpoint, or all that a conversation serves."""

    async def serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
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

    def __init__(self, served: RequestHandler) -> None:
        self._served = served

    def handle_request(self, request: Any) -> Any:
        """Answers a request of a synchronous client."""
        return respond(self._served, request, request.read())

    async def handle_async_request(self, request: Any) -> Any:
        """Answers a request of an asynchronous client."""
        hx, raw = _import_library(request), await request.aread()
        try:
            return _build_response(hx, request, await self._served.serve(request.method, request.url.path, raw))
        except ModelDown as down:
            raise _connection_error(hx, request, down) from None

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


def respond(served: RequestHandler, request: Any, raw: bytes, errors: ModuleType | None = None) -> Any:
    """
    Gives the answer to *request* as a response of its library, for a client that does not await.

    Arguments:
        errors: The library whose errors the client knows; that of the request where none is given.

    Errors:
        ReadError, ReadTimeout: The library's own; the connection breaks, or no answer comes.
    """
    errors = errors or _import_library(request)
    try:
        return _build_response(errors, request, _run_coroutine(served.serve(request.method, request.url.path, raw)))
    except ModelDown as down:
        raise _connection_error(errors, request, down) from None


def _connection_error(errors: ModuleType, request: Any, down: ModelDown) -> Exception:
    """Gives what the library raises where that happens on a real connection; a time-out comes without the waiting."""
    kind = errors.ReadTimeout if down.how == "timeout" else errors.ReadError
    error: Exception = kind(str(down), request=request)
    return error


def _import_library(request: Any) -> ModuleType:
    return import_module(type(request).__module__.partition(".")[0])


def _build_response(errors: ModuleType, request: Any, answer: HttpResponse) -> Any:
    hx = _import_library(request)
    headers = [("content-type", answer.content_type), *answer.headers]
    return hx.Response(
        answer.status, headers=headers, stream=_build_body(errors, request, answer.pieces), request=request
    )


def _build_body(errors: ModuleType, request: Any, pieces: Iterator[bytes]) -> Any:
    """Gives a body for both kinds of clients; a connection that breaks is the library's own error."""
    hx = _import_library(request)

    class Body(hx.SyncByteStream, hx.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from pieces
            except ModelDown as down:
                raise _connection_error(errors, request, down) from None

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in iter(self):
                yield piece

    return Body()


def _run_coroutine(asked: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, beside a loop that this thread may be running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(asked)
    with ThreadPoolExecutor(max_workers=1) as beside:
        return beside.submit(asyncio.run, asked).result()


PROVIDERS = ("https://api.openai.com/v1", "https://api.anthropic.com/v1")
"""Where the clients of the providers ask, unless they are told otherwise; with the version that is in every path."""


def mount_routes(router: Any, served: RequestHandler, *bases: str) -> Any:
    """
    Adds a route for all that is asked below the base addresses; one, because respx wants every route to be called.

    Arguments:
        router: A router of respx: `respx_mock`, or `httpx2_mock` of pytest-httpx2.
        bases: `https://api.openai.com/v1` and `https://api.anthropic.com/v1` where none is given.

    Returns:
        The route.
    """

    errors = import_module("httpx2" if getattr(router, "_using", None) == "httpcore2" else "httpx")

    def play(request: Any) -> Any:
        return respond(served, request, request.read(), errors)

    places = "|".join(re.escape(base.rstrip("/")) for base in bases or PROVIDERS)
    return router.route(url__regex=f"^(?:{places})/").mock(side_effect=play)

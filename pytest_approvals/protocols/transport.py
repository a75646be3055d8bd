"""Transports for HTTP clients in this process, and routes of respx.

They serve `httpx` and `httpx2`, sync and async. A transport is handed to a client
(`http_client=httpx2.Client(transport=...)`), patches nothing, and nothing leaves the process. The mocker of `httpx2`
hands requests over as those of `httpx` and takes such responses, so that one route serves both; what is raised must
belong to the library that the client is built on.
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
    """The server side of a transport: an endpoint, or all that a conversation serves."""

    async def serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        """Answer one request.

        Raises:
            ModelDown: The connection breaks before there is a response.
        """


class Transport:
    """A client transport whose requests *handler* answers.

    It serves every library whose requests and responses are like those of `httpx`, and recognizes it by the request.
    """

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler

    def handle_request(self, request: Any) -> Any:
        """Answer a request of a synchronous client."""
        return respond(self._handler, request, request.read())

    async def handle_async_request(self, request: Any) -> Any:
        """Answer a request of an asynchronous client."""
        library, raw = _import_library(request), await request.aread()
        try:
            return _build_response(library, request, await self._handler.serve(request.method, _path_of(request), raw))
        except ModelDown as down:
            raise _connection_error(library, request, down) from None

    def __enter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Do nothing: several clients may share it."""

    async def aclose(self) -> None:
        """Do nothing: several clients may share it."""


def respond(handler: RequestHandler, request: Any, raw: bytes, errors: ModuleType | None = None) -> Any:
    """Return the response to a request of a synchronous client, as a response of its library.

    Args:
        handler: Answers the request.
        request: The request, of any library like `httpx`.
        raw: The body of the request.
        errors: The library whose errors the client knows; that of the request by default.

    Raises:
        ReadError: The connection breaks; the class is the library's.
        ReadTimeout: No response comes; the class is the library's.
    """
    errors = errors or _import_library(request)
    try:
        return _build_response(errors, request, _run_coroutine(handler.serve(request.method, _path_of(request), raw)))
    except ModelDown as down:
        raise _connection_error(errors, request, down) from None


def _path_of(request: Any) -> str:
    """Return the path of a request with its query, as in the first line of HTTP."""
    query = request.url.query.decode("latin-1")
    return f"{request.url.path}?{query}" if query else str(request.url.path)


def _connection_error(errors: ModuleType, request: Any, down: ModelDown) -> Exception:
    """Return what the library raises on a real connection; a time-out comes without the wait."""
    # The clients' own retries and error handling match these classes.
    kind = errors.ReadTimeout if down.how == "timeout" else errors.ReadError
    error: Exception = kind(str(down), request=request)
    return error


def _import_library(request: Any) -> ModuleType:
    return import_module(type(request).__module__.partition(".")[0])


def _build_response(errors: ModuleType, request: Any, response: HttpResponse) -> Any:
    library = _import_library(request)
    headers = [("content-type", response.content_type), *response.headers]
    return library.Response(
        response.status, headers=headers, stream=_build_body(errors, request, response.pieces), request=request
    )


def _build_body(errors: ModuleType, request: Any, pieces: Iterator[bytes]) -> Any:
    """Return a body for sync and async clients; a broken connection raises the library's own error."""
    library = _import_library(request)

    class Body(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from pieces
            except ModelDown as down:
                raise _connection_error(errors, request, down) from None

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in iter(self):
                yield piece

    return Body()


def _run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in another thread if this one is running an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    # A thread that is running a loop cannot run a second one.
    with ThreadPoolExecutor(max_workers=1) as executor:
        return executor.submit(asyncio.run, coroutine).result()


PROVIDERS = (
    "https://api.openai.com/v1",
    "https://api.anthropic.com/v1",
    "https://generativelanguage.googleapis.com/v1beta",
)
"""The default base addresses of the providers' clients, with the version that is in every path."""


def mount_routes(router: Any, handler: RequestHandler, *bases: str) -> Any:
    """Add a route for all requests below the base addresses, and return it.

    It is a single route, because respx requires every route to be called.

    Args:
        router: A router of respx: `respx_mock`, or `httpx2_mock` of pytest-httpx2.
        handler: Answers the requests.
        bases: `PROVIDERS` by default.
    """
    # The mocker of `httpx2` hands over requests of `httpx`, so the request does not tell the client's library.
    errors = import_module("httpx2" if getattr(router, "_using", None) == "httpcore2" else "httpx")

    def handle(request: Any) -> Any:
        return respond(handler, request, request.read(), errors)

    prefixes = "|".join(re.escape(base.rstrip("/")) for base in bases or PROVIDERS)
    return router.route(url__regex=f"^(?:{prefixes})/").mock(side_effect=handle)

"""Recording proxy between a client and a provider.

Requests are forwarded unchanged, responses come back as they arrive.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Thread
from urllib.parse import SplitResult, urlsplit

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.conversations.recording.capture import Recorder, find_credentials
from pytest_approvals.errors import UsageError
from pytest_approvals.protocols.endpoint import JSON, HttpResponse
from pytest_approvals.protocols.http.server import ConnectionHandler, HttpRequest, HttpServer
from pytest_approvals.protocols.streaming import EVENT_STREAM

UPSTREAM_TIMEOUT = 600.0
"""Seconds that the provider may take for a piece of a response."""

# They belong to one connection, or the proxy sets them itself.
_CONNECTION_HEADERS = frozenset(
    ("host", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding", "upgrade", "te")
)
_FORWARDED_HEADERS = ("retry-after", "retry-after-ms", "x-request-id", "request-id")


class RecordingProxy:
    """Proxy that forwards requests to a provider, and hands each exchange to a recorder.

    Args:
        upstream: The base address of the provider.
        recorder: Records the exchanges.
        port: The port; 0 takes a free one.

    Raises:
        UsageError: The address is invalid, or the port is taken.
    """

    def __init__(self, upstream: str, recorder: Recorder, *, port: int = 0) -> None:
        self._upstream = _parse_upstream(upstream)
        self._recorder = recorder
        try:
            self._server = HttpServer(
                socket.AF_INET, "127.0.0.1", port, self._serve, _request_too_large, handler=self._handler()
            )
        except OSError as error:
            raise UsageError(f"cannot listen on port {port}: {error.strerror}") from None

    @property
    def url(self) -> str:
        """The base address for clients, in place of the provider's."""
        return f"http://127.0.0.1:{self._server.server_port}{self._upstream.path.rstrip('/')}"

    @contextmanager
    def running(self) -> Iterator[RecordingProxy]:
        """Serve within the context, and stop at its end."""
        thread = Thread(target=self._server.serve_forever, args=(0.05,), name="recording", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.stop()
            thread.join()

    def _handler(self) -> type[ConnectionHandler]:
        forward = self.forward

        class WithHeaders(ConnectionHandler):
            """Connection handler that passes the headers of a request, too."""

            def serve(self, request: HttpRequest) -> HttpResponse:
                """See `ConnectionHandler.serve`."""
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
                return forward(request.method, request.path, headers, request.body)

        return WithHeaders

    def forward(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> HttpResponse:
        """Return the provider's response to a request, which is recorded when it has passed.

        Raises:
            ModelDown: The provider ended the connection without a response.
        """
        connection = self._connect()
        forwarded = {name: value for name, value in headers.items() if name.lower() not in _CONNECTION_HEADERS}
        try:
            # The recorder reads the body, so the provider must not compress it.
            connection.request(method, path, body=raw or None, headers={**forwarded, "Accept-Encoding": "identity"})
            response = connection.getresponse()
        except HTTPException:
            connection.close()
            raise ModelDown(0) from None
        except OSError as error:
            connection.close()
            return HttpResponse.from_json({"error": {"message": f"cannot reach the provider: {error}"}}, 502)
        secrets = find_credentials(headers)

        def record(body: bytes, *, streamed: bool) -> None:
            # An error is not part of the conversation: the client repeats the request.
            if response.status == 200:
                self._recorder.record(path.partition("?")[0], raw, body, streamed=streamed, secrets=secrets)

        return _to_response(connection, response, record)

    def _connect(self) -> HTTPConnection:
        kind = HTTPSConnection if self._upstream.scheme == "https" else HTTPConnection
        return kind(self._upstream.hostname or "", self._upstream.port, timeout=UPSTREAM_TIMEOUT)

    def _serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        return self.forward(method, path, {}, raw)


RecordBody = Callable[..., None]


def _to_response(connection: HTTPConnection, response: HTTPResponse, record: RecordBody) -> HttpResponse:
    received = response.headers
    headers = tuple((name, str(received[name])) for name in _FORWARDED_HEADERS if name in received)
    kind = received.get("content-type", JSON)
    if kind.startswith("text/event-stream"):
        pieces = _forward_stream(connection, response, record)
        return HttpResponse(
            status=response.status,
            content_type=EVENT_STREAM,
            pieces=pieces,
            flush_each=True,
            is_stream=True,
            headers=headers,
        )
    with closing(connection):
        body = response.read()
    record(body, streamed=False)
    return HttpResponse(status=response.status, content_type=kind, pieces=iter([body]), headers=headers)


def _forward_stream(connection: HTTPConnection, response: HTTPResponse, record: RecordBody) -> Iterator[bytes]:
    body = b""
    with closing(connection):
        try:
            while piece := response.read1(65536):
                body += piece
                yield piece
        except (HTTPException, OSError):
            raise ModelDown(0) from None
    # Not reached if the stream breaks: the client repeats the request.
    record(body, streamed=True)


def _parse_upstream(upstream: str) -> SplitResult:
    address = urlsplit(upstream)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise UsageError(f"Invalid provider address {upstream!r}: expected a URL like https://api.openai.com/v1")
    return address


def _request_too_large(path: str) -> HttpResponse:
    return HttpResponse.from_json({"error": {"message": f"the request to {path} is too large"}}, 413)

"""Recording proxy between a client and a provider.

Requests are forwarded unchanged, but for the signature of AWS, which holds for one host only. Responses come back as
they arrive.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from itertools import count
from threading import Lock, Thread
from urllib.parse import SplitResult, urlsplit

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.conversations.recording.aws_signature import is_signed, sign_again
from pytest_approvals.conversations.recording.capture import Recorder
from pytest_approvals.conversations.recording.redaction import find_credentials
from pytest_approvals.errors import UsageError
from pytest_approvals.protocols.converse.event_stream import MEDIA_TYPE as AWS_EVENT_STREAM
from pytest_approvals.protocols.endpoint import JSON, HttpResponse
from pytest_approvals.protocols.http.server import ConnectionHandler, HttpRequest, HttpServer
from pytest_approvals.protocols.streaming import EVENT_STREAM

UPSTREAM_TIMEOUT = 600.0
"""Seconds that the provider may take for a piece of a response."""

# They belong to one connection, or the proxy sets them itself.
_CONNECTION_HEADERS = frozenset(
    ("host", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding", "upgrade", "te")
)
_FORWARDED_HEADERS = (
    "retry-after",
    "retry-after-ms",
    "x-request-id",
    "request-id",
    "x-amzn-errortype",
    "x-amzn-requestid",
)


class ExchangeOrder:
    """Order in which exchanges are recorded: that in which their requests came.

    A client may send its next request before the proxy has seen the end of the stream that it answers.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers = count()
        self._open: dict[int, Callable[[], None] | None] = {}

    def open(self) -> int:
        """Return the number of an exchange that begins."""
        with self._lock:
            number = next(self._numbers)
            self._open[number] = None
            return number

    def close(self, number: int, record: Callable[[], None] = lambda: None) -> None:
        """End an exchange: *record* is called when all that began before it have ended."""
        with self._lock:
            if number not in self._open:
                return
            self._open[number] = record
            while self._open and (first := next(iter(self._open.values()))) is not None:
                self._open.pop(next(iter(self._open)))
                first()

    def flush(self) -> None:
        """Record all that has ended, without waiting for what has not."""
        with self._lock:
            ended = [record for record in self._open.values() if record is not None]
            self._open.clear()
            for record in ended:
                record()


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
        self._order = ExchangeOrder()
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
        thread = Thread(target=self._server.serve_forever, name="recording", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.stop()
            thread.join()
            self._server.close()
            self._order.flush()

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
        # The recorder reads the body, so the provider must not compress it.
        forwarded = {name: value for name, value in headers.items() if name.lower() not in _CONNECTION_HEADERS}
        forwarded["Accept-Encoding"] = "identity"
        plain_path, _, query = path.partition("?")
        secrets = find_credentials(headers, query)
        if is_signed(forwarded):
            address = self._upstream
            try:
                signed = sign_again(method, f"{address.scheme}://{address.netloc}{path}", forwarded, raw)
            except UsageError as error:
                self._recorder.problems.append(f"{plain_path}: {error}")
                return _cannot_sign(str(error))
            forwarded, secrets = dict(signed.headers), secrets | signed.secrets
        number = self._order.open()
        connection = self._connect()
        try:
            connection.request(method, path, body=raw or None, headers=forwarded)
            response = connection.getresponse()
        except (HTTPException, OSError) as error:
            connection.close()
            self._order.close(number)
            if isinstance(error, HTTPException):
                raise ModelDown(0) from None
            return HttpResponse.from_json({"error": {"message": f"cannot reach the provider: {error}"}}, 502)

        def end(body: bytes | None, *, streamed: bool) -> None:
            # An error is not part of the conversation: the client repeats the request.
            if body is None or response.status != 200:
                self._order.close(number)
                return
            recorded = partial(self._recorder.record, plain_path, raw, body, streamed=streamed, secrets=secrets)
            self._order.close(number, recorded)

        return _to_response(connection, response, end, streamed=plain_path.endswith(":streamGenerateContent"))

    def _connect(self) -> HTTPConnection:
        kind = HTTPSConnection if self._upstream.scheme == "https" else HTTPConnection
        return kind(self._upstream.hostname or "", self._upstream.port, timeout=UPSTREAM_TIMEOUT)

    def _serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        return self.forward(method, path, {}, raw)


EndExchange = Callable[..., None]
"""Ends an exchange with the body of its response, or with None if the response broke."""


def _to_response(
    connection: HTTPConnection, response: HTTPResponse, end: EndExchange, *, streamed: bool
) -> HttpResponse:
    """Return the response to the client; *streamed* if it is a stream even where its type is that of JSON."""
    received = response.headers
    headers = tuple((name, str(received[name])) for name in _FORWARDED_HEADERS if name in received)
    kind = received.get("content-type", JSON)
    is_text = kind.startswith("text/event-stream")
    if is_text or kind.startswith(AWS_EVENT_STREAM) or (streamed and response.status == 200):
        pieces = _forward_stream(connection, response, end)
        return HttpResponse(
            status=response.status,
            content_type=EVENT_STREAM if is_text else kind,
            pieces=pieces,
            flush_each=True,
            is_stream=True,
            headers=headers,
        )
    body = None
    try:
        with closing(connection):
            body = response.read()
    finally:
        end(body, streamed=False)
    return HttpResponse(status=response.status, content_type=kind, pieces=iter([body]), headers=headers)


def _forward_stream(connection: HTTPConnection, response: HTTPResponse, end: EndExchange) -> Iterator[bytes]:
    body, ended = b"", False
    try:
        with closing(connection):
            while piece := response.read1(65536):
                body += piece
                yield piece
        ended = True
    except (HTTPException, OSError):
        raise ModelDown(0) from None
    finally:
        # A stream that breaks is not recorded: the client repeats the request.
        end(body if ended else None, streamed=True)


def _parse_upstream(upstream: str) -> SplitResult:
    address = urlsplit(upstream)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise UsageError(f"Invalid provider address {upstream!r}: expected a URL like https://api.openai.com/v1")
    return address


def _cannot_sign(text: str) -> HttpResponse:
    # A status that no client of AWS takes for a reason to ask again.
    headers = (("x-amzn-ErrorType", "UnrecognizedClientException"),)
    return HttpResponse.from_json({"message": f"the recorder cannot sign the request: {text}"}, 403, headers)


def _request_too_large(path: str) -> HttpResponse:
    return HttpResponse.from_json({"error": {"message": f"the request to {path} is too large"}}, 413)

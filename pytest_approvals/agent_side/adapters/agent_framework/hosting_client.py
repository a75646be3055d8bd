"""Client of a Responses server that runs in this process, without a network between.

It sends items of the Responses API and reads those of a response. What a server sends is passed on piece by piece, as
it is sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ...contract import Decision, Request, Unsupported

Application = Callable[..., Awaitable[None]]

# No piece of a body: `send` drops empty ones.
_END_OF_BODY = b""


class Exchange:
    """One HTTP request and its response.

    Attributes:
        status: The status of the response; 0 until its head was sent.
    """

    def __init__(self, body: bytes) -> None:
        self.status = 0
        self._request = [{"type": "http.request", "body": body, "more_body": False}]
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._gone = asyncio.Event()

    async def receive(self) -> MutableMapping[str, Any]:
        """Give the server the request; later report that the client is gone."""
        if self._request:
            return self._request.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Accept what the server sends."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body" and message.get("body"):
            self._pieces.put_nowait(message["body"])
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.end()

    def end(self) -> None:
        """End the response."""
        self._pieces.put_nowait(_END_OF_BODY)

    def disconnect(self) -> None:
        """Report the client as gone."""
        self._gone.set()

    async def iterate_pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes."""
        while piece := await self._pieces.get():
            yield piece

    async def read_text(self) -> str:
        """Return the whole body."""
        return b"".join([piece async for piece in self.iterate_pieces()]).decode()

    async def iterate_events(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the data of the server-sent events in the body."""
        rest = b""
        async for piece in self.iterate_pieces():
            # A piece may end in the middle of an event.
            *whole, rest = (rest + piece).split(b"\n\n")
            for event in whole:
                data = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
                if data:
                    yield json.loads(b"\n".join(data))


@asynccontextmanager
async def open_exchange(application: Application, method: str, path: str, body: Any = None) -> AsyncIterator[Exchange]:
    """Send a request to *application*; its exceptions are raised here."""
    content = b"" if body is None else json.dumps(body).encode()
    request = Exchange(content)
    task = asyncio.ensure_future(application(_request_scope(method, path, content), request.receive, request.send))
    # A server that fails never ends its response, and whoever reads it would wait forever.
    task.add_done_callback(lambda _: request.end())
    try:
        yield request
    except BaseException:
        task.cancel()
        raise
    finally:
        request.disconnect()
        # `wait` does not raise what the task raised, so an error of the block above is not replaced by it.
        await asyncio.wait([task])
    task.result()


def _request_scope(method: str, path: str, content: bytes) -> dict[str, Any]:
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


LOCAL_LABEL = "agent_framework"
"""The server's own label in requests about calls that it runs."""

ResponseItem = Mapping[str, Any]


# --- what a client sends ----------------------------------------------------------------------------------------------


def write_input(text: str | None, decisions: Sequence[Decision]) -> Any:
    """Return the input of a request: a bare text, or a list of items, decisions first."""
    if text is not None and not decisions:
        return text
    messages = [] if text is None else [{"type": "message", "role": "user", "content": text}]
    return [*(_write_decision(decision) for decision in decisions), *messages]


def _write_decision(decision: Decision) -> dict[str, Any]:
    if decision.verdict not in ("approve", "reject", "raw"):
        raise Unsupported(decision.verdict, "an `mcp_approval_response` says yes or no, and why")
    answer: dict[str, Any] = {
        "type": "mcp_approval_response",
        "approval_request_id": decision.address if decision.request is None else decision.request.id,
        "approve": decision.raw if decision.verdict == "raw" else decision.verdict == "approve",
    }
    return answer if decision.reason is None else {**answer, "reason": decision.reason}


# --- what it finds ----------------------------------------------------------------------------------------------------


def read_requests(output: Iterable[ResponseItem]) -> tuple[Request, ...]:
    """Return the approval requests among the items of a response."""
    return tuple(read_request(item) for item in output if item["type"] == "mcp_approval_request")


def read_request(item: ResponseItem) -> Request:
    """Return an approval request; its item does not have the id of the call."""
    from .messages import read_arguments

    label = item.get("server_label")
    hosted = label is not None and label != LOCAL_LABEL
    return Request(
        id=item["id"],
        call_id=None,
        tool=item["name"],
        arguments=read_arguments(item.get("arguments")),
        kind="hosted_mcp" if hosted else "function",
        server=label if hosted else None,
        handle=item,
    )


def read_text(output: Iterable[ResponseItem]) -> str:
    """Return the agent's text, from all its messages."""
    return "".join(
        str(part.get("text", ""))
        for item in output
        if item["type"] == "message"
        for part in item.get("content") or ()
        if part.get("type") == "output_text"
    )


def read_value(output: Sequence[ResponseItem]) -> Any:
    """Return a structured answer, which is the text of an object; else the text."""
    text = read_text(output)
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


# --- what its stream shows --------------------------------------------------------------------------------------------


def read_event(event: ResponseItem) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what one event of a stream shows, as arguments for `World.shown`."""
    if event["type"] == "response.output_text.delta":
        yield "text", {"text": event["delta"]}
    elif event["type"] == "response.output_item.added" and event["item"]["type"] == "function_call":
        yield "call", {"id": event["item"]["call_id"], "tool": event["item"]["name"]}
    elif event["type"] == "response.output_item.done":
        yield from _read_done_item(event["item"])


def _read_done_item(item: ResponseItem) -> Iterator[tuple[str, dict[str, Any]]]:
    if item["type"] == "mcp_approval_request":
        yield "request", {"id": item["id"]}
    elif item["type"] == "function_call_output":
        yield "result", {"id": item["call_id"], "text": str(item.get("output", ""))}


ShowEvent = Callable[..., None]

_END_EVENTS = ("response.completed", "response.incomplete", "response.failed")


class RequestRefused(Exception):
    """The server refused a request with an error status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"status {status}: {text}")


class ResponseFailed(Exception):
    """A response ended with another status than `completed`."""

    def __init__(self, response: dict[str, Any]) -> None:
        error = response.get("error") or response.get("incomplete_details") or {}
        super().__init__(f"{response.get('status')}: {error.get('message') or error.get('reason') or 'no reason'}")


class StreamBroke(Exception):
    """A stream ended without the end of its response."""


class ServerClient:
    """Client of the server *application*.

    Every method returns a response as an object with its output. It raises `RequestRefused` if the server refuses, and
    `ResponseFailed` if the response fails.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def create(self, body: dict[str, Any]) -> dict[str, Any]:
        """Request a response and wait for it."""
        return _check_completed(await self._request("POST", "/responses", body))

    async def stream(self, body: dict[str, Any], shown: ShowEvent) -> dict[str, Any]:
        """Request a response and follow its stream.

        Args:
            body: The request.
            shown: Receives what the stream shows.

        Raises:
            StreamBroke: The response never ended.
        """
        async with open_exchange(self._application, "POST", "/responses", {**body, "stream": True}) as request:
            response = await _follow_stream(request, shown)
        return _check_completed(_check_ended(request.status, response))

    async def get(self, response: str) -> dict[str, Any]:
        """Request an earlier response."""
        return await self._request("GET", f"/responses/{response}", None)

    async def _request(self, method: str, path: str, body: Any) -> dict[str, Any]:
        async with open_exchange(self._application, method, path, body) as request:
            text = await request.read_text()
        return _read_response(request.status, text)


def _read_response(status: int, text: str) -> dict[str, Any]:
    if status >= 400:
        raise RequestRefused(status, text)
    response: dict[str, Any] = json.loads(text)
    return response


async def _follow_stream(request: Exchange, shown: ShowEvent) -> dict[str, Any]:
    """Return the response of a stream: its finished items, and how it ended.

    One that never ended has no status, but the errors that came instead.
    """
    output: list[Any] = []
    ended: dict[str, Any] = {}
    async for event in request.iterate_events():
        kind = event.get("type", "")
        if kind in _END_EVENTS:
            ended = event["response"]
        elif kind == "error" or "error" in event:
            ended = {"error": event}
        else:
            for shown_kind, values in read_event(event):
                shown(shown_kind, **values)
            if kind == "response.output_item.done":
                output.append(event["item"])
    shown("end")
    return {**ended, "output": output}


def _check_ended(status: int, response: dict[str, Any]) -> dict[str, Any]:
    if status >= 400:
        raise RequestRefused(status, json.dumps(response.get("error")))
    if "status" not in response:
        raise StreamBroke(json.dumps(response.get("error")))
    return response


def _check_completed(response: dict[str, Any]) -> dict[str, Any]:
    if response.get("status") != "completed":
        raise ResponseFailed(response)
    return response

"""The way to the scripted model: a server between the CLI and the model of the session.

Some things of the CLI are kept from the script, which knows nothing of them: the prefix of the names of MCP tools, the
requests that ask a small model for titles and summaries, and those that count tokens, which the server answers itself;
and what the CLI tells the model of its version, of this machine and of the date, which would differ from run to run.

The server is also the proxy that the CLI is told to reach all other machines through. It reaches none.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

SIDE_MODEL = "claude-haiku-side-requests"
"""The small model of the CLI, which the server itself plays."""

_SIDE_TEXT = "A conversation."
_BILLING = "x-anthropic-billing-header:"
_ENVIRONMENT = "# Environment\n"
_STARTS_BLOCK = b'"content_block_start"'


class Message(NamedTuple):
    """An HTTP request or response; *complete* says whether its body arrived to its end."""

    first: str
    headers: Mapping[str, str]
    body: bytes
    complete: bool = True


class ModelProxy:
    """Server that passes requests on to the model of a session.

    Args:
        upstream: Returns the address of the model.
        prefixes: For the name of each tool in the script, its name in the CLI.

    Attributes:
        url: Its address, once it is started.
        side_requests: What it has answered itself, each as the model that was asked, or `count_tokens`.
        refused: The machines that it was asked for as a proxy.
    """

    def __init__(self, upstream: Callable[[], str], prefixes: Mapping[str, str]) -> None:
        self._upstream = upstream
        self._to_cli = dict(prefixes)
        self._to_script = {full: name for name, full in prefixes.items()}
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.url = ""
        self.side_requests: list[str] = []
        self.refused: list[str] = []

    async def start(self) -> None:
        """Begin to listen on the loopback interface."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Stop listening, and end what is being served."""
        if self._server is not None:
            self._server.close()
            self._server = None
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            # A client that goes away ends its request.
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                request = await read_message(reader)
                if request is not None:
                    await self._answer(request, writer)
        finally:
            self._serving.discard(task)
            with suppress(Exception):
                writer.close()

    async def _answer(self, request: Message, writer: asyncio.StreamWriter) -> None:
        method, path, _ = request.first.split(" ", 2)
        route = urlsplit(path).path
        if method == "CONNECT" or "://" in path:
            self._refuse_host(path)
            await _write_json(writer, {}, "502 Bad Gateway")
        elif route == "/v1/messages/count_tokens":
            self.side_requests.append("count_tokens")
            await _write_json(writer, {"input_tokens": 1})
        elif method != "POST" or route != "/v1/messages":
            await _write_json(writer, {"error": {"type": "not_found_error", "message": route}}, "404 Not Found")
        else:
            body = json.loads(request.body)
            if body.get("model") == SIDE_MODEL:
                self.side_requests.append(SIDE_MODEL)
                await _write_side_reply(writer, stream=bool(body.get("stream")))
            else:
                await self._pass_on(path, request, body, writer)

    def _refuse_host(self, path: str) -> None:
        place = urlsplit(path if "://" in path else f"//{path}")
        self.refused.append(place.hostname or path)
        # The network guard listens to these events, and reports the host; nobody looks it up.
        with suppress(ConnectionRefusedError):
            sys.audit("socket.getaddrinfo", place.hostname, place.port, 0, 0, 0)

    async def _pass_on(self, path: str, request: Message, body: Any, writer: asyncio.StreamWriter) -> None:
        base = urlsplit(self._upstream())
        reader, upstream = await asyncio.open_connection(base.hostname, base.port)
        try:
            names = ("content-type", "anthropic-version", "anthropic-beta", "x-api-key", "authorization")
            headers = {name: request.headers[name] for name in names if name in request.headers}
            raw = json.dumps(self._rename_request(body)).encode()
            head = {"Host": base.netloc, "Connection": "close", "Content-Length": str(len(raw)), **headers}
            upstream.write(_format_head(f"POST {base.path}{path} HTTP/1.1", head) + raw)
            await upstream.drain()
            answer = await read_message(reader)
        finally:
            upstream.close()
        if answer is None:
            writer.transport.abort()
            return
        await self._write_answer(answer, writer)

    async def _write_answer(self, answer: Message, writer: asyncio.StreamWriter) -> None:
        left_out = ("content-length", "transfer-encoding", "connection")
        headers = {name: value for name, value in answer.headers.items() if name not in left_out}
        head = {**headers, "Connection": "close", "Transfer-Encoding": "chunked"}
        writer.write(_format_head(answer.first, head))
        for piece in self._rename_answer(answer):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        if answer.complete:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        else:
            # Without its last chunk, a body is one that broke off.
            await writer.drain()
            writer.transport.abort()

    # --- names ---

    def _rename_request(self, body: Any) -> Any:
        body["messages"] = [message for message in body["messages"] if not _is_about_machine(message)]
        if isinstance(body.get("system"), list):
            body["system"] = [block for block in body["system"] if not block["text"].startswith(_BILLING)]
        for tool in body.get("tools") or ():
            tool["name"] = self._to_script.get(tool.get("name"), tool.get("name"))
        for message in body.get("messages") or ():
            blocks = message.get("content")
            for block in blocks if isinstance(blocks, list) else ():
                if block.get("type") == "tool_use":
                    block["name"] = self._to_script.get(block.get("name"), block.get("name"))
        return body

    def _rename_answer(self, answer: Message) -> list[bytes]:
        if "event-stream" in answer.headers.get("content-type", ""):
            lines = answer.body.splitlines(keepends=True)
            return [self._rename_line(line) if _STARTS_BLOCK in line else line for line in lines]
        return [self._rename_line(answer.body)] if answer.body else []

    def _rename_line(self, line: bytes) -> bytes:
        prefix = b"data: " if line.startswith(b"data: ") else b""
        end = line[len(line.rstrip(b"\r\n")) :]
        try:
            value = json.loads(line[len(prefix) :])
        except ValueError:
            return line
        if not isinstance(value, dict):
            return line
        for block in (value.get("content_block"), *(value.get("content") or ())):
            if isinstance(block, dict) and block.get("type") == "tool_use":
                block["name"] = self._to_cli.get(block.get("name", ""), block.get("name"))
        return prefix + json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace") + end


def _is_about_machine(message: Mapping[str, Any]) -> bool:
    if message["role"] != "system":
        return False
    content = message["content"]
    text = content if isinstance(content, str) else content[0].get("text", "")
    return bool(text.startswith(_ENVIRONMENT))


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """Read one HTTP message; None if the connection ends before its head does."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body, complete = await _read_chunks(reader)
        return Message(first, headers, body, complete)
    size = int(headers.get("content-length", "0"))
    try:
        return Message(first, headers, await reader.readexactly(size))
    except asyncio.IncompleteReadError as short:
        return Message(first, headers, short.partial, complete=False)


async def _read_chunks(reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    body = b""
    while line := await reader.readline():
        size = int(re.sub(rb";.*", b"", line).strip() or b"0", 16)
        if size == 0:
            return body, True
        try:
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        except asyncio.IncompleteReadError as short:
            return body + short.partial, False
    return body, False


def _format_head(first: str, headers: Mapping[str, str]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _write_json(writer: asyncio.StreamWriter, value: Any, status: str = "200 OK") -> None:
    await _write_body(writer, json.dumps(value).encode(), "application/json", status)


async def _write_body(writer: asyncio.StreamWriter, body: bytes, kind: str, status: str = "200 OK") -> None:
    headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close"}
    writer.write(_format_head(f"HTTP/1.1 {status}", headers) + body)
    await writer.drain()


async def _write_side_reply(writer: asyncio.StreamWriter, *, stream: bool) -> None:
    block = {"type": "text", "text": _SIDE_TEXT}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": "msg_side",
        "type": "message",
        "role": "assistant",
        "model": SIDE_MODEL,
        "content": [block],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    if not stream:
        await _write_json(writer, message)
        return
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": _SIDE_TEXT}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    await _write_body(writer, text.encode(), "text/event-stream")

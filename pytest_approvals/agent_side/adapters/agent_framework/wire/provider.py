"""A provider in this process: a transport for HTTP that asks the world of the running turn."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from openai import AsyncOpenAI

from ....contract import Chunk, Item, ModelDown, ModelRefused, Reply
from ....current import world
from ..contents import carries

try:
    import httpx2 as hx  # what newer releases of the client are made on
except ImportError:
    import httpx as hx  # type: ignore[no-redef]


class Speaks(Protocol):
    """How a provider's interface is spoken: requests as items, replies as JSON and as events."""

    def items(self, body: dict[str, Any]) -> list[Item]:
        """Gives the complete input of the model."""

    def reply(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        """Gives a reply as JSON."""

    def events(self, body: dict[str, Any], reply: Reply) -> Iterator[str]:
        """Gives a reply as the events of a stream; raises `ModelDown` where the stream breaks."""


class Provider(hx.AsyncBaseTransport):
    """
    The provider of one agent's model.

    Arguments:
        agent: The agent whose model is asked.
        answer: The fields of the structured answer that the agent has to give.
        speaks: The interface that the client talks to.
    """

    def __init__(self, *, agent: str, answer: Iterable[str], speaks: Speaks) -> None:
        self._agent = agent
        self._answer = frozenset(answer)
        self._speaks = speaks

    async def handle_async_request(self, request: Any) -> Any:
        """Answers one request of the client."""
        body = json.loads(await request.aread())
        stream = bool(body.get("stream"))
        try:
            reply = await world().model(
                [self._told(item) for item in self._speaks.items(body)],
                agent=self._agent,
                stream=stream,
                tools=_offered(body),
            )
        except ModelDown as down:
            return self._failed(request, down)
        reply = _with_answer(reply)
        if not stream:
            return hx.Response(200, json=self._speaks.reply(body, reply))
        return hx.Response(
            200,
            headers={"content-type": "text/event-stream"},
            stream=_Events(self._speaks.events(body, reply), request),
        )

    def _told(self, item: Item) -> Item:
        if item.kind == "say" and carries(item.text or "", self._answer):
            return replace(item, kind="other")
        return item

    def _failed(self, request: Any, down: ModelDown) -> Any:
        if down.status == 0:
            raise hx.ConnectError(str(down), request=request)
        kind = "invalid_request_error" if isinstance(down, ModelRefused) else "server_error"
        return hx.Response(down.status, json={"error": {"message": str(down), "type": kind, "code": None}})


class _Events(hx.AsyncByteStream):
    """The body of a streamed answer."""

    def __init__(self, events: Iterator[str], request: Any) -> None:
        self._events = events
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for event in self._events:
                yield f"data: {event}\n\n".encode()
        except ModelDown as down:
            raise hx.ReadError(str(down), request=self._request) from None


def connected(provider: Provider) -> AsyncOpenAI:
    """Gives the provider's own client, with *provider* at its other end."""
    return AsyncOpenAI(
        api_key="none",
        base_url="http://model.invalid/v1",
        max_retries=0,
        http_client=hx.AsyncClient(transport=provider),
    )


def _offered(body: dict[str, Any]) -> Sequence[str]:
    return [name for tool in body.get("tools") or () for name in _names(tool)]


def _names(tool: dict[str, Any]) -> list[str]:
    allowed = tool.get("allowed_tools")
    if isinstance(allowed, list):
        return [str(name) for name in allowed]
    return [str(tool.get("function", tool).get("name") or tool.get("server_label"))]


def _with_answer(reply: Reply) -> Reply:
    """Gives the structured answer as what the model says, which is where the provider puts it."""
    if reply.answer is None:
        return reply
    text = json.dumps(dict(reply.answer))
    chunks = reply.chunks if reply.breaks else (*reply.chunks, Chunk(text=text))
    return replace(reply, say=(reply.say or "") + text, chunks=chunks)

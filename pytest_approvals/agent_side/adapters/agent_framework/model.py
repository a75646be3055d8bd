"""
The scripted model: a chat client of the framework that asks the world of the running turn.

It gives contents as the framework's own client for Chat Completions does: whole calls without a stream; in a stream
pieces of calls, each marked with the occurrence that it belongs to, because the pieces of parallel calls interleave.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any
from uuid import uuid4

from agent_framework import BaseChatClient, ChatResponse, ChatResponseUpdate, Content, Message

try:
    from agent_framework import ChatMiddlewareLayer, FunctionInvocationLayer
except ImportError:
    # Early releases have the layers, and do not give them away at the top.
    from agent_framework._middleware import ChatMiddlewareLayer
    from agent_framework._tools import FunctionInvocationLayer

from ...contract import MAIN, Chunk, ModelDown, Reply
from ...current import world
from .contents import OCCURRENCES, answered, call, contents, items, ran


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """
    The chat client of one agent.

    Arguments:
        agent: The agent whose model it is.
        answer: The fields of the structured answer that the agent has to give.
    """

    STORES_BY_DEFAULT = False

    def __init__(self, *, agent: str = MAIN, answer: Iterable[str] = (), **options: Any) -> None:
        super().__init__(**options)
        self.agent = agent
        self.answer = tuple(answer)

    def _inner_get_response(
        self, *, messages: Sequence[Any], stream: bool = False, options: Any = None, **_: Any
    ) -> Any:
        if stream:
            wanted = (options or {}).get("response_format")
            return self._build_response_stream(self._streamed(messages, options), response_format=wanted)
        return self._answered(messages, options)

    async def _answered(self, messages: Sequence[Any], options: Any) -> Any:
        reply = await self._reply(messages, options, stream=False)
        return ChatResponse(
            messages=[Message("assistant", contents(reply))],
            response_id=_id("resp"),
            response_format=(options or {}).get("response_format"),
        )

    async def _streamed(self, messages: Sequence[Any], options: Any) -> AsyncIterator[Any]:
        reply = await self._reply(messages, options, stream=True)
        place = {"role": "assistant", "response_id": _id("resp"), "message_id": _id("msg")}
        for content in self._pieces(reply):
            yield ChatResponseUpdate(contents=[content], **place)
        if reply.breaks:
            raise ModelDown(0, reply.how)

    def _pieces(self, reply: Reply) -> Iterable[Any]:
        return pieces(reply)

    async def _reply(self, messages: Sequence[Any], options: Any, *, stream: bool) -> Reply:
        given = items(messages, self.answer)
        return await world().model(given, agent=self.agent, stream=stream, tools=offered(options))


def _id(what: str) -> str:
    return f"{what}_{uuid4().hex}"


def offered(options: Any) -> list[str]:
    """Gives the names of the tools that the model may call."""
    return [str(getattr(tool, "name", tool)) for tool in (options or {}).get("tools") or ()]


def pieces(reply: Reply) -> Iterable[Any]:
    """Gives a reply in the pieces in which it is streamed."""
    yield from ran(reply.hosted)
    streamed = _Streamed()
    for chunk in reply.chunks:
        if chunk.call is None:
            yield Content.from_text(chunk.text or "")
        elif reply.calls[chunk.call].kind != "hosted_mcp":
            yield streamed.piece(chunk, chunk.call)
    if not reply.breaks:
        # A hosted server's request comes whole.
        yield from (call(one) for one in reply.calls if one.kind == "hosted_mcp")
        yield from answered(reply)


class _Streamed:
    """The calls of one stream, by their position in the reply."""

    def __init__(self) -> None:
        self._begun: dict[int, tuple[str, str]] = {}

    def piece(self, chunk: Chunk, position: int) -> Any:
        """Gives one piece of a call; releases without occurrences get it as the provider sends it."""
        told = {"name": chunk.tool or "", "arguments": chunk.arguments or ""}
        if not OCCURRENCES:
            return Content.from_function_call(call_id=chunk.id or "", **told)
        occurrence, known = self._begun.get(position) or (f"af-call-{uuid4().hex}", "")
        self._begun[position] = (occurrence, chunk.id or known)
        call_id = self._begun[position][1]
        return Content.from_function_call(call_id=call_id, id=occurrence, merge_mode="append", **told)

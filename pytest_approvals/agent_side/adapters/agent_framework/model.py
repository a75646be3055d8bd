"""Chat clients of an agent: the scripted ones, and the framework's own.

A scripted client asks the world of the running turn. It gives contents as the framework's own client for Chat
Completions does: whole calls without a stream; in a stream pieces of calls, each marked with its occurrence, because
the pieces of parallel calls interleave.

As a client for Responses, a stream has the id and the name of a call in each of its pieces, and its end has the
arguments once more, as a whole that replaces the pieces.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from agent_framework import BaseChatClient, ChatResponse, ChatResponseUpdate, Content, Message

from ...contract import MAIN, Chunk, ModelAddress, ModelCall, ModelDown, Reply
from ...kit.clients import build_anthropic_client, build_openai_client
from ...kit.context import await_in_turn, current_world
from ...kit.tool_schema import write_arguments
from .messages import (
    HAS_OCCURRENCES,
    to_answer_contents,
    to_call_content,
    to_contents,
    to_hosted_results,
    to_items,
    to_thought_piece,
)

try:
    from agent_framework import ChatMiddlewareLayer, FunctionInvocationLayer
except ImportError:
    # Early releases have the layers, but do not export them.
    from agent_framework._middleware import ChatMiddlewareLayer
    from agent_framework._tools import FunctionInvocationLayer


ClientFactory = Callable[..., Any]
"""Builds the chat client of an agent, with the parameters of `ScriptedClient`."""


# The bases have the order of the framework's own clients: the loop that calls tools is around the middleware.
class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Scripted chat client of one agent.

    Args:
        agent: The agent.
        answer: The fields of its structured answer.
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
            return self._build_response_stream(self._play_stream(messages, options), response_format=wanted)
        return self._play_response(messages, options)

    async def _play_response(self, messages: Sequence[Any], options: Any) -> Any:
        reply = await self._request_reply(messages, options, stream=False)
        return ChatResponse(
            messages=[Message("assistant", to_contents(reply))],
            response_id=_new_id("resp"),
            response_format=(options or {}).get("response_format"),
        )

    async def _play_stream(self, messages: Sequence[Any], options: Any) -> AsyncIterator[Any]:
        reply = await self._request_reply(messages, options, stream=True)
        place = {"role": "assistant", "response_id": _new_id("resp"), "message_id": _new_id("msg")}
        for content in self._split_reply(reply):
            yield ChatResponseUpdate(contents=[content], **place)
        if reply.breaks:
            raise ModelDown(0, reply.how)

    def _split_reply(self, reply: Reply) -> Iterable[Any]:
        return stream_contents(reply)

    async def _request_reply(self, messages: Sequence[Any], options: Any, *, stream: bool) -> Reply:
        items = to_items(messages, self.answer)
        return await await_in_turn(
            current_world().model(items, agent=self.agent, stream=stream, tools=offered_names(options))
        )


def _new_id(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex}"


def offered_names(options: Any) -> list[str]:
    """Return the names of the tools that the model may call."""
    return [str(getattr(tool, "name", tool)) for tool in (options or {}).get("tools") or ()]


def stream_contents(reply: Reply) -> Iterable[Any]:
    """Yield a reply in the pieces in which Chat Completions streams it."""
    yield from to_hosted_results(reply.hosted)
    streamed = _CallPieces()
    for place, chunk in enumerate(reply.chunks):
        if chunk.thought is not None:
            yield _thought_piece(reply, place, chunk.thought)
        elif chunk.call is None:
            yield Content.from_text(chunk.text or "")
        elif reply.calls[chunk.call].kind != "hosted_mcp":
            yield streamed.piece(chunk, chunk.call)
    if not reply.breaks:
        # A hosted server's request is never streamed in pieces.
        yield from (to_call_content(call) for call in reply.calls if call.kind == "hosted_mcp")
        yield from to_answer_contents(reply)


def _thought_piece(reply: Reply, place: int, number: int) -> Any:
    is_last = all(later.thought != number for later in reply.chunks[place + 1 :])
    return to_thought_piece(reply.thoughts[number], reply.chunks[place].text or "", signed=is_last)


class _CallPieces:
    """The calls of one stream, by their position in the reply."""

    def __init__(self) -> None:
        self._begun: dict[int, tuple[str, str]] = {}

    def piece(self, chunk: Chunk, position: int) -> Any:
        """Return one piece of a call; without occurrences, as the provider sends it."""
        fields = {"name": chunk.tool or "", "arguments": chunk.arguments or ""}
        if not HAS_OCCURRENCES:
            return Content.from_function_call(call_id=chunk.id or "", **fields)
        occurrence, known_id = self._begun.get(position) or (f"af-call-{uuid4().hex}", "")
        self._begun[position] = (occurrence, chunk.id or known_id)
        call_id = self._begun[position][1]
        return Content.from_function_call(call_id=call_id, id=occurrence, merge_mode="append", **fields)


class ResponsesClient(ScriptedClient):
    """Scripted chat client of one agent that streams as Responses does."""

    def _split_reply(self, reply: Reply) -> Iterable[Any]:
        return stream_responses_contents(reply)


def stream_responses_contents(reply: Reply) -> Iterator[Any]:
    """Yield a reply in the pieces in which Responses streams it."""
    yield from to_hosted_results(reply.hosted)
    last = {chunk.call: number for number, chunk in enumerate(reply.chunks)}
    for number, chunk in enumerate(reply.chunks):
        if chunk.thought is not None:
            yield _thought_piece(reply, number, chunk.thought)
            continue
        if chunk.call is None:
            yield Content.from_text(chunk.text or "")
            continue
        call = reply.calls[chunk.call]
        if call.kind == "hosted_mcp":
            continue
        if chunk.arguments:
            yield _call_piece(call, chunk.arguments, "append")
        if last[chunk.call] == number and not reply.breaks:
            yield from _end_call(call)
    if not reply.breaks:
        # A hosted server's request is never streamed in pieces.
        yield from (to_call_content(call) for call in reply.calls if call.kind == "hosted_mcp")
        yield from to_answer_contents(reply)


def _end_call(call: ModelCall) -> Iterator[Any]:
    # Early releases cannot mark the whole as a replacement, so they only send it if there were no pieces.
    if HAS_OCCURRENCES:
        yield _call_piece(call, write_arguments(call.arguments), "replace")
    elif not write_arguments(call.arguments):
        yield _call_piece(call, "", "append")


def _call_piece(call: ModelCall, arguments: str, mode: str) -> Any:
    merged: Any = {"merge_mode": mode} if HAS_OCCURRENCES else {}
    return Content.from_function_call(call_id=call.id or "", name=call.tool, arguments=arguments, **merged)


def provider_client_factory(address: ModelAddress) -> ClientFactory:
    """Return what builds the framework's clients that ask the provider at *address*."""
    return _CLIENT_FACTORIES[address.protocol](address)


def _chat_factory(address: ModelAddress) -> ClientFactory:
    # The clients are distributions of their own, of which only those that are used need to be installed.
    from agent_framework.openai import OpenAIChatCompletionClient

    return _with_agent_name(OpenAIChatCompletionClient, async_client=build_openai_client(address))


def _responses_factory(address: ModelAddress) -> ClientFactory:
    from agent_framework.openai import OpenAIChatClient

    return _with_agent_name(OpenAIChatClient, async_client=build_openai_client(address))


def _messages_factory(address: ModelAddress) -> ClientFactory:
    from agent_framework.anthropic import AnthropicClient

    return _with_agent_name(AnthropicClient, anthropic_client=build_anthropic_client(address))


_CLIENT_FACTORIES: Mapping[str, Callable[[ModelAddress], ClientFactory]] = {
    "chat": _chat_factory,
    "responses": _responses_factory,
    "messages": _messages_factory,
}


def _with_agent_name(client_class: Callable[..., Any], **connection: Any) -> ClientFactory:
    def client(*, agent: str, answer: Iterable[str] = (), **options: Any) -> Any:
        return client_class(model=agent, **connection, **options)

    return client

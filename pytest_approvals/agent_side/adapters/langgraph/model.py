"""
The scripted model: a chat model class of the framework that asks the world of the running turn.

A reply becomes a message just as it does in the framework's class for Chat Completions: complete calls are parsed with
`parse_tool_call`, and those that cannot be parsed become invalid ones; a stream is made of chunks of calls.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.output_parsers.openai_tools import make_invalid_tool_call, parse_tool_call
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from ...contract import MAIN, Chunk, ModelCall, ModelDown, Reply
from ...current import world
from . import structured
from .messages import items


class ScriptedModel(BaseChatModel):
    """The model of one agent."""

    agent: str = MAIN

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """See `BaseChatModel.bind_tools`."""
        return self.bind(offered=[getattr(tool, "name", None) or str(tool) for tool in tools])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError("the world is asked asynchronously")

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        return await answered(messages, self.agent, options.get("offered", ()))

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in streamed(messages, self.agent, options.get("offered", ())):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


async def answered(messages: Sequence[BaseMessage], agent: str, offered: Sequence[str]) -> ChatResult:
    """Asks for the next reply to *messages*."""
    reply = await world().model(items(messages), agent=agent, tools=offered)
    message = _message(reply)
    if reply.answer is not None:
        message.tool_calls.append(tool_call(**structured.call(reply.answer, messages)))
    return ChatResult(generations=[ChatGeneration(message=message)])


async def streamed(
    messages: Sequence[BaseMessage], agent: str, offered: Sequence[str]
) -> AsyncIterator[ChatGenerationChunk]:
    """Asks for the next reply to *messages* and plays its chunks."""
    reply = await world().model(items(messages), agent=agent, stream=True, tools=offered)
    for chunk in reply.chunks or (Chunk(),):
        yield ChatGenerationChunk(message=_piece(chunk))
    if reply.answer is not None:
        last = structured.piece(reply.answer, messages, len(reply.calls))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(**last)]))
    if reply.breaks:
        raise ModelDown(0, reply.how)


def _message(reply: Reply) -> AIMessage:
    calls: list[Any] = []
    invalid: list[Any] = []
    for call in reply.calls:
        raw = {"id": call.id, "function": {"name": call.tool, "arguments": _text(call)}}
        try:
            calls.append(parse_tool_call(raw, return_id=True))
        except OutputParserException as error:
            invalid.append(make_invalid_tool_call(raw, str(error)))
    return AIMessage(content=reply.say or "", tool_calls=calls, invalid_tool_calls=invalid)


def _text(call: ModelCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments))


def _piece(chunk: Chunk) -> AIMessageChunk:
    if chunk.call is None:
        return AIMessageChunk(content=chunk.text or "")
    piece = tool_call_chunk(name=chunk.tool, args=chunk.arguments, id=chunk.id, index=chunk.call)
    return AIMessageChunk(content="", tool_call_chunks=[piece])

"""Models of an agent: the scripted one, and the framework's own on a provider's client.

The scripted model is a chat model class of the framework that asks the world of the running turn. A reply becomes a
message as in the framework's class for Chat Completions: complete calls are parsed with `parse_tool_call`, and those
that cannot be parsed become invalid ones; a stream consists of chunks of calls. A structured answer is a call of an
output tool, as with `ToolStrategy`, which every model that calls tools can use.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.output_parsers.openai_tools import make_invalid_tool_call, parse_tool_call
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

from ...contract import MAIN, Chunk, ModelAddress, ModelDown, Parameter, Reply, Thought
from ...kit.clients import API_KEY, build_anthropic_client, build_openai_client
from ...kit.context import current_world, run_blocking
from ...kit.tool_schema import to_annotation, write_arguments
from .messages import ANSWER, to_items

RUNNING_AGENT: ContextVar[str | None] = ContextVar("pytest_approvals_running_agent", default=None)
"""The agent whose attached graph runs, of which several may share one model; None if each has a model of its own."""


class ScriptedModel(BaseChatModel):
    """Scripted model of one agent.

    Attributes:
        on_bind: Told the tools that are bound to it.
    """

    agent: str = MAIN
    on_bind: Callable[[Sequence[Any]], None] | None = Field(default=None, exclude=True, repr=False)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """See `BaseChatModel.bind_tools`."""
        if self.on_bind is not None:
            self.on_bind(tools)
        return self.bind(offered=[getattr(tool, "name", None) or str(tool) for tool in tools])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        return run_blocking(complete_reply(messages, self.agent, options.get("offered", ())))

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        yield from run_blocking(list_chunks(messages, self.agent, options.get("offered", ())))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        return await complete_reply(messages, self.agent, options.get("offered", ()))

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in stream_reply(messages, self.agent, options.get("offered", ())):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


async def complete_reply(messages: Sequence[BaseMessage], agent: str, offered: Sequence[str]) -> ChatResult:
    """Ask for the next reply to *messages*, which *agent* gets unless an attached graph runs."""
    asking = RUNNING_AGENT.get() or agent
    reply = await current_world().model(to_items(messages), agent=asking, tools=offered)
    message = _to_message(reply)
    if reply.answer is not None:
        message.tool_calls.append(tool_call(**answer_call(reply.answer, messages)))
    return ChatResult(generations=[ChatGeneration(message=message)])


async def stream_reply(
    messages: Sequence[BaseMessage], agent: str, offered: Sequence[str]
) -> AsyncIterator[ChatGenerationChunk]:
    """Ask for the next reply as `complete_reply` does, and play its chunks."""
    asking = RUNNING_AGENT.get() or agent
    reply = await current_world().model(to_items(messages), agent=asking, stream=True, tools=offered)
    # The framework raises an error if a stream has no chunk.
    chunks = reply.chunks or (Chunk(),)
    for message in _list_block_chunks(reply) if reply.thoughts else map(_to_message_chunk, chunks):
        yield ChatGenerationChunk(message=message)
    if reply.answer is not None:
        last = answer_chunk(reply.answer, messages, len(reply.calls))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(**last)]))
    if reply.breaks:
        raise ModelDown(0, reply.how)


async def list_chunks(messages: Sequence[BaseMessage], agent: str, offered: Sequence[str]) -> list[ChatGenerationChunk]:
    """Ask for the next reply to *messages* and return its chunks."""
    return [chunk async for chunk in stream_reply(messages, agent, offered)]


def _to_message(reply: Reply) -> AIMessage:
    calls: list[Any] = []
    invalid: list[Any] = []
    for call in reply.calls:
        raw = {"id": call.id, "function": {"name": call.tool, "arguments": write_arguments(call.arguments)}}
        try:
            calls.append(parse_tool_call(raw, return_id=True))
        except OutputParserException as error:
            invalid.append(make_invalid_tool_call(raw, str(error)))
    content: Any = _build_blocks(reply) if reply.thoughts else reply.say or ""
    return AIMessage(content=content, tool_calls=calls, invalid_tool_calls=invalid)


def _build_blocks(reply: Reply) -> list[dict[str, Any]]:
    """Return the content blocks of a reply with reasoning, in the framework's own types, in their order."""
    blocks = [_reasoning_block(thought) for thought in reply.thoughts if thought.before is None]
    if reply.say is not None:
        blocks.append({"type": "text", "text": reply.say})
    for position, call in enumerate(reply.calls):
        blocks += [_reasoning_block(thought) for thought in reply.thoughts if thought.before == position]
        blocks.append(_call_block(call.id, call.tool))
    return blocks


def _reasoning_block(thought: Thought) -> dict[str, Any]:
    shown = {} if thought.text is None else {"reasoning": thought.text}
    return {"type": "reasoning", "id": thought.id, **shown, "extras": {"signature": thought.signature}}


def _call_block(call_id: str | None, tool: str | None) -> dict[str, Any]:
    """Return the block that holds the place of a call, which is among the `tool_calls` as a whole."""
    return {"type": "tool_call", "id": call_id, "name": tool, "args": {}}


def _list_block_chunks(reply: Reply) -> Iterator[AIMessageChunk]:
    """Yield the chunks of a reply with reasoning; the framework joins blocks of one index."""
    begun: dict[tuple[str, int], int] = {}
    for place, chunk in enumerate(reply.chunks):
        if chunk.call is not None:
            content: list[dict[str, Any]] = []
            key = ("call", chunk.call)
            if key not in begun:
                begun[key] = len(begun)
                call = reply.calls[chunk.call]
                content = [{**_call_block(call.id, call.tool), "index": begun[key]}]
            piece = tool_call_chunk(name=chunk.tool, args=chunk.arguments, id=chunk.id, index=chunk.call)
            yield AIMessageChunk(content=content, tool_call_chunks=[piece])
            continue
        key = ("text", 0) if chunk.thought is None else ("thought", chunk.thought)
        is_first = key not in begun
        index = begun.setdefault(key, len(begun))
        if chunk.thought is None:
            yield AIMessageChunk(content=[{"type": "text", "text": chunk.text or "", "index": index}])
            continue
        thought = reply.thoughts[chunk.thought]
        block: dict[str, Any] = {"type": "reasoning", "index": index}
        block |= {"id": thought.id} if is_first else {}
        block |= {} if thought.text is None else {"reasoning": chunk.text or ""}
        # The signature comes with the last piece, as from a provider.
        if all(later.thought != chunk.thought for later in reply.chunks[place + 1 :]):
            block["extras"] = {"signature": thought.signature}
        yield AIMessageChunk(content=[block])


def _to_message_chunk(chunk: Chunk) -> AIMessageChunk:
    if chunk.call is None:
        return AIMessageChunk(content=chunk.text or "")
    piece = tool_call_chunk(name=chunk.tool, args=chunk.arguments, id=chunk.id, index=chunk.call)
    return AIMessageChunk(content="", tool_call_chunks=[piece])


def build_response_format(fields: Mapping[str, Parameter]) -> Any:
    """Build the response format for `create_agent`: a `TypedDict`, which any store can keep."""
    from langchain.agents.structured_output import ToolStrategy

    # Before Python 3.12 pydantic only accepts those of typing_extensions.
    from typing_extensions import NotRequired, TypedDict  # noqa: UP035

    kinds: dict[str, Any] = {name: to_annotation(field) for name, field in fields.items()}
    make: Any = TypedDict
    schema = make(ANSWER, {name: kind if fields[name].required else NotRequired[kind] for name, kind in kinds.items()})
    return ToolStrategy(schema)


def answer_call(answer: Mapping[str, Any], messages: Sequence[Any]) -> dict[str, Any]:
    """Return the output tool's call for *answer*, with an id that is unique in the thread."""
    return {"id": f"answer-{len(messages)}", "name": ANSWER, "args": dict(answer)}


def answer_chunk(answer: Mapping[str, Any], messages: Sequence[Any], index: int) -> dict[str, Any]:
    """Return the same call as a stream's chunk at *index* among the calls."""
    call = answer_call(answer, messages)
    return {**call, "args": json.dumps(call["args"]), "index": index}


def build_provider_model(agent: str, address: ModelAddress, *, reasoning: bool = False) -> Any:
    """Build the framework's model of *agent* that asks the provider at *address*; *reasoning* if it reasons."""
    return (
        _build_anthropic_model(agent, address, reasoning=reasoning)
        if address.protocol == "messages"
        else _build_openai_model(agent, address, reasoning=reasoning)
    )


def _build_openai_model(agent: str, address: ModelAddress, *, reasoning: bool) -> Any:
    from langchain_openai import ChatOpenAI

    client = build_openai_client(address)
    chat = client.chat.completions
    # Without a blocking client, which is never used here, the class would create one.
    clients = {"root_async_client": client, "async_client": chat, "client": chat}
    encrypted = {"include": ["reasoning.encrypted_content"], "store": False} if reasoning else {}
    return ChatOpenAI(model=agent, use_responses_api=address.protocol == "responses", **clients, **encrypted)


def _build_anthropic_model(agent: str, address: ModelAddress, *, reasoning: bool) -> Any:
    from langchain_anthropic import ChatAnthropic

    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096} if reasoning else {}
    model = ChatAnthropic(model=agent, api_key=API_KEY, **thinking)
    # The class accepts no client; it creates one on first access unless this attribute is set.
    model._async_client = build_anthropic_client(address)
    return model

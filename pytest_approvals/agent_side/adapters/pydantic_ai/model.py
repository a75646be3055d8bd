"""Scripted model, a `FunctionModel` that asks the world of the running turn; and the framework's own model classes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic_ai import exceptions
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from ...contract import Chunk, ModelAddress, ModelCall, ModelDown, Reply
from ...kit.clients import UNREADABLE_FAILURES, build_anthropic_client, build_openai_client
from ...kit.context import current_world
from .messages import RenamedTools, to_items

MODEL_NAME = "scripted"

THINKING_PROVIDER = "function"
"""Who sends reasoning, as streams of a `FunctionModel` say: the framework sends it back to that one only."""

FrameworkNames = Mapping[tuple[str, str | None], str]
"""The framework's names of renamed tools, by their own name and their server."""


@cache
def build_scripted_model(agent: str, renamed: RenamedTools = ()) -> FunctionModel:
    """Return the scripted model of *agent*, for runs with and without streaming.

    Args:
        agent: The agent whose script answers.
        renamed: The tools that have another name in the framework than in the script.
    """
    names = {(tool, server): name for name, tool, server in renamed}

    async def ask(messages: Sequence[ModelMessage], info: AgentInfo, *, stream: bool) -> Reply:
        original = {name: tool for name, tool, _ in renamed}
        offered = [original.get(tool.name, tool.name) for tool in info.function_tools]
        items = to_items(messages, renamed, [tool.name for tool in info.output_tools])
        try:
            return await current_world().model(items, agent=agent, stream=stream, tools=offered)
        except ModelDown as down:
            raise _to_framework_error(down) from None

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        answer = await ask(messages, info, stream=False)
        return ModelResponse(parts=[*_build_parts(answer, names), *_build_answer_parts(answer, messages, info)])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        answer = await ask(messages, info, stream=True)
        # The framework refuses a stream without any item.
        for place, chunk in enumerate(answer.chunks or (Chunk(),)):
            if chunk.thought is None:
                yield _build_stream_piece(chunk, answer, names)
                continue
            is_last = all(later.thought != chunk.thought for later in answer.chunks[place + 1 :])
            yield _build_thinking_piece(chunk.thought, chunk.text, answer, signed=is_last)
        # The pieces went out before the stream breaks, as with a provider.
        if answer.breaks:
            raise _to_framework_error(ModelDown(0, answer.how))
        for part in _build_answer_parts(answer, messages, info):
            yield {
                len(answer.calls): DeltaToolCall(
                    part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id
                )
            }

    return FunctionModel(reply, stream_function=stream, model_name=MODEL_NAME)


def _to_framework_error(down: ModelDown) -> Exception:
    """Return the exception that the framework's own model classes raise in that case."""
    if down.status:
        return _to_status_error(down)
    for name in ("ModelAPIError",) if down.how in UNREADABLE_FAILURES else ("ModelConnectionError", "ModelAPIError"):
        if hasattr(exceptions, name):
            connection: Exception = getattr(exceptions, name)(MODEL_NAME, str(down))
            return connection
    return down  # early releases let the exception of the provider's client propagate


def _to_status_error(down: ModelDown) -> Exception:
    details: dict[str, Any] = {"status_code": down.status, "model_name": MODEL_NAME, "body": str(down)}
    if not hasattr(exceptions.ModelHTTPError, "for_category"):
        return exceptions.ModelHTTPError(**details)
    kinds: dict[int, Any] = {
        400: exceptions.ModelRequestRejectedError,
        429: exceptions.ModelRateLimitError,
        503: exceptions.ModelUnavailableError,
        529: exceptions.ModelOverloadedError,
    }
    return exceptions.ModelHTTPError.for_category(kinds.get(down.status, exceptions.ModelServerError), **details)


def _build_parts(reply: Reply, names: FrameworkNames) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = _build_thinking_parts(reply, None)
    if reply.say is not None:
        parts.append(TextPart(reply.say))
    for position, call in enumerate(reply.calls):
        parts += [*_build_thinking_parts(reply, position), _build_call_part(call, names)]
    return parts


def _build_thinking_parts(reply: Reply, before: int | None) -> list[ModelResponsePart]:
    return [
        ThinkingPart(thought.text or "", signature=thought.signature, provider_name=THINKING_PROVIDER)
        for thought in reply.thoughts
        if thought.before == before
    ]


def _build_answer_parts(reply: Reply, messages: Sequence[ModelMessage], info: AgentInfo) -> list[ToolCallPart]:
    """Return the call of the framework's output tool that gives a structured answer."""
    if reply.answer is None:
        return []
    return [ToolCallPart(info.output_tools[0].name, dict(reply.answer), tool_call_id=f"answer-{len(messages)}")]


def _build_call_part(call: ModelCall, names: FrameworkNames) -> ToolCallPart:
    name = names.get((call.tool, call.server), call.tool)
    arguments = call.arguments if isinstance(call.arguments, str) else dict(call.arguments)
    return ToolCallPart(name, arguments) if call.id is None else ToolCallPart(name, arguments, tool_call_id=call.id)


def _build_stream_piece(chunk: Chunk, reply: Reply, names: FrameworkNames) -> Any:
    """Return one item of a `stream_function`; an empty object stands for an empty chunk."""
    if chunk.call is None:
        return chunk.text or {}
    server = reply.calls[chunk.call].server
    name = names.get((chunk.tool, server), chunk.tool) if chunk.tool else None
    return {chunk.call: DeltaToolCall(name=name, json_args=chunk.arguments, tool_call_id=chunk.id)}


def _build_thinking_piece(number: int, text: str | None, reply: Reply, *, signed: bool) -> Any:
    """Return one item of a `stream_function` that adds to reasoning; its signature comes with the last piece."""
    signature = reply.thoughts[number].signature if signed else None
    # The framework tells parts apart by numbers, of which the calls have those from 0 on.
    return {-1 - number: DeltaThinkingPart(content=text or "", signature=signature)}


def build_provider_model(agent: str, address: ModelAddress, *, reasoning: bool = False) -> Model:
    """Return the framework's own model of an agent, on the provider's client.

    Args:
        agent: The agent, whose name is that of the model.
        address: Where the model is.
        reasoning: It reasons.
    """
    if address.protocol == "messages":
        from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
        from pydantic_ai.providers.anthropic import AnthropicProvider

        provider = AnthropicProvider(anthropic_client=build_anthropic_client(address))
        thinking = AnthropicModelSettings(anthropic_thinking={"type": "enabled", "budget_tokens": 1024})
        return AnthropicModel(agent, provider=provider, settings=thinking if reasoning else None)
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    client = OpenAIProvider(openai_client=build_openai_client(address))
    if address.protocol == "chat":
        return OpenAIChatModel(agent, provider=client)
    # The framework knows by its name that a model reasons, which is the agent's here.
    profile = OpenAIModelProfile(openai_supports_encrypted_reasoning_content=True) if reasoning else None
    return OpenAIResponsesModel(agent, provider=client, profile=profile)

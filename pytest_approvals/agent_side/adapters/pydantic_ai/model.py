"""
The scripted model: a `FunctionModel` that asks the world of the running turn.

Model, tools and policies are shared by all sessions of one agent object, so they find their world in a context
variable, which every turn sets and the framework's tasks inherit.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

from pydantic_ai import exceptions
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from pytest_approvals.agent_side.contract import Chunk, ModelCall, ModelDown, Reply, World

from .messages import items

NAME = "scripted"

RUNNING: ContextVar[World] = ContextVar("world of the running turn")


@cache
def scripted(agent: str) -> FunctionModel:
    """Gives the model of *agent*, for runs with and without streaming."""

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=_parts(await _ask(agent, messages, info, stream=False)))

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        answer = await _ask(agent, messages, info, stream=True)
        for chunk in answer.chunks or (Chunk(),):
            yield _piece(chunk)
        if answer.breaks:
            raise _broken(ModelDown(0))

    return FunctionModel(reply, stream_function=stream, model_name=NAME)


async def _ask(agent: str, messages: Sequence[ModelMessage], info: AgentInfo, *, stream: bool) -> Reply:
    offered = [tool.name for tool in info.function_tools]
    try:
        return await RUNNING.get().model(items(messages), agent=agent, stream=stream, tools=offered)
    except ModelDown as down:
        raise _broken(down) from down


def _broken(down: ModelDown) -> Exception:
    """Gives what the framework's own model classes raise in that case."""
    if down.status:
        return exceptions.ModelHTTPError(status_code=down.status, model_name=NAME, body=str(down))
    connection: type[exceptions.ModelAPIError] = getattr(exceptions, "ModelConnectionError", exceptions.ModelAPIError)
    return connection(NAME, str(down))


def _parts(reply: Reply) -> list[ModelResponsePart]:
    said: list[ModelResponsePart] = [] if reply.say is None else [TextPart(reply.say)]
    return [*said, *(_call(call) for call in reply.calls)]


def _call(call: ModelCall) -> ToolCallPart:
    arguments = call.arguments if isinstance(call.arguments, str) else dict(call.arguments)
    if call.id is None:
        return ToolCallPart(call.tool, arguments)
    return ToolCallPart(call.tool, arguments, tool_call_id=call.id)


def _piece(chunk: Chunk) -> Any:
    """Gives one item of a `stream_function`; an empty object stands for a chunk in which nothing is."""
    if chunk.call is not None:
        return {chunk.call: DeltaToolCall(name=chunk.tool, json_args=chunk.arguments, tool_call_id=chunk.id)}
    return chunk.text or {}

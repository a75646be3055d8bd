"""Models of an agent: the scripted client, and the framework's own, which create clients."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage
from pydantic import BaseModel

from ...contract import Item, ModelAddress, ModelCall, ModelDown, Reply
from ...contract.agent import World
from ...kit.clients import build_anthropic_options, build_openai_options
from ...kit.context import await_in_turn
from ...kit.tool_schema import write_arguments
from .messages import to_items

MODEL_INFO = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=True,
    family="unknown",
    structured_output=True,
    multiple_system_messages=True,
)

_NO_USAGE = RequestUsage(prompt_tokens=0, completion_tokens=0)

ExpectCalls = Callable[[Iterable[tuple[str | None, str]]], None]
"""Receives the calls of a reply that the framework passes to a tool, an id and a tool each."""


class ScriptedClient(ChatCompletionClient):
    """Scripted model of one agent.

    Args:
        world: The world of the session.
        agent: The agent.
        expect: Receives the calls of every reply.
    """

    component_type = "model"
    component_config_schema = BaseModel

    def __init__(self, world: World, agent: str, expect: ExpectCalls = lambda _: None) -> None:
        self._world = world
        self._agent = agent
        self._expect = expect

    async def create(self, messages: Sequence[Any], *, tools: Sequence[Any] = (), **_: Any) -> CreateResult:
        """See `ChatCompletionClient.create`."""
        reply = await await_in_turn(
            self._world.model(self._to_items(messages), agent=self._agent, tools=tool_names(tools))
        )
        return self._to_create_result(reply, tool_names(tools))

    async def create_stream(
        self, messages: Sequence[Any], *, tools: Sequence[Any] = (), **_: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        """See `ChatCompletionClient.create_stream`."""
        reply = await await_in_turn(
            self._world.model(self._to_items(messages), agent=self._agent, stream=True, tools=tool_names(tools))
        )
        for chunk in reply.chunks:
            if chunk.text:
                yield chunk.text
        if reply.breaks:
            raise ModelDown(0, reply.how)
        yield self._to_create_result(reply, tool_names(tools))

    def _to_items(self, messages: Sequence[Any]) -> list[Item]:
        return to_items(messages)

    def _to_create_result(self, reply: Reply, offered: Sequence[str]) -> CreateResult:
        result = _to_result(reply)
        self._expect(calls_to_offered_tools(result, offered))
        return result

    async def close(self) -> None:
        """See `ChatCompletionClient.close`."""

    def actual_usage(self) -> RequestUsage:
        """See `ChatCompletionClient.actual_usage`."""
        return _NO_USAGE

    def total_usage(self) -> RequestUsage:
        """See `ChatCompletionClient.total_usage`."""
        return _NO_USAGE

    def count_tokens(self, messages: Sequence[Any], **_: Any) -> int:
        """See `ChatCompletionClient.count_tokens`."""
        return 0

    def remaining_tokens(self, messages: Sequence[Any], **_: Any) -> int:
        """See `ChatCompletionClient.remaining_tokens`."""
        return 1_000_000

    @property
    def capabilities(self) -> Any:
        """See `ChatCompletionClient.capabilities`."""
        return MODEL_INFO

    @property
    def model_info(self) -> ModelInfo:
        """See `ChatCompletionClient.model_info`."""
        return MODEL_INFO


def _to_result(reply: Reply) -> CreateResult:
    text = json.dumps(dict(reply.answer)) if reply.answer is not None else reply.say
    if not reply.calls:
        return CreateResult(finish_reason="stop", content=text or "", usage=_NO_USAGE, cached=False)
    calls = [
        FunctionCall(id=_required_id(call), name=call.tool, arguments=write_arguments(call.arguments))
        for call in reply.calls
    ]
    return CreateResult(
        finish_reason="function_calls", content=calls, usage=_NO_USAGE, cached=False, thought=text or None
    )


def calls_to_offered_tools(result: CreateResult, offered: Sequence[str]) -> list[tuple[str | None, str]]:
    """Return the calls that the framework passes to one of the *offered* tools.

    Each is an id and a tool.
    """
    # The framework itself answers the other calls with an error, without asking a workbench.
    calls = result.content if isinstance(result.content, list) else ()
    return [(call.id, call.name) for call in calls if call.name in offered and is_json(call.arguments)]


def tool_names(tools: Iterable[Any]) -> list[str]:
    """Return the names of the tools that a model is offered."""
    return [tool["name"] if isinstance(tool, Mapping) else tool.name for tool in tools]


def _required_id(call: ModelCall) -> str:
    assert call.id is not None, "`FunctionCall.id` is a text"
    return call.id


def is_json(arguments: str) -> bool:
    """Return whether the framework can read arguments."""
    try:
        json.loads(arguments)
    except ValueError:
        return False
    return True


def build_model(
    world: World, agent: str, address: ModelAddress | None, expect: ExpectCalls = lambda _: None
) -> ChatCompletionClient:
    """Build the model of *agent*.

    Args:
        world: The world of the session.
        agent: The agent.
        address: The address of the provider; with None the world is asked.
        expect: Receives the calls of every reply.
    """
    if address is None:
        return ScriptedClient(world, agent, expect)
    if address.protocol == "messages":
        from autogen_ext.models.anthropic import AnthropicChatCompletionClient

        return _with_call_reports(AnthropicChatCompletionClient, expect)(
            model=agent, model_info=MODEL_INFO, **build_anthropic_options(address)
        )
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    return _with_call_reports(OpenAIChatCompletionClient, expect)(
        model=agent, model_info=MODEL_INFO, **build_openai_options(address)
    )


def _with_call_reports(kind: Any, expect: ExpectCalls) -> Any:
    """Return a subclass of *kind* that reports the calls of its replies."""

    class Telling(kind):
        async def create(self, messages: Any, *, tools: Sequence[Any] = (), **more: Any) -> CreateResult:
            result: CreateResult = await super().create(messages, tools=tools, **more)
            expect(calls_to_offered_tools(result, tool_names(tools)))
            return result

        async def create_stream(
            self, messages: Any, *, tools: Sequence[Any] = (), **more: Any
        ) -> AsyncGenerator[str | CreateResult, None]:
            async for piece in super().create_stream(messages, tools=tools, **more):
                if isinstance(piece, CreateResult):
                    expect(calls_to_offered_tools(piece, tool_names(tools)))
                yield piece

    return Telling

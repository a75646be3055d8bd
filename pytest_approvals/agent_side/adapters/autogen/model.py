"""The scripted model: a client class of the framework that asks the world."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage
from pydantic import BaseModel

from ...contract import Item, ModelCall, ModelDown, Reply, World
from .messages import items

INFO = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=True,
    family="unknown",
    structured_output=True,
    multiple_system_messages=True,
)

_NOTHING = RequestUsage(prompt_tokens=0, completion_tokens=0)

Expect = Callable[[Iterable[tuple[str | None, str]]], None]
"""Is told the calls of a reply, an id and a tool each, that the framework will hand to a tool."""


class ScriptedClient(ChatCompletionClient):
    """
    The model of one agent.

    Arguments:
        expect: Is told the calls of every reply.
    """

    component_type = "model"
    component_config_schema = BaseModel

    def __init__(self, world: World, agent: str, expect: Expect = lambda _: None) -> None:
        self._world = world
        self._agent = agent
        self._expect = expect

    async def create(self, messages: Sequence[Any], *, tools: Sequence[Any] = (), **_: Any) -> CreateResult:
        """See `ChatCompletionClient.create`."""
        reply = await self._world.model(self._items(messages), agent=self._agent, tools=names_of(tools))
        return self._result(reply, names_of(tools))

    async def create_stream(
        self, messages: Sequence[Any], *, tools: Sequence[Any] = (), **_: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        """See `ChatCompletionClient.create_stream`."""
        reply = await self._world.model(self._items(messages), agent=self._agent, stream=True, tools=names_of(tools))
        for chunk in reply.chunks:
            if chunk.text:
                yield chunk.text
        if reply.breaks:
            raise ModelDown(0, reply.how)
        yield self._result(reply, names_of(tools))

    def _items(self, messages: Sequence[Any]) -> list[Item]:
        return items(messages)

    def _result(self, reply: Reply, offered: Sequence[str]) -> CreateResult:
        result = _made(reply)
        self._expect(reaching_a_tool(result, offered))
        return result

    async def close(self) -> None:
        """See `ChatCompletionClient.close`."""

    def actual_usage(self) -> RequestUsage:
        """See `ChatCompletionClient.actual_usage`."""
        return _NOTHING

    def total_usage(self) -> RequestUsage:
        """See `ChatCompletionClient.total_usage`."""
        return _NOTHING

    def count_tokens(self, messages: Sequence[Any], **_: Any) -> int:
        """See `ChatCompletionClient.count_tokens`."""
        return 0

    def remaining_tokens(self, messages: Sequence[Any], **_: Any) -> int:
        """See `ChatCompletionClient.remaining_tokens`."""
        return 1_000_000

    @property
    def capabilities(self) -> Any:
        """See `ChatCompletionClient.capabilities`."""
        return INFO

    @property
    def model_info(self) -> ModelInfo:
        """See `ChatCompletionClient.model_info`."""
        return INFO


def _made(reply: Reply) -> CreateResult:
    said = json.dumps(dict(reply.answer)) if reply.answer is not None else reply.say
    if not reply.calls:
        return CreateResult(finish_reason="stop", content=said or "", usage=_NOTHING, cached=False)
    calls = [FunctionCall(id=_id(call), name=call.tool, arguments=text(call.arguments)) for call in reply.calls]
    return CreateResult(
        finish_reason="function_calls", content=calls, usage=_NOTHING, cached=False, thought=said or None
    )


def reaching_a_tool(result: CreateResult, offered: Sequence[str]) -> list[tuple[str | None, str]]:
    """Gives the calls of a reply that the framework will hand to one of the *offered* tools, an id and a tool each."""
    calls = result.content if isinstance(result.content, list) else ()
    return [(call.id, call.name) for call in calls if call.name in offered and is_json(call.arguments)]


def names_of(tools: Iterable[Any]) -> list[str]:
    """Gives the names of what a model is offered."""
    return [tool["name"] if isinstance(tool, Mapping) else tool.name for tool in tools]


def _id(call: ModelCall) -> str:
    assert call.id is not None, "`FunctionCall.id` is a text"
    return call.id


def text(arguments: Mapping[str, Any] | str) -> str:
    """Gives arguments as the model sends them."""
    return arguments if isinstance(arguments, str) else json.dumps(dict(arguments))


def is_json(arguments: str) -> bool:
    """Says whether the framework can read arguments."""
    try:
        json.loads(arguments)
    except ValueError:
        return False
    return True

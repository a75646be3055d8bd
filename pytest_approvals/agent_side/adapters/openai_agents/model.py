"""Models of agents: the scripted one as a model class of the SDK, or the SDK's own classes on a provider's client."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, partial
from typing import Any

from agents import HostedMCPTool, Model, ModelResponse, OpenAIChatCompletionsModel, OpenAIResponsesModel, Tool, Usage
from agents.handoffs import Handoff
from agents.items import TResponseStreamEvent

from ...contract import MAIN, Blueprint, Item, ModelAddress, ModelDown, Reply
from ...kit.clients import build_openai_client, to_openai_error
from ...kit.context import current_world
from ...kit.tool_schema import is_object_text
from .messages import to_items
from .responses import build_output_items, build_stream_events


class ScriptedModel(Model):
    """Model of the Responses API that asks the world of the running turn for the next reply.

    Args:
        agent: The agent whose model it is.
        anew: The provider numbers its items anew in every conversation, so that two conversations have equal ids.
    """

    def __init__(self, agent: str, *, anew: bool = False) -> None:
        self.agent = agent
        self.anew = anew

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,
        model_settings: Any,
        tools: Any,
        output_schema: Any,
        handoffs: Any,
        tracing: Any,
        **conversation: Any,
    ) -> ModelResponse:
        """See `agents.Model.get_response`."""
        reply = await self._reply(input, output_schema, list_offered_tools(tools, handoffs), stream=False)
        key = self._key(input)
        return ModelResponse(output=build_output_items(reply, key), usage=Usage(requests=1), response_id=f"resp_{key}")

    async def stream_response(
        self,
        system_instructions: Any,
        input: Any,
        model_settings: Any,
        tools: Any,
        output_schema: Any,
        handoffs: Any,
        tracing: Any,
        **conversation: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """See `agents.Model.stream_response`."""
        reply = await self._reply(input, output_schema, list_offered_tools(tools, handoffs), stream=True)
        key = self._key(input)
        with _raising_client_errors():
            for event in build_stream_events(reply, build_output_items(reply, key), key):
                yield event

    async def _reply(self, input: Any, output_schema: Any, tools: Sequence[str], *, stream: bool) -> Reply:
        items = to_items(input)
        if output_schema is not None:
            items = [_mark_answer(item) for item in items]
        with _raising_client_errors():
            return await current_world().model(items, agent=self.agent, stream=stream, tools=tools)

    def _key(self, input: Any) -> str:
        return str(len(input)) if self.anew else hash_input(input)


@contextmanager
def _raising_client_errors() -> Iterator[None]:
    try:
        yield
    except ModelDown as down:
        raise to_openai_error(down) from None


def _mark_answer(item: Item) -> Item:
    # An agent that ends with an object says nothing else in the form of one.
    return replace(item, kind="other") if item.kind == "say" and is_object_text(item.text) else item


def list_offered_tools(tools: Iterable[Tool], handoffs: Iterable[Handoff[Any, Any]]) -> list[str]:
    """Return the names of everything that the model may call."""
    names: list[str] = []
    for tool in tools:
        allowed = tool.tool_config.get("allowed_tools") if isinstance(tool, HostedMCPTool) else None
        names += [str(name) for name in allowed] if isinstance(allowed, list) else [tool.name]
    return names + [handoff.tool_name for handoff in handoffs]


def hash_input(input: Any) -> str:
    """Return a key for the reply to *input*.

    It is the same in every run and different for every input of one conversation, as a provider's ids are.
    """
    return hashlib.sha256(json.dumps(input, sort_keys=True, default=str).encode()).hexdigest()[:12]


ModelFactory = Callable[[str], Model]
"""A function that makes the model of an agent."""

ASKING_AGENT: ContextVar[str] = ContextVar("pytest_approvals_asking", default=MAIN)
"""The agent that asks, if one model object serves several."""


def build_model_factory(blueprint: Blueprint) -> ModelFactory:
    """Return the function that makes the models of the agents that *blueprint* describes."""
    if blueprint.model is not None:
        return _build_provider_factory(blueprint.model, reasoning=blueprint.reasoning)
    return partial(ScriptedModel, anew=blueprint.options.get("item_ids") == "anew")


def _build_provider_factory(address: ModelAddress, *, reasoning: bool) -> ModelFactory:
    client = build_openai_client(address)
    if address.protocol != "chat":
        return partial(OpenAIResponsesModel, openai_client=client)
    # By default the SDK sends `reasoning_content` back to models of a certain name only, which is the agent's here.
    options: dict[str, Any] = {"should_replay_reasoning_content": _replay_always} if reasoning else {}
    return partial(OpenAIChatCompletionsModel, openai_client=client, **options)


def _replay_always(context: Any) -> bool:
    return True


class DispatchingModel(Model):
    """The model of all agents of an attachment: it asks the own model of the agent in `ASKING_AGENT`."""

    def __init__(self, model: ModelFactory) -> None:
        self._model = cache(model)

    async def get_response(self, *positional: Any, **named: Any) -> ModelResponse:
        """See `agents.Model.get_response`."""
        # The SDK does not tell a model which agent asks; the input filter of the run has noted it.
        return await self._model(ASKING_AGENT.get()).get_response(*positional, **named)

    def stream_response(self, *positional: Any, **named: Any) -> AsyncIterator[TResponseStreamEvent]:
        """See `agents.Model.stream_response`."""
        return self._model(ASKING_AGENT.get()).stream_response(*positional, **named)

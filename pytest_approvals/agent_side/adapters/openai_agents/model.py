"""The scripted model as a model class of the SDK."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from agents import HostedMCPTool, Model, ModelResponse, Tool, Usage
from agents.handoffs import Handoff
from agents.items import TResponseStreamEvent

from ...clients import openai_error
from ...contract import Item, ModelDown, Reply
from ...current import world
from .items import from_responses, parsed
from .output import output_items
from .stream import events


class ScriptedModel(Model):
    """
    Asks the world of the running turn for the next reply, as a model of the Responses API.

    Arguments:
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
        reply = await self._reply(input, output_schema, offered(tools, handoffs), stream=False)
        key = self._key(input)
        return ModelResponse(output=output_items(reply, key), usage=Usage(requests=1), response_id=f"resp_{key}")

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
        reply = await self._reply(input, output_schema, offered(tools, handoffs), stream=True)
        key = self._key(input)
        with _failing_as_the_client():
            for event in events(reply, output_items(reply, key), key):
                yield event

    async def _reply(self, given: Any, output_schema: Any, tools: Sequence[str], *, stream: bool) -> Reply:
        items = from_responses(given)
        if output_schema is not None:
            items = [_as_answer(item) for item in items]
        with _failing_as_the_client():
            return await world().model(items, agent=self.agent, stream=stream, tools=tools)

    def _key(self, given: Any) -> str:
        return str(len(given)) if self.anew else key_of(given)


@contextmanager
def _failing_as_the_client() -> Iterator[None]:
    try:
        yield
    except ModelDown as down:
        raise openai_error(down) from None


def _as_answer(item: Item) -> Item:
    """An agent that ends with an object says nothing else in the form of one."""
    return replace(item, kind="other") if item.kind == "say" and isinstance(parsed(item.text), dict) else item


def offered(tools: Iterable[Tool], handoffs: Iterable[Handoff[Any, Any]]) -> list[str]:
    """Gives the names of everything that the model may call."""
    names: list[str] = []
    for tool in tools:
        allowed = tool.tool_config.get("allowed_tools") if isinstance(tool, HostedMCPTool) else None
        names += [str(name) for name in allowed] if isinstance(allowed, list) else [tool.name]
    return names + [handoff.tool_name for handoff in handoffs]


def key_of(given: Any) -> str:
    """
    Gives a key for the reply to *given*, the same in every run and different for every input of one conversation, as a
    provider's ids are.
    """
    return hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()[:12]

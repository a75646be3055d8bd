"""The scripted model as a model class of the SDK."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from agents import HostedMCPTool, Model, ModelResponse, Tool, Usage
from agents.handoffs import Handoff
from agents.items import TResponseStreamEvent
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai.types.responses import ResponseOutputItem

from ...clients import openai_error
from ...contract import MAIN, Item, ModelDown, Reply
from ...current import world
from .items import from_chat, from_responses, parsed
from .output import output_items
from .stream import events

ASKING: ContextVar[str] = ContextVar("pytest_approvals_asking", default=MAIN)
"""The agent that asks, where one model object serves several."""


class ScriptedModel(Model):
    """
    Asks the world of the running turn for the next reply, as a model of the Responses API.

    Arguments:
        agent: The agent whose model it is; None for all agents of an attachment, which `ASKING` then tells apart.
        anew: The provider numbers its items anew in every conversation, so that two conversations have equal ids.
    """

    def __init__(self, agent: str | None, *, anew: bool = False) -> None:
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
        return ModelResponse(
            output=self._output(reply, key), usage=Usage(requests=1), response_id=self._response_id(key)
        )

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
            for event in events(reply, self._output(reply, key), key):
                yield event

    async def _reply(self, given: Any, output_schema: Any, tools: Sequence[str], *, stream: bool) -> Reply:
        agent = self.agent if self.agent is not None else ASKING.get()
        items = self._items(given)
        if output_schema is not None:
            items = [_as_answer(item) for item in items]
        with _failing_as_the_client():
            return await world().model(items, agent=agent, stream=stream, tools=tools)

    def _key(self, given: Any) -> str:
        return str(len(given)) if self.anew else key_of(given)

    def _items(self, given: Any) -> list[Item]:
        return from_responses(given)

    def _output(self, reply: Reply, key: str) -> list[ResponseOutputItem]:
        return output_items(reply, key)

    def _response_id(self, key: str) -> str | None:
        return f"resp_{key}"


class ScriptedChatModel(ScriptedModel):
    """
    Asks in the form in which the SDK's own class for Chat Completions sends the same input, and answers with items that
    have no ids, as that class does.
    """

    def _items(self, given: Any) -> list[Item]:
        from agents.models.chatcmpl_converter import Converter

        return from_chat([dict(message) for message in Converter.items_to_messages(given)])

    def _output(self, reply: Reply, key: str) -> list[ResponseOutputItem]:
        return output_items(reply, key, FAKE_RESPONSES_ID)

    def _response_id(self, key: str) -> str | None:
        return None


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

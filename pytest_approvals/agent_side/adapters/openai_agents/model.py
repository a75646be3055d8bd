"""The scripted model as a model class of the SDK."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from agents import HostedMCPTool, Model, ModelResponse, Tool, Usage
from agents.handoffs import Handoff
from agents.items import TResponseStreamEvent

from ...contract import MAIN, Item, Reply
from .current import world
from .items import from_chat, from_responses
from .output import output_items
from .stream import events

ASKING: ContextVar[str] = ContextVar("pytest_approvals_asking", default=MAIN)
"""The agent that asks, where one model object serves several."""


class ScriptedModel(Model):
    """
    Asks the world of the running turn for the next reply, as a model of the Responses API.

    Arguments:
        agent: The agent whose model it is; None for all agents of an attachment, which `ASKING` then tells apart.
    """

    def __init__(self, agent: str | None) -> None:
        self.agent = agent

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
        reply = await self._reply(input, offered(tools, handoffs), stream=False)
        key = key_of(input)
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
        reply = await self._reply(input, offered(tools, handoffs), stream=True)
        key = key_of(input)
        for event in events(reply, output_items(reply, key), key):
            yield event

    async def _reply(self, given: Any, tools: Sequence[str], *, stream: bool) -> Reply:
        agent = self.agent if self.agent is not None else ASKING.get()
        return await world().model(self._items(given), agent=agent, stream=stream, tools=tools)

    def _items(self, given: Any) -> list[Item]:
        return from_responses(given)


class ScriptedChatModel(ScriptedModel):
    """Asks in the form in which the SDK's own class for Chat Completions sends the same input."""

    def _items(self, given: Any) -> list[Item]:
        from agents.models.chatcmpl_converter import Converter

        return from_chat([dict(message) for message in Converter.items_to_messages(given)])


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

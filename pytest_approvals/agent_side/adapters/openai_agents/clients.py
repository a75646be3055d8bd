"""The models of agents: scripted ones, or the SDK's own classes on the provider's client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from functools import cache, partial
from typing import Any

from agents import Model, ModelResponse, OpenAIChatCompletionsModel, OpenAIResponsesModel
from agents.items import TResponseStreamEvent

from ...clients import openai_client
from ...contract import MAIN, Blueprint, ModelAddress
from .model import ScriptedModel

ModelOf = Callable[[str], Model]
"""Makes the model of an agent."""

ASKING: ContextVar[str] = ContextVar("pytest_approvals_asking", default=MAIN)
"""The agent that asks, where one model object serves several."""


def models(blueprint: Blueprint) -> ModelOf:
    """Gives what makes the models of the agents that *blueprint* describes."""
    if blueprint.model is not None:
        return _reached(blueprint.model)
    return partial(ScriptedModel, anew=blueprint.options.get("item_ids") == "anew")


def _reached(address: ModelAddress) -> ModelOf:
    made = OpenAIChatCompletionsModel if address.protocol == "chat" else OpenAIResponsesModel
    return partial(made, openai_client=openai_client(address))


class ModelOfAll(Model):
    """The model of all agents of an attachment: whoever asks, as `ASKING` tells, is answered by its own."""

    def __init__(self, model: ModelOf) -> None:
        self._model = cache(model)

    async def get_response(self, *given: Any, **named: Any) -> ModelResponse:
        """See `agents.Model.get_response`."""
        return await self._model(ASKING.get()).get_response(*given, **named)

    def stream_response(self, *given: Any, **named: Any) -> AsyncIterator[TResponseStreamEvent]:
        """See `agents.Model.stream_response`."""
        return self._model(ASKING.get()).stream_response(*given, **named)

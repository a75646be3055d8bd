"""The models of agents: scripted ones, or the SDK's own classes on the provider's client."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agents import Model, OpenAIChatCompletionsModel, OpenAIResponsesModel

from ...clients import openai_client
from ...contract import Blueprint, ModelAddress
from .model import ScriptedChatModel, ScriptedModel

ModelOf = Callable[[str], Model]
"""Makes the model of an agent."""


def models(blueprint: Blueprint, *, chat: bool) -> ModelOf:
    """
    Gives what makes the models of the agents that *blueprint* describes.

    Arguments:
        chat: Scripted models answer as Chat Completions does, else as Responses does.
    """
    if blueprint.model is not None:
        return _reached(blueprint.model)
    return partial(ScriptedChatModel if chat else ScriptedModel, anew=blueprint.options.get("item_ids") == "anew")


def _reached(address: ModelAddress) -> ModelOf:
    made = OpenAIChatCompletionsModel if address.protocol == "chat" else OpenAIResponsesModel
    return partial(made, openai_client=openai_client(address))

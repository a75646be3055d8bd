"""The framework's own model classes, on the clients of providers."""

from __future__ import annotations

import os
from importlib.util import find_spec

from google.adk.models import BaseLlm

from ...clients import anthropic_client, openai_client
from ...contract import ModelAddress


def reached(agent: str, address: ModelAddress) -> BaseLlm:
    """
    Gives the model of *agent*, which is asked at *address*.

    Over `chat` it is `LiteLlm` where its package is installed, which takes seconds to import.
    """
    if address.protocol == "messages":
        from google.adk.models.anthropic_llm import AnthropicLlm

        return AnthropicLlm(model=agent, client=anthropic_client(address))
    if address.protocol == "chat" and find_spec("litellm") is not None:
        return _by_litellm(agent, address)
    from google.adk.integrations.openai import OpenAILlm, OpenAIResponsesLlm

    made = OpenAILlm if address.protocol == "chat" else OpenAIResponsesLlm
    return made(model=agent, client=openai_client(address))


def _by_litellm(agent: str, address: ModelAddress) -> BaseLlm:
    # On its import the package would look up in the network what providers charge.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from google.adk.models.lite_llm import LiteLlm

    return LiteLlm(model=f"openai/{agent}", client=openai_client(address))

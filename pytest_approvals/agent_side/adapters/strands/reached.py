"""The framework's own model classes, which make the clients of providers themselves."""

from __future__ import annotations

from strands.models import Model

from ...clients import anthropic_options, openai_options
from ...contract import ModelAddress

MOST_TOKENS = 4096
"""How long a reply may be: `AnthropicModel` wants to be told."""


def reached(agent: str, address: ModelAddress) -> Model:
    """Gives the model of *agent*, which is asked at *address*."""
    if address.protocol == "messages":
        from strands.models.anthropic import AnthropicModel

        return AnthropicModel(client_args=anthropic_options(address), model_id=agent, max_tokens=MOST_TOKENS)
    if address.protocol == "chat":
        from strands.models.openai import OpenAIModel

        return OpenAIModel(client_args=openai_options(address), model_id=agent)
    from strands.models.openai_responses import OpenAIResponsesModel

    return OpenAIResponsesModel(client_args=openai_options(address), model_id=agent)

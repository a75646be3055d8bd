"""The framework's own model classes, on the clients of providers."""

from __future__ import annotations

from agno.models.base import Model

from ...clients import anthropic_client, openai_client
from ...contract import ModelAddress


def reached(agent: str, address: ModelAddress) -> Model:
    """Gives the model of *agent*, which is asked at *address*."""
    if address.protocol == "messages":
        from agno.models.anthropic import Claude

        return Claude(id=agent, async_client=anthropic_client(address))
    if address.protocol == "responses":
        from agno.models.openai import OpenAIResponses

        return OpenAIResponses(id=agent, async_client=openai_client(address))
    from agno.models.openai import OpenAIChat

    return OpenAIChat(id=agent, async_client=openai_client(address))

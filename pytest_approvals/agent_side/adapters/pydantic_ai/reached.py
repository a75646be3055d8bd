"""The framework's own model classes, on the clients of providers."""

from __future__ import annotations

from pydantic_ai.models import Model

from pytest_approvals.agent_side.clients import anthropic_client, openai_client
from pytest_approvals.agent_side.contract import ModelAddress


def reached(agent: str, address: ModelAddress) -> Model:
    """Gives the model of *agent*, which is asked at *address*."""
    if address.protocol == "messages":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(agent, provider=AnthropicProvider(anthropic_client=anthropic_client(address)))
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(openai_client=openai_client(address))
    made = OpenAIChatModel if address.protocol == "chat" else OpenAIResponsesModel
    return made(agent, provider=provider)

"""The framework's own chat model classes, on the clients of providers."""

from __future__ import annotations

from typing import Any

from ...clients import KEY, anthropic_client, openai_client
from ...contract import ModelAddress


def reached(agent: str, address: ModelAddress) -> Any:
    """Gives the model of *agent*, which is asked at *address*."""
    return _of_anthropic(agent, address) if address.protocol == "messages" else _of_openai(agent, address)


def _of_openai(agent: str, address: ModelAddress) -> Any:
    from langchain_openai import ChatOpenAI

    client = openai_client(address)
    chat = client.chat.completions
    # Without a blocking client, which nothing asks here, the class makes one.
    clients = {"root_async_client": client, "async_client": chat, "client": chat}
    return ChatOpenAI(model=agent, use_responses_api=address.protocol == "responses", **clients)


def _of_anthropic(agent: str, address: ModelAddress) -> Any:
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model=agent, api_key=KEY)
    # The class takes no client, and makes its own where it is first asked for one.
    model._async_client = anthropic_client(address)
    return model

"""The framework's own chat clients, on the clients of providers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...clients import anthropic_client, openai_client
from ...contract import ModelAddress

if TYPE_CHECKING:
    from .crew import ClientOf


def reached(address: ModelAddress) -> ClientOf:
    """Gives what makes the clients that ask the model at *address*."""
    return _CLIENTS[address.protocol](address)


def _chat(address: ModelAddress) -> ClientOf:
    from agent_framework.openai import OpenAIChatCompletionClient

    return _named_like_the_agent(OpenAIChatCompletionClient, async_client=openai_client(address))


def _responses(address: ModelAddress) -> ClientOf:
    from agent_framework.openai import OpenAIChatClient

    return _named_like_the_agent(OpenAIChatClient, async_client=openai_client(address))


def _messages(address: ModelAddress) -> ClientOf:
    from agent_framework.anthropic import AnthropicClient

    return _named_like_the_agent(AnthropicClient, anthropic_client=anthropic_client(address))


_CLIENTS: Mapping[str, Callable[[ModelAddress], ClientOf]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _messages,
}


def _named_like_the_agent(made: Callable[..., Any], **connected: Any) -> ClientOf:
    def client(*, agent: str, answer: Iterable[str] = (), **options: Any) -> Any:
        return made(model=agent, **connected, **options)

    return client

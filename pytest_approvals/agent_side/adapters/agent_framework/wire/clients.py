"""The framework's clients for OpenAI, and the tools of the provider's servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

from ....contract import ToolSpec
from .chat import Chat
from .provider import Provider, connected
from .responses import Responses


def chat_client(*, agent: str, answer: Iterable[str] = (), **options: Any) -> Any:
    """Gives the client for Chat Completions."""
    provider = Provider(agent=agent, answer=answer, speaks=Chat())
    return OpenAIChatCompletionClient(model="scripted", async_client=connected(provider), **options)


def responses_client(*, agent: str, answer: Iterable[str] = (), **options: Any) -> Any:
    """Gives the client for Responses."""
    provider = Provider(agent=agent, answer=answer, speaks=Responses())
    return OpenAIChatClient(model="scripted", async_client=connected(provider), **options)


def hosted_tools(specs: Sequence[ToolSpec]) -> list[Any]:
    """Gives the servers that the provider calls for an agent with these tools."""
    servers: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        if spec.kind == "hosted_mcp":
            servers.setdefault(str(spec.server), []).append(spec)
    return [_server(name, own) for name, own in servers.items()]


def _server(name: str, specs: Sequence[ToolSpec]) -> Any:
    gated = [spec.name for spec in specs if spec.approval != "never"]
    free = [spec.name for spec in specs if spec.approval == "never"]
    return OpenAIChatClient.get_mcp_tool(
        name=name,
        url=f"http://{name}.invalid/mcp",
        approval_mode={"always_require_approval": gated, "never_require_approval": free},
        allowed_tools=[spec.name for spec in specs],
    )

"""What a server hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....contract import Blueprint, Reply
from ..crew import Crew, made_crew
from ..model import ScriptedClient
from ..requests import server_of


class HostedClient(ScriptedClient):
    """
    The chat client of an agent behind a server.

    The server puts its own approval requests into the history of a conversation. As the framework's clients for Chat
    Completions and Responses do, it keeps those from the provider, which never asked them.
    """

    async def _reply(self, messages: Sequence[Any], options: Any, *, stream: bool) -> Reply:
        return await super()._reply([_without_local_approvals(one) for one in messages], options, stream=stream)


class _Sent:
    """A message as it is sent: what stands in it for the provider."""

    def __init__(self, role: Any, contents: list[Any]) -> None:
        self.role = role
        self.contents = contents


def _without_local_approvals(message: Any) -> _Sent:
    return _Sent(message.role, [one for one in message.contents if not _is_local_approval(one)])


def _is_local_approval(content: Any) -> bool:
    if content.type not in ("function_approval_request", "function_approval_response"):
        return False
    return content.function_call is None or server_of(content.function_call) is None


def hosted_crew(blueprint: Blueprint) -> Crew:
    """Makes the agents that *blueprint* describes."""
    return made_crew(blueprint, client=HostedClient)


def hosted_workflow(blueprint: Blueprint) -> Callable[[], Any]:
    """Gives what makes an agent of a workflow whose only step is the main agent."""
    from agent_framework import WorkflowBuilder

    def made() -> Any:
        return WorkflowBuilder(name="hosted", start_executor=hosted_crew(blueprint).main).build().as_agent()

    return made

"""What a server hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....contract import Blueprint
from ..crew import ClientOf, Crew, made_crew


def hosted_crew(blueprint: Blueprint, client: ClientOf) -> Crew:
    """Makes the agents that *blueprint* describes, without a history of their own: the server has it."""
    return made_crew(blueprint, client=client, context_providers=None)


def hosted_workflow(blueprint: Blueprint, client: ClientOf) -> Callable[[], Any]:
    """Gives what makes an agent of a workflow whose only step is the main agent."""
    from agent_framework import WorkflowBuilder

    def made() -> Any:
        return (
            WorkflowBuilder(name="hosted", start_executor=made_crew(blueprint, client=client).main).build().as_agent()
        )

    return made

"""What a server hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....contract import Blueprint
from ..attach import attached_crew
from ..crew import ClientOf, Crew, made_crew


def hosted_crew(blueprint: Blueprint, client: ClientOf) -> Crew:
    """Makes the agents that *blueprint* describes, without a history of their own: the server has it."""
    if blueprint.attachment is not None:
        return attached_crew(blueprint.attachment, client)
    return made_crew(blueprint, client=client, context_providers=None)


def hosted_workflow(blueprint: Blueprint, client: ClientOf) -> Callable[[], Any]:
    """Gives what makes an agent of a workflow whose only step is the main agent."""
    from agent_framework import WorkflowBuilder

    def made() -> Any:
        main = made_crew(blueprint, client=client).main
        return WorkflowBuilder(name="hosted", start_executor=main).build().as_agent()

    return made

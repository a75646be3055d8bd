"""Agents that hand the conversation over: a `Swarm`, which ends with the answer of whoever has it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from autogen_agentchat.conditions import TextMessageTermination
from autogen_agentchat.teams import Swarm

from .approval import ToolApprovalRequestEvent, ToolApprovalResultEvent


def swarm(agents: Sequence[Any]) -> Swarm:
    """Gives the team of *agents*; the first one begins."""
    answered = reduce(or_, [TextMessageTermination(source=agent.name) for agent in agents])
    return Swarm(
        list(agents),
        termination_condition=answered,
        custom_message_types=[ToolApprovalRequestEvent, ToolApprovalResultEvent],
    )

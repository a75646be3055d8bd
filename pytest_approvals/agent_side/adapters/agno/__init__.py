"""Agno (`agno`).

A tool that is marked `requires_confirmation` pauses the run whose model calls it. The output of the run lists its
requirements. Each is confirmed or rejected, and the run is continued with them: by its id, from the database that
stores it, or with the output itself if the caller keeps that. As documented, a run that failed is continued by its id,
without requirements, and a new message is a new run, whatever is pending.

Flavours: by default, one agent is run; in `team` the leader of a team, whose members are the agents that its calls run.
"""

from __future__ import annotations

from ...contract.agent import Agent
from .session import AgentTeamSession, SingleAgentSession

__all__ = ["FLAVOURS", "AgentTeamSession", "SingleAgentSession"]

FLAVOURS: dict[str, type[Agent]] = {
    "": SingleAgentSession,
    "agent": SingleAgentSession,
    "team": AgentTeamSession,
}

"""
Agno (`agno`).

A tool that is marked `requires_confirmation` pauses the run whose model calls it. The output of the run lists its
requirements; each is confirmed or rejected, and the run is continued with them: by its id, out of the database that
keeps it, or with the output itself where that is what the caller keeps. As the documentation has it, a run that failed
is continued by its id, without requirements, and a new message is a new run, whatever waits.

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

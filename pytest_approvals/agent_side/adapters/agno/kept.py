"""Sessions as a database keeps them, and outputs of runs that the caller keeps as text."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import isawaitable
from typing import Any


async def stored(db: Any, main: Any, session: str) -> Any:
    """Gives the session as the database has it; None where it has none."""
    from agno.db.base import SessionType

    kind = SessionType.TEAM if hasattr(main, "members") else SessionType.AGENT
    found = db.get_session(session_id=session, session_type=kind)
    return await found if isawaitable(found) else found


def outputs(main: Any, dumped: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Gives the outputs of runs by their ids; of one that was dumped several times, the last one."""
    kind = _kinds(main)[0]
    read = [kind.from_dict(one) for one in dumped]
    return {run.run_id: run for run in read}


def session_of(main: Any, session: str, runs: Iterable[Any]) -> Any:
    """Gives the session with these runs, for the database of another agent object."""
    _, kind, owner = _kinds(main)
    return kind(session_id=session, runs=list(runs), **{owner: main.id})


def _kinds(main: Any) -> tuple[Any, Any, str]:
    from agno.agent import Agent
    from agno.run.agent import RunOutput
    from agno.run.team import TeamRunOutput
    from agno.session import AgentSession, TeamSession

    if isinstance(main, Agent):
        return RunOutput, AgentSession, "agent_id"
    return TeamRunOutput, TeamSession, "team_id"

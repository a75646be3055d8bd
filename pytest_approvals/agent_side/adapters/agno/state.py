"""The databases that keep sessions and their runs: in memory, or the framework's own for SQLite and PostgreSQL.

Sessions as a database keeps them, and outputs of runs that the caller keeps as text.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from ...contract import Blueprint
from .metadata import POSTGRES


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A database, and how it is closed."""

    db: Any
    close: Callable[[], Awaitable[None]]


def open_store(blueprint: Blueprint) -> Store:
    """Opens the database that a serialize mode asks for."""
    make = _STORE_OPENERS.get(blueprint.serialize)
    return open_memory_store() if make is None else _with_close(make(blueprint))


def open_memory_store() -> Store:
    """Gives an empty database in memory."""
    from agno.db.in_memory import InMemoryDb

    return Store(db=InMemoryDb(), close=_close_nothing)


def borrow_store(db: Any) -> Store:
    """Gives a person's own database, which is theirs to close."""
    return Store(db=db, close=_close_nothing)


async def _close_nothing() -> None:
    """There is nothing to close."""


def _with_close(db: Any) -> Store:
    async def close() -> None:
        # Before they could be closed, databases had nothing but their engine.
        closed = getattr(db, "close", None) or db.db_engine.dispose
        waiting = closed()
        if isawaitable(waiting):
            await waiting

    return Store(db=db, close=close)


def _file_options(blueprint: Blueprint) -> dict[str, str]:
    return {"db_file": os.path.join(blueprint.directory, "agno.db")} if blueprint.directory else {"db_url": "sqlite://"}


def _open_sqlite(blueprint: Blueprint) -> Any:
    from agno.db.sqlite import SqliteDb

    return SqliteDb(**_file_options(blueprint))


def _open_async_sqlite(blueprint: Blueprint) -> Any:
    from agno.db.sqlite import AsyncSqliteDb

    return AsyncSqliteDb(**_file_options(blueprint))


def _open_postgres(blueprint: Blueprint) -> Any:
    from agno.db.postgres import PostgresDb

    address = str(blueprint.options.get("postgres") or POSTGRES)
    return PostgresDb(db_url=address.replace("postgresql://", "postgresql+psycopg://", 1))


_STORE_OPENERS: dict[str, Callable[[Blueprint], Any]] = {
    "native.sqlite": _open_sqlite,
    "native.async_sqlite": _open_async_sqlite,
    "native.postgres": _open_postgres,
}


async def read_session(db: Any, main: Any, session: str) -> Any:
    """Gives the session as the database has it; None where it has none."""
    from agno.db.base import SessionType

    kind = SessionType.TEAM if hasattr(main, "members") else SessionType.AGENT
    found = db.get_session(session_id=session, session_type=kind)
    return await found if isawaitable(found) else found


def read_outputs(main: Any, dumped: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Gives the outputs of runs by their ids; of one that was dumped several times, the last one."""
    kind = _state_classes(main)[0]
    read = [kind.from_dict(one) for one in dumped]
    return {run.run_id: run for run in read}


def build_session(main: Any, session: str, runs: Iterable[Any]) -> Any:
    """Gives the session with these runs, for the database of another agent object."""
    _, kind, owner = _state_classes(main)
    return kind(session_id=session, runs=list(runs), **{owner: main.id})


def _state_classes(main: Any) -> tuple[Any, Any, str]:
    from agno.agent import Agent
    from agno.run.agent import RunOutput
    from agno.run.team import TeamRunOutput
    from agno.session import AgentSession, TeamSession

    if isinstance(main, Agent):
        return RunOutput, AgentSession, "agent_id"
    return TeamRunOutput, TeamSession, "team_id"

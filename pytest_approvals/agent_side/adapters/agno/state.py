"""Databases of sessions and their runs, and outputs of runs that the caller keeps.

The databases are in memory, or the framework's own for SQLite and PostgreSQL.
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
    """Open the database that a serialize mode asks for."""
    make = _STORE_OPENERS.get(blueprint.serialize)
    return open_memory_store() if make is None else _with_close(make(blueprint))


def open_memory_store() -> Store:
    """Open an empty database in memory."""
    from agno.db.in_memory import InMemoryDb

    return Store(db=InMemoryDb(), close=_close_nothing)


def borrow_store(db: Any) -> Store:
    """Return the user's own database, which stays open."""
    return Store(db=db, close=_close_nothing)


async def _close_nothing() -> None:
    """Close nothing: the database is in memory, or the user's own."""


def _with_close(db: Any) -> Store:
    async def close() -> None:
        # In releases without `close`, a database only has its engine.
        close_db = getattr(db, "close", None) or db.db_engine.dispose
        result = close_db()
        if isawaitable(result):
            await result

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
    # Without the name of a driver, SQLAlchemy would look for psycopg2.
    return PostgresDb(db_url=address.replace("postgresql://", "postgresql+psycopg://", 1))


_STORE_OPENERS: dict[str, Callable[[Blueprint], Any]] = {
    "native.sqlite": _open_sqlite,
    "native.async_sqlite": _open_async_sqlite,
    "native.postgres": _open_postgres,
}


async def read_session(db: Any, main: Any, session: str) -> Any:
    """Return the stored session; None if there is none."""
    from agno.db.base import SessionType

    kind = SessionType.TEAM if hasattr(main, "members") else SessionType.AGENT
    stored = db.get_session(session_id=session, session_type=kind)
    return await stored if isawaitable(stored) else stored


def read_outputs(main: Any, dumped_runs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the outputs of runs by their ids; of several with one id, the last."""
    kind = _state_classes(main)[0]
    runs = [kind.from_dict(dumped_run) for dumped_run in dumped_runs]
    return {run.run_id: run for run in runs}


def build_session(main: Any, session: str, runs: Iterable[Any]) -> Any:
    """Build a session with these runs, for the database of another agent object."""
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

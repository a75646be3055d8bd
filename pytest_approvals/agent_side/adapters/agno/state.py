"""Databases of sessions and their runs, and outputs of runs that the caller keeps.

The databases are in memory, or the framework's own for SQLite and PostgreSQL.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any
from uuid import uuid4

from ...contract import Blueprint
from ...kit.store_check import check_store
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

    # Without the name of a driver, SQLAlchemy would look for psycopg2.
    return PostgresDb(db_url=_server_address(blueprint).replace("postgresql://", "postgresql+psycopg://", 1))


def _server_address(blueprint: Blueprint) -> str:
    return str(blueprint.options.get("postgres") or POSTGRES)


async def check_server(blueprint: Blueprint, db: Any) -> None:
    """Check a database on a server; the framework would log that it fails, and go on without it.

    Raises:
        Unsupported: It cannot be used.
    """
    from agno.session import AgentSession

    name, now = f"pytest-approvals-{uuid4().hex}", int(time.time())
    session = AgentSession(session_id=name, agent_id="pytest-approvals", runs=[], created_at=now, updated_at=now)

    def use() -> None:
        db.upsert_session(session)
        db.delete_session(name)

    await check_store(blueprint.serialize, _server_address(blueprint), lambda: asyncio.to_thread(use))


async def explain_lost_run(blueprint: Blueprint, db: Any) -> None:
    """Look at a database in which a run was not found: the framework logs that it could not store it.

    Raises:
        Unsupported: The database cannot be used.
    """
    engine = getattr(db, "db_engine", None)
    if engine is None:
        return

    async def look() -> None:
        if hasattr(engine, "sync_engine"):
            async with engine.connect() as connection:
                await connection.run_sync(_look_at_tables)
        else:
            with engine.connect() as connection:
                _look_at_tables(connection)

    await check_store(blueprint.serialize, str(engine.url), look)


def _look_at_tables(connection: Any) -> None:
    from sqlalchemy import inspect

    if connection.dialect.name == "sqlite":
        # The framework has waited for a lock already.
        connection.exec_driver_sql("PRAGMA busy_timeout = 100")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    inspect(connection).get_table_names()
    connection.rollback()
    # Nobody else gets this connection, whose patience is another one.
    connection.invalidate()


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

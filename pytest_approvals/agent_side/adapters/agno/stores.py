"""The databases that keep sessions and their runs: in memory, or the framework's own for SQLite and PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from ...contract import Blueprint
from .facts import POSTGRES


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A database, and how it is closed."""

    db: Any
    close: Callable[[], Awaitable[None]]


def opened(blueprint: Blueprint) -> Store:
    """Opens the database that a serialize mode asks for."""
    make = _STORES.get(blueprint.serialize)
    return in_memory() if make is None else _closing(make(blueprint))


def in_memory() -> Store:
    """Gives an empty database in memory."""
    from agno.db.in_memory import InMemoryDb

    return Store(db=InMemoryDb(), close=_nothing)


def borrowed(db: Any) -> Store:
    """Gives a person's own database, which is theirs to close."""
    return Store(db=db, close=_nothing)


async def _nothing() -> None:
    """There is nothing to close."""


def _closing(db: Any) -> Store:
    async def close() -> None:
        # Before they could be closed, databases had nothing but their engine.
        closed = getattr(db, "close", None) or db.db_engine.dispose
        waiting = closed()
        if isawaitable(waiting):
            await waiting

    return Store(db=db, close=close)


def _file(blueprint: Blueprint) -> dict[str, str]:
    return {"db_file": os.path.join(blueprint.directory, "agno.db")} if blueprint.directory else {"db_url": "sqlite://"}


def _sqlite(blueprint: Blueprint) -> Any:
    from agno.db.sqlite import SqliteDb

    return SqliteDb(**_file(blueprint))


def _async_sqlite(blueprint: Blueprint) -> Any:
    from agno.db.sqlite import AsyncSqliteDb

    return AsyncSqliteDb(**_file(blueprint))


def _postgres(blueprint: Blueprint) -> Any:
    from agno.db.postgres import PostgresDb

    address = str(blueprint.options.get("postgres") or POSTGRES)
    return PostgresDb(db_url=address.replace("postgresql://", "postgresql+psycopg://", 1))


_STORES: dict[str, Callable[[Blueprint], Any]] = {
    "native.sqlite": _sqlite,
    "native.async_sqlite": _async_sqlite,
    "native.postgres": _postgres,
}

"""The checkpointers: in memory, or the framework's own for SQLite and PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ...contract import Blueprint
from .facts import POSTGRES


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A checkpointer, and how it is closed."""

    saver: Any
    close: Callable[[], Awaitable[None]]


async def opened(blueprint: Blueprint) -> Opened:
    """Opens the checkpointer that a serialize mode asks for."""
    if blueprint.serialize == "native.sqlite":
        return await _sqlite(os.path.join(blueprint.directory, "checkpoints.db") if blueprint.directory else ":memory:")
    if blueprint.serialize == "native.postgres":
        return await _postgres(str(blueprint.options.get("postgres") or POSTGRES))
    return in_memory()


def in_memory() -> Opened:
    """Gives an empty checkpointer in memory."""
    from langgraph.checkpoint.memory import InMemorySaver

    return Opened(saver=InMemorySaver(), close=_nothing)


def copied(other: Opened) -> Opened:
    """Gives a deep copy of a checkpointer in memory, and of all that is in it."""
    return Opened(saver=deepcopy(other.saver), close=_nothing)


async def _nothing() -> None:
    """There is nothing to close."""


async def _sqlite(path: str) -> Opened:
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    connection = await aiosqlite.connect(path)
    return Opened(saver=AsyncSqliteSaver(connection), close=connection.close)


async def _postgres(address: str) -> Opened:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg import AsyncConnection
    from psycopg.rows import dict_row

    connection: Any = await AsyncConnection.connect(address, autocommit=True, prepare_threshold=0, row_factory=dict_row)
    saver = AsyncPostgresSaver(connection)
    await saver.setup()
    return Opened(saver=saver, close=connection.close)

"""Checkpointers: in memory, or the framework's own for SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...contract import Blueprint
from ...kit.feature_detection import has_source
from .metadata import POSTGRES

CAN_WAIT_FOR_CHECKPOINTS = has_source("langgraph", "types.py", "Durability = ")
"""Whether a run can be told to write each checkpoint before the next step begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSaver:
    """A checkpointer, and how it is closed."""

    saver: Any
    close: Callable[[], Awaitable[None]]


async def open_saver(blueprint: Blueprint) -> OpenedSaver:
    """Open the checkpointer that a serialize mode asks for."""
    if blueprint.serialize == "native.sqlite":
        return await _open_sqlite(
            os.path.join(blueprint.directory, "checkpoints.db") if blueprint.directory else ":memory:"
        )
    if blueprint.serialize == "native.postgres":
        return await _open_postgres(str(blueprint.options.get("postgres") or POSTGRES))
    return open_memory_saver()


def open_memory_saver() -> OpenedSaver:
    """Open an empty checkpointer in memory."""
    from langgraph.checkpoint.memory import InMemorySaver

    return OpenedSaver(saver=InMemorySaver(), close=_close_nothing)


_BLOCKING = {"aget_tuple": "get_tuple", "aput": "put", "aput_writes": "put_writes", "adelete_thread": "delete_thread"}


async def enable_async(saver: Any) -> None:
    """Let a user's blocking checkpointer, such as `SqliteSaver`, be awaited; its own methods run in threads."""
    from langgraph.checkpoint.memory import InMemorySaver

    # It keeps a trace of each thread that it is asked for, and needs no threads.
    if isinstance(saver, InMemorySaver):
        return
    try:
        await saver.aget_tuple({"configurable": {"thread_id": "pytest-approvals"}})
    except NotImplementedError:
        for name, blocking in _BLOCKING.items():
            setattr(saver, name, partial(asyncio.to_thread, getattr(saver, blocking)))

        async def list_tuples(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            for found in await asyncio.to_thread(lambda: list(saver.list(*args, **kwargs))):
                yield found

        saver.alist = list_tuples


def copy_saver(other: OpenedSaver) -> OpenedSaver:
    """Return a deep copy of a checkpointer in memory, with all its content."""
    return OpenedSaver(saver=deepcopy(other.saver), close=_close_nothing)


async def _close_nothing() -> None:
    """Close nothing: a checkpointer in memory holds nothing open."""


async def _open_sqlite(path: str) -> OpenedSaver:
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    connection = await aiosqlite.connect(path)
    return OpenedSaver(saver=AsyncSqliteSaver(connection), close=connection.close)


async def _open_postgres(address: str) -> OpenedSaver:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg import AsyncConnection
    from psycopg.rows import dict_row

    # These are the options of `from_conn_string`, which is a context manager and would close the connection.
    connection: Any = await AsyncConnection.connect(address, autocommit=True, prepare_threshold=0, row_factory=dict_row)
    saver = AsyncPostgresSaver(connection)
    await saver.setup()
    return OpenedSaver(saver=saver, close=connection.close)

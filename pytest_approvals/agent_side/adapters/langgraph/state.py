"""Checkpointers: in memory, or the framework's own for SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

from ...contract import Blueprint
from ...kit.feature_detection import has_source
from ...kit.store_check import check_store
from .metadata import POSTGRES

CAN_WAIT_FOR_CHECKPOINTS = has_source("langgraph", "types.py", "Durability = ")
"""Whether a run can be told to write each checkpoint before the next step begins."""


DURABILITIES = ("sync", "async", "exit")
"""When a run writes its checkpoints: before the next step begins, meanwhile, or in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """What a scenario says of the store, under `options`.

    Attributes:
        durability: One of `DURABILITIES`. By default `sync`: what a crash leaves behind of checkpoints that are written
            meanwhile depends on which of the two is faster.
        blocking: Whether the checkpointer is one for `invoke` and `stream`, which then run the graph.
        delay: Seconds that each write takes, as on a server that is far away.
    """

    durability: str = "sync"
    blocking: bool = False
    delay: float = 0.0

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> StoreOptions:
        """Read the options of a blueprint.

        Raises:
            ValueError: A value cannot be used.
        """
        durability = options.get("durability", "sync")
        if durability not in DURABILITIES:
            raise ValueError(f"Invalid option durability {durability!r}: expected {', '.join(DURABILITIES)}")
        checkpointer = options.get("checkpointer", "")
        if checkpointer not in ("", "blocking"):
            raise ValueError(f"Invalid option checkpointer {checkpointer!r}: expected blocking")
        delay = options.get("write_delay", 0)
        if isinstance(delay, bool) or not isinstance(delay, (int, float)) or not 0 <= delay <= _LONGEST_DELAY:
            raise ValueError(f"Invalid option write_delay {delay!r}: expected seconds, {_LONGEST_DELAY} at most")
        return cls(durability=durability, blocking=bool(checkpointer), delay=delay)


_LONGEST_DELAY = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSaver:
    """A checkpointer, and how it is closed."""

    saver: Any
    close: Callable[[], Awaitable[None]]

    async def read(self, config: dict[str, Any]) -> Any:
        """Read the newest checkpoint of a thread, as the checkpointer does it."""
        try:
            return await self.saver.aget_tuple(config)
        except NotImplementedError:
            return await asyncio.to_thread(self.saver.get_tuple, config)


StoreOpener = Callable[[Blueprint], Awaitable[OpenedSaver]]
"""Opens a checkpointer on a store."""


async def open_saver(blueprint: Blueprint, options: StoreOptions) -> OpenedSaver:
    """Open the checkpointer that a serialize mode asks for."""
    open_store = _STORE_OPENERS.get((blueprint.serialize, options.blocking))
    if open_store is None:
        return open_memory_saver()
    if blueprint.serialize == "native.postgres":
        opened = await _open_checked(blueprint, open_store)
    else:
        opened = await open_store(blueprint)
    if options.blocking:
        await enable_async(opened.saver)
    if options.delay:
        _delay_writes(opened.saver, options.delay)
    return opened


async def _open_checked(blueprint: Blueprint, open_store: StoreOpener) -> OpenedSaver:
    """Open a store that is not the run's own, which shows whether it can be used."""
    opened: list[OpenedSaver] = []

    async def probe() -> None:
        opened.append(await open_store(blueprint))
        thread = {"configurable": {"thread_id": "pytest-approvals"}}
        await opened[-1].read(thread)

    try:
        await check_store(blueprint.serialize, _server_address(blueprint), probe)
    except BaseException:
        for one in opened:
            await one.close()
        raise
    return opened[-1]


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


async def _open_sqlite(blueprint: Blueprint) -> OpenedSaver:
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    connection = await aiosqlite.connect(_database_file(blueprint))
    return OpenedSaver(saver=AsyncSqliteSaver(connection), close=connection.close)


async def _open_blocking_sqlite(blueprint: Blueprint) -> OpenedSaver:
    from langgraph.checkpoint.sqlite import SqliteSaver

    # These are the options of `from_conn_string`, which is a context manager and would close the connection.
    connection = sqlite3.connect(_database_file(blueprint), check_same_thread=False)
    return OpenedSaver(saver=SqliteSaver(connection), close=partial(asyncio.to_thread, connection.close))


def _database_file(blueprint: Blueprint) -> str:
    return os.path.join(blueprint.directory, "checkpoints.db") if blueprint.directory else ":memory:"


async def _open_postgres(blueprint: Blueprint) -> OpenedSaver:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg import AsyncConnection
    from psycopg.rows import dict_row

    # These are the options of `from_conn_string`, as above.
    connection: Any = await AsyncConnection.connect(
        _server_address(blueprint), autocommit=True, prepare_threshold=0, row_factory=dict_row
    )
    saver = AsyncPostgresSaver(connection)
    try:
        await saver.setup()
    except BaseException:
        await connection.close()
        raise
    return OpenedSaver(saver=saver, close=connection.close)


async def _open_blocking_postgres(blueprint: Blueprint) -> OpenedSaver:
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg import Connection
    from psycopg.rows import dict_row

    connection: Any = await asyncio.to_thread(
        Connection.connect, _server_address(blueprint), autocommit=True, prepare_threshold=0, row_factory=dict_row
    )
    saver = PostgresSaver(connection)
    try:
        await asyncio.to_thread(saver.setup)
    except BaseException:
        connection.close()
        raise
    return OpenedSaver(saver=saver, close=partial(asyncio.to_thread, connection.close))


def _server_address(blueprint: Blueprint) -> str:
    return str(blueprint.options.get("postgres") or POSTGRES)


_STORE_OPENERS: Mapping[tuple[str, bool], StoreOpener] = {
    ("native.sqlite", False): _open_sqlite,
    ("native.sqlite", True): _open_blocking_sqlite,
    ("native.postgres", False): _open_postgres,
    ("native.postgres", True): _open_blocking_postgres,
}
"""By serialize mode, and whether the checkpointer blocks."""


def _delay_writes(saver: Any, seconds: float) -> None:
    """Let each write of a checkpointer take *seconds* longer."""

    def delay(write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @wraps(write)
        async def write_later(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(seconds)
            return await write(*args, **kwargs)

        return write_later

    def delay_blocking(write: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(write)
        def write_later(*args: Any, **kwargs: Any) -> Any:
            time.sleep(seconds)
            return write(*args, **kwargs)

        return write_later

    for name in ("put", "put_writes"):
        # Set on the object, whose class is what a graph looks at.
        setattr(saver, name, delay_blocking(getattr(saver, name)))
        setattr(saver, f"a{name}", delay(getattr(saver, f"a{name}")))

"""The session services: in memory, or the framework's own for SQLite and databases."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ...contract import Blueprint
from .facts import POSTGRES


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A session service, and how it is closed."""

    service: Any
    close: Callable[[], Awaitable[None]]


def opened(blueprint: Blueprint) -> Opened:
    """Opens the session service that a serialize mode asks for."""
    if blueprint.serialize == "native.sqlite":
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        return _closing(SqliteSessionService(_file(blueprint)))
    if blueprint.serialize == "native.database":
        return _database(f"sqlite+aiosqlite:///{_file(blueprint)}")
    if blueprint.serialize == "native.postgres":
        return _database(_asynchronous(str(blueprint.options.get("postgres") or POSTGRES)))
    from google.adk.sessions import InMemorySessionService

    return _closing(InMemorySessionService())


def _file(blueprint: Blueprint) -> str:
    return os.path.join(blueprint.directory, "sessions.db")


def _database(address: str) -> Opened:
    from google.adk.sessions import database_session_service as module

    if not hasattr(module, "create_async_engine"):
        # Before 1.20 it took the address of a driver that blocks.
        address = address.replace("+aiosqlite", "").replace("+asyncpg", "")
    return _closing(module.DatabaseSessionService(address))


def _asynchronous(address: str) -> str:
    """Names the driver that SQLAlchemy shall use, where the address names none."""
    scheme, separator, rest = address.partition("://")
    return f"postgresql+asyncpg{separator}{rest}" if scheme in ("postgres", "postgresql") else address


def _closing(service: Any) -> Opened:
    return Opened(service=service, close=getattr(service, "close", nothing))


async def nothing() -> None:
    """There is nothing to close."""

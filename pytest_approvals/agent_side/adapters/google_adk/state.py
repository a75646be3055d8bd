"""Session services: in memory, or the framework's own for SQLite and databases."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ...contract import Blueprint
from ...kit.store_check import check_store
from .metadata import POSTGRES


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedService:
    """A session service, and how it is closed."""

    service: Any
    close: Callable[[], Awaitable[None]]


def open_service(blueprint: Blueprint) -> OpenedService:
    """Open the session service that a serialize mode asks for."""
    if blueprint.serialize == "native.sqlite":
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        return _with_close(SqliteSessionService(_database_file(blueprint)))
    if blueprint.serialize == "native.database":
        return _open_database(f"sqlite+aiosqlite:///{_database_file(blueprint)}")
    if blueprint.serialize == "native.postgres":
        return _open_database(_with_async_driver(_server_address(blueprint)))
    from google.adk.sessions import InMemorySessionService

    return _with_close(InMemorySessionService())


def _database_file(blueprint: Blueprint) -> str:
    return os.path.join(blueprint.directory, "sessions.db")


def _open_database(address: str) -> OpenedService:
    from google.adk.sessions import database_session_service as module

    if not hasattr(module, "create_async_engine"):
        # Before 1.20 it took the address of a driver that blocks.
        address = address.replace("+aiosqlite", "").replace("+asyncpg", "")
    return _with_close(module.DatabaseSessionService(address))


async def check_service(blueprint: Blueprint, service: Any) -> None:
    """Check a session service whose database is not the run's own.

    Raises:
        Unsupported: It cannot be used.
    """
    if blueprint.serialize != "native.postgres":
        return

    async def probe() -> None:
        place = {"app_name": "pytest-approvals", "user_id": "pytest-approvals", "session_id": uuid4().hex}
        await service.create_session(**place)
        await service.delete_session(**place)

    await check_store(blueprint.serialize, _server_address(blueprint), probe)


def _server_address(blueprint: Blueprint) -> str:
    return str(blueprint.options.get("postgres") or POSTGRES)


def _with_async_driver(address: str) -> str:
    """Add SQLAlchemy's asynchronous driver to an address that names none."""
    scheme, separator, rest = address.partition("://")
    return f"postgresql+asyncpg{separator}{rest}" if scheme in ("postgres", "postgresql") else address


def _with_close(service: Any) -> OpenedService:
    return OpenedService(service=service, close=getattr(service, "close", close_nothing))


async def close_nothing() -> None:
    """Close nothing: the service is in memory, or the user's own."""

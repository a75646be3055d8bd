"""Check of a durable store that is not the run's own, before an agent is judged on it.

A framework may log that its store fails and go on without it, so that the agent would be blamed for what is missing
later. Whatever cannot be used is therefore named with the reason and a remedy before the first turn.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from ..contract.exceptions import ContractError, Unsupported

_OTHER_RELEASE = "it is of another release of the framework: migrate it, or use a new one"
_NO_STORE = "it is damaged, or no store of the framework: use another one"
_NO_TABLES = "its tables are missing: initialise it as the framework documents, as by `setup()`"
_NO_SERVER = "the server does not answer: start it, or name another one"

_REMEDIES = (
    (r"is locked|lock timeout|could not obtain lock", "another process holds it: end that one, or use another store"),
    (r"read-?only", "it can only be read: use a store that can be written to"),
    (r"(?:role|user) .* does not exist|authentication failed|no password", "the server refuses the user: correct it"),
    (r"database .* does not exist", "create the database, or name another one"),
    (r"no such column|has no column|invalid schema|column .* does not exist", _OTHER_RELEASE),
    (r"is not a database|malformed|is encrypted", _NO_STORE),
    (r"no such table|(?:relation|schema) .* does not exist", _NO_TABLES),
    (r"permission denied|must be owner", "its user may not do that: grant it, or use another user"),
    (r"unable to open", "it cannot be opened: see whether its folder exists and can be written to"),
    (r"connection refused|connection failed|connect call failed|timeout expired|could not connect", _NO_SERVER),
    (r"is full|no space left|could not extend", "there is no space left: make some, or use another store"),
)
"""By what the message of a database says, the remedy; the first that fits."""

_MADE_MEANWHILE = re.compile(r'unique constraint "pg_(?:type_typname_nsp|class_relname_nsp|namespace_nspname)_index"')
"""What PostgreSQL says of a table, a type or a schema that another process creates at the same time.

The indexes are those of its catalogs (https://www.postgresql.org/docs/current/catalogs.html).
"""

_SECONDS = 15.0


def find_store_remedy(message: str) -> str:
    """Return what to do about a store that failed with *message*; empty if that is not known.

    >>> find_store_remedy("database is locked")
    'another process holds it: end that one, or use another store'
    >>> find_store_remedy("no such column: checkpoint_id")
    'it is of another release of the framework: migrate it, or use a new one'
    >>> find_store_remedy("the call is unknown")
    ''
    """
    found = (remedy for pattern, remedy in _REMEDIES if re.search(pattern, message, re.IGNORECASE))
    return next(found, "")


def is_database_error(kind: str) -> bool:
    """Return whether the name of an exception's type is that of a database: of DB-API, SQLAlchemy, or PostgreSQL.

    >>> [kind for kind in ("OperationalError", "UndefinedTable", "ValueError") if is_database_error(kind)]
    ['OperationalError', 'UndefinedTable']
    """
    return _DATABASE_ERROR.search(kind) is not None


_DATABASE_ERROR = re.compile(
    r"^(?:(?:Operational|Database|Programming|Internal|DBAPI|MigrationRequired)Error|Undefined(?:Table|Column)(?:Error)?|"
    r"ReadOnlySqlTransaction|ReadOnlySQLTransactionError|InsufficientPrivilege(?:Error)?|LockNotAvailable(?:Error)?|"
    r"ConnectionTimeout|InvalidCatalogName(?:Error)?)$"
)


async def check_store(capability: str, address: str, probe: Callable[[], Awaitable[object]]) -> None:
    """Use a store once, and name it if that fails.

    It is used again if another process has made its tables meanwhile: PostgreSQL refuses the second of two that create
    a table `IF NOT EXISTS` at the same time.

    Args:
        capability: The serialize mode, as `native.postgres`.
        address: The address of its server or file, which may hold a password.
        probe: Opens the store and writes to it, as a turn would.

    Raises:
        Unsupported: The store cannot be used.
    """
    try:
        await asyncio.wait_for(_use(probe), _SECONDS)
    except (ContractError, asyncio.CancelledError):
        raise
    except TimeoutError:
        why = f"it does not answer within {_SECONDS:g} s; another process may hold its tables, or the server is stopped"
    except Exception as error:
        raise name_broken_store(capability, address, error) from error
    else:
        return
    raise Unsupported(capability, f"the store at {_hide_password(address)} cannot be used: {why}")


async def _use(probe: Callable[[], Awaitable[object]]) -> None:
    try:
        await probe()
    except Exception as error:
        if not _MADE_MEANWHILE.search(str(error)):
            raise
        await probe()


def name_broken_store(capability: str, address: str, error: Exception) -> Unsupported:
    """Return what to raise for a store that failed with *error*.

    Args:
        capability: The serialize mode, as `native.file`.
        address: The address of its server, file or folder, which may hold a password; a path begins with `file:///`.
        error: What was raised.
    """
    return Unsupported(capability, f"the store at {_hide_password(address)} cannot be used: {_explain(error)}")


def _explain(error: Exception) -> str:
    message = " ".join(str(error).partition("\n")[0].split())
    remedy = find_store_remedy(message)
    return f"{type(error).__name__}: {message}" + (f"; {remedy}" if remedy else "")


def _hide_password(address: str) -> str:
    try:
        parts = urlsplit(address)
        host = f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or ""
    except ValueError:
        return "the given address"
    # The address of a file has no host: `sqlite:////folder/file`.
    return f"{host}{parts.path}" if host else parts.path.removeprefix("/") or "the given address"

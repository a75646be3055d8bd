"""PostgreSQL databases of frameworks: what they store, as documents of the formats that readers know.

    agent_sessions, agent_messages                        `SQLAlchemySession` of OpenAI Agents
    checkpoints, checkpoint_blobs, checkpoint_writes      `PostgresSaver` of LangGraph
    a table with session_id, runs, session_type           `PostgresDb` of Agno, whose tables have any name
    a table with session_id, run_id, run_data             the same since schema 3
    sessions, events                                      `DatabaseSessionService` of Google ADK

They are looked for in all schemas. The connection can only read, and each conversation is read when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from pytest_approvals.conversations.histories.store_documents import (
    Snapshot,
    StoredDocument,
    join_subgraphs,
    load_value,
    name_threads,
    parse_json,
)
from pytest_approvals.errors import HistoryError, UsageError
from pytest_approvals.errors.printable import shorten

if TYPE_CHECKING:
    from psycopg import Connection

    Server = Connection[tuple[Any, ...]]

SCHEMES = ("postgresql", "postgres")
"""The schemes of addresses, with or without a driver: `postgresql+asyncpg`."""

_READ_ONLY = "-c default_transaction_read_only=on -c lock_timeout={} -c statement_timeout=60000"
LOCK_MILLISECONDS = 2000
"""How long a lock is waited for."""

_CONNECT_SECONDS = 5

_Tables = Mapping[str, frozenset[str]]
"""The columns of the tables of one schema."""


def is_server(path: str) -> bool:
    """Return whether a path is the address of a database."""
    return path.partition("://")[0].partition("+")[0] in SCHEMES and "://" in path


def hide_password(url: str) -> str:
    """Return an address without the password and the options in it.

    >>> hide_password("postgresql+asyncpg://ann:secret@db:5432/shop?sslmode=require")
    'postgresql://ann@db:5432/shop'
    """
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme.partition("+")[0], f"{user.partition(':')[0]}{at}{host}", parts.path, "", ""))


def read_server(url: str) -> Iterator[StoredDocument]:
    """Yield the conversations of a database.

    Raises:
        UsageError: The driver is missing.
        HistoryError: It cannot be reached or read, or is the store of no known framework.
    """
    try:
        import psycopg
    except ImportError:
        raise UsageError("psycopg is missing; install it with `pip install 'pytest-approvals[postgres]'`") from None

    try:
        with closing(connect(url)) as server:
            stores = list(_find_stores(server))
            if not stores:
                raise HistoryError("a database of no known store: expected one of OpenAI Agents, LangGraph, ADK, Agno")
            for documents in stores:
                yield from documents
    except psycopg.errors.LockNotAvailable:
        raise HistoryError("the database cannot be read: locked: another process migrates it; try again") from None
    except psycopg.Error as error:
        why = shorten(" ".join(str(error).split()))
        raise HistoryError(f"the database cannot be read: {why or type(error).__name__}") from error


def connect(url: str) -> Server:
    """Return a connection that cannot write."""
    import psycopg

    scheme, _, rest = url.partition("://")
    url = f"{scheme.partition('+')[0]}://{rest}"
    return psycopg.connect(url, options=_READ_ONLY.format(LOCK_MILLISECONDS), connect_timeout=_CONNECT_SECONDS)


def _find_stores(server: Server) -> Iterator[Iterator[StoredDocument]]:
    """Yield the documents of each store in each schema."""
    for schema, tables in _list_tables(server).items():
        if {"agent_sessions", "agent_messages"} <= set(tables):
            yield _read_openai_agents(server, schema)
        if {"checkpoints", "checkpoint_writes"} <= set(tables):
            if "checkpoint_blobs" not in tables:
                raise HistoryError("half migrated: there is no table checkpoint_blobs beside checkpoints")
            yield _read_langgraph(server, schema)
        if {"sessions", "events"} <= set(tables) and "app_name" in tables["sessions"]:
            yield _read_google_adk(server, schema, tables["events"])
        for table, columns in tables.items():
            if {"session_id", "run_id", "run_data"} <= columns:
                yield _read_agno_runs(server, schema, table)
            elif {"session_id", "session_type", "runs"} <= columns:
                yield _read_agno_sessions(server, schema, table)


def _list_tables(server: Server) -> dict[str, _Tables]:
    rows = server.execute(
        "select table_schema, table_name, array_agg(column_name::text) from information_schema.columns"
        " where table_schema not in ('pg_catalog', 'information_schema') group by 1, 2 order by 1, 2"
    ).fetchall()
    found: dict[str, dict[str, frozenset[str]]] = {}
    for schema, table, columns in rows:
        found.setdefault(schema, {})[table] = frozenset(columns)
    return dict(found)


def _select(server: Server, query: str, names: Sequence[str], values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a query in which `{}` stands for a name of a schema or table."""
    from psycopg import sql

    built = sql.SQL(query).format(*map(sql.Identifier, names))
    return server.execute(built, tuple(values)).fetchall()


def _to_value(value: Any, where: str) -> Any:
    """Return what a column of JSON holds: the driver parses `json` and `jsonb`, and not text."""
    return parse_json(value, where) if isinstance(value, str) else value


def _read_openai_agents(server: Server, schema: str) -> Iterator[StoredDocument]:
    names = (schema, "agent_messages")
    for (session,) in _select(server, "select distinct session_id from {}.{} order by 1", names):
        query = "select id, message_data from {}.{} where session_id = %s order by id"
        rows = _select(server, query, names, (session,))
        items = [_to_value(data, f"agent_messages {number}: message_data") for number, data in rows]
        yield StoredDocument(f"session {shorten(str(session))}", "responses", items)


def _read_langgraph(server: Server, schema: str) -> Iterator[StoredDocument]:
    checkpoints = (schema, "checkpoints")
    for (thread,) in _select(server, "select distinct thread_id from {}.{} order by 1", checkpoints):
        query = "select distinct checkpoint_ns from {}.{} where thread_id = %s"
        namespaces = {
            namespace: list(_read_namespace(server, schema, (thread, namespace)))
            for (namespace,) in _select(server, query, checkpoints, (thread,))
        }
        yield from name_threads(thread, join_subgraphs(namespaces))


def _read_namespace(server: Server, schema: str, of: tuple[str, str]) -> Iterator[tuple[str, Snapshot]]:
    """Yield the checkpoints of one namespace of a thread, newest first."""
    of_namespace = " where thread_id = %s and checkpoint_ns = %s"
    # Values of channels are kept once for each version, apart from the checkpoints.
    query = "select channel, version, type, blob from {}.{}" + of_namespace
    blobs = {
        (channel, version): (kind, value)
        for channel, version, kind, value in _select(server, query, (schema, "checkpoint_blobs"), of)
    }
    query = "select checkpoint_id, task_id, channel, type, blob from {}.{}" + of_namespace + " order by task_id, idx"
    writes: dict[str, list[list[Any]]] = {}
    for checkpoint, task, channel, kind, value in _select(server, query, (schema, "checkpoint_writes"), of):
        writes.setdefault(checkpoint, []).append([task, channel, load_value(kind, value)])
    query = "select checkpoint_id, checkpoint from {}.{}" + of_namespace + " order by checkpoint_id desc"
    for number, checkpoint in _select(server, query, (schema, "checkpoints"), of):
        yield number, {"checkpoint": _fill_channels(checkpoint, blobs), "pending_writes": writes.get(number, [])}


def _fill_channels(checkpoint: Any, blobs: Mapping[tuple[str, str], tuple[str, Any]]) -> Any:
    """Return a checkpoint with the values of its channels."""
    if type(checkpoint) is not dict:
        return checkpoint
    values = dict(checkpoint.get("channel_values") or {})
    for channel, version in (checkpoint.get("channel_versions") or {}).items():
        if (channel, str(version)) in blobs:
            values[channel] = load_value(*blobs[channel, str(version)])
    return {**checkpoint, "channel_values": values}


def _read_google_adk(server: Server, schema: str, columns: frozenset[str]) -> Iterator[StoredDocument]:
    if "event_data" in columns:
        selected = "event_data"
    elif {"content", "author"} <= columns:
        # The actions of this older schema are a pickle.
        selected = "json_build_object('author', author, 'invocation_id', invocation_id, 'content', content)"
    else:
        raise HistoryError("half migrated: the table events has neither event_data nor author and content")
    query = "select app_name, user_id, id from {}.{} order by 1, 2, 3"
    for session in _select(server, query, (schema, "sessions")):
        query = (
            f"select id, {selected} from {{}}.{{}} where app_name = %s and user_id = %s and session_id = %s"
            " order by timestamp"
        )
        rows = _select(server, query, (schema, "events"), session)
        events = [_to_value(data, f"event {event}: its data") for event, data in rows]
        if events:
            name = "/".join(shorten(str(part)) for part in session)
            yield StoredDocument(f"session {name}", "google_adk", {"events": events})


def _read_agno_sessions(server: Server, schema: str, table: str) -> Iterator[StoredDocument]:
    for (session,) in _select(server, "select session_id from {}.{} order by 1", (schema, table)):
        where = f"{table} {session}: runs"
        query = "select runs from {}.{} where session_id = %s"
        [(data,)] = _select(server, query, (schema, table), (session,))
        runs = _to_value(_to_value(data, where), where)
        if runs:
            yield StoredDocument(f"session {shorten(str(session))}", "agno", {"session_id": session, "runs": runs})


def _read_agno_runs(server: Server, schema: str, table: str) -> Iterator[StoredDocument]:
    for (session,) in _select(server, "select distinct session_id from {}.{} order by 1", (schema, table)):
        query = "select run_id, run_data from {}.{} where session_id = %s order by run_index, created_at"
        rows = _select(server, query, (schema, table), (session,))
        runs = [_to_value(data, f"{table} {run}: run_data") for run, data in rows]
        yield StoredDocument(f"session {shorten(str(session))}", "agno", {"session_id": session, "runs": runs})

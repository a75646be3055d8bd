"""SQLite databases of frameworks: what they store, as documents of the formats that readers know.

    agent_sessions, agent_messages     sessions of OpenAI Agents
    checkpoints, writes                `SqliteSaver` of LangGraph
    agno_sessions                      `SqliteDb` of Agno, with `agno_runs` since schema 3
    sessions, events                   `DatabaseSessionService` and `SqliteSessionService` of Google ADK

A database is opened for reading only. Values in MessagePack are decoded without making the objects that they name, and
pickles are left alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote as quote_url

from pytest_approvals.conversations.histories.store_documents import (
    Snapshot,
    StoredDocument,
    join_subgraphs,
    load_value,
    name_threads,
    parse_json,
)
from pytest_approvals.errors import HistoryError
from pytest_approvals.errors.printable import shorten

MAGIC = b"SQLite format 3\x00"
"""How each of these files begins."""

SUFFIXES = (".db", ".sqlite", ".sqlite3")
"""The suffixes of databases that are read in folders."""

_BUSY_SECONDS = 1.0
_LOG_MODE = slice(18, 20)
"""Where the header of a database says how it is written."""

_KEYS = frozenset({"session_id", "thread_id", "app_name"})
"""Columns by which a table of one of the stores is known if the other one is missing."""


def read_database(path: str) -> Iterator[StoredDocument] | None:
    """Return the conversations of a database; None if it is the store of no known framework.

    Raises:
        HistoryError: It is locked, damaged, or half migrated. The iterator raises it, too.
    """
    connection = _open(path)
    with _Errors():
        names = [str(row[0]) for row in connection.execute("select name from sqlite_master where type = 'table'")]
    tables = set(names)
    for known, read in (
        ({"agent_sessions", "agent_messages"}, _read_openai_agents),
        ({"checkpoints", "writes"}, _read_langgraph),
        ({"agno_sessions", "agno_runs"}, _read_agno_runs),
        ({"agno_sessions"}, _read_agno_sessions),
        ({"sessions", "events"}, _read_google_adk),
    ):
        found = known & tables
        if found == known:
            return _close_after(connection, read(connection))
        if known - {"agno_runs"} != found and any(_KEYS & _columns(connection, table) for table in found):
            connection.close()
            missing = ", ".join(sorted(known - tables))
            raise HistoryError(f"half migrated: there is no table {missing} beside {', '.join(sorted(found))}")
    connection.close()
    return None


def _open(path: str) -> sqlite3.Connection:
    with _Errors():
        uri = f"file:{quote_url(str(Path(path).absolute()))}?mode=ro"
        # Readers of a database with a write-ahead log make files for it; without a writer there is nothing to share.
        if _has_idle_log(path):
            uri += "&immutable=1"
        return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)


def _has_idle_log(path: str) -> bool:
    """Return whether a database is in the mode of a write-ahead log, and no process has it open for writing."""
    with open(path, "rb") as file:
        header = file.read(_LOG_MODE.stop)
    return header[_LOG_MODE] == b"\x02\x02" and not Path(f"{path}-wal").exists()


class _Errors:
    """Turns errors of SQLite into ours."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # A damaged schema is quoted in the error of SQLite, whatever its bytes are.
        if not isinstance(error, sqlite3.Error | UnicodeDecodeError):
            return
        what = str(error) if isinstance(error, sqlite3.Error) else "malformed schema"
        if "locked" in what:
            what = "locked: another process is writing; wait for it, or read a copy"
        elif "no such column" in what or "no such table" in what:
            what = f"half migrated: {what}"
        elif "malformed" in what or "not a database" in what:
            what = f"damaged: {what}"
        raise HistoryError(f"the database cannot be read: {what}") from error


def _close_after(connection: sqlite3.Connection, documents: Iterator[StoredDocument]) -> Iterator[StoredDocument]:
    try:
        with _Errors():
            yield from documents
    finally:
        connection.close()


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in connection.execute(f"pragma table_info({table})")}


# --- OpenAI Agents ---


def _read_openai_agents(connection: sqlite3.Connection) -> Iterator[StoredDocument]:
    sessions = connection.execute("select distinct session_id from agent_messages order by session_id").fetchall()
    for (session,) in sessions:
        rows = connection.execute(
            "select id, message_data from agent_messages where session_id = ? order by id", (session,)
        )
        items = [parse_json(data, f"agent_messages {number}: message_data") for number, data in rows]
        yield StoredDocument(f"session {shorten(str(session))}", "responses", items)


# --- LangGraph ---


def _read_langgraph(connection: sqlite3.Connection) -> Iterator[StoredDocument]:
    for (thread,) in connection.execute("select distinct thread_id from checkpoints order by 1").fetchall():
        namespaces: dict[str, list[tuple[str, Snapshot]]] = {}
        rows = connection.execute(
            "select checkpoint_ns, checkpoint_id, type, checkpoint from checkpoints where thread_id = ?"
            " order by checkpoint_id desc",
            (thread,),
        )
        for namespace, checkpoint, kind, value in rows.fetchall():
            writes = connection.execute(
                "select task_id, channel, type, value from writes where thread_id = ? and checkpoint_ns = ?"
                " and checkpoint_id = ? order by task_id, idx",
                (thread, namespace, checkpoint),
            )
            snapshot = {
                "checkpoint": load_value(kind, value),
                "pending_writes": [[task, channel, load_value(*write)] for task, channel, *write in writes],
            }
            namespaces.setdefault(namespace, []).append((checkpoint, snapshot))
        yield from name_threads(thread, join_subgraphs(namespaces))


# --- Agno ---


def _read_agno_runs(connection: sqlite3.Connection) -> Iterator[StoredDocument]:
    sessions = connection.execute("select distinct session_id from agno_runs order by session_id").fetchall()
    for (session,) in sessions:
        rows = connection.execute(
            "select run_id, run_data from agno_runs where session_id = ? order by run_index, created_at", (session,)
        )
        runs = [parse_json(data, f"agno_runs {run}: run_data") for run, data in rows]
        yield StoredDocument(f"session {shorten(str(session))}", "agno", {"session_id": session, "runs": runs})


def _read_agno_sessions(connection: sqlite3.Connection) -> Iterator[StoredDocument]:
    rows = connection.execute("select session_id, runs from agno_sessions order by session_id").fetchall()
    for session, data in rows:
        where = f"agno_sessions {session}: runs"
        runs = parse_json(data, where)
        # Some releases write the text of a JSON text.
        runs = parse_json(runs, where) if type(runs) is str else runs
        if runs:
            yield StoredDocument(f"session {shorten(str(session))}", "agno", {"session_id": session, "runs": runs})


# --- Google ADK ---


def _read_google_adk(connection: sqlite3.Connection) -> Iterator[StoredDocument]:
    columns = _columns(connection, "events")
    if "event_data" in columns:
        selected = "event_data"
    elif {"content", "author"} <= columns:
        # The actions of this older schema are a pickle.
        selected = "json_object('author', author, 'invocation_id', invocation_id, 'content', json(content))"
    else:
        raise HistoryError("half migrated: the table events has neither event_data nor author and content")
    sessions = connection.execute("select app_name, user_id, id from sessions order by 1, 2, 3").fetchall()
    for session in sessions:
        rows = connection.execute(
            f"select id, {selected} from events where app_name = ? and user_id = ? and session_id = ?"
            " order by timestamp, rowid",
            session,
        )
        events = [parse_json(data, f"event {event}: its data") for event, data in rows]
        if events:
            name = "/".join(shorten(str(part)) for part in session)
            yield StoredDocument(f"session {name}", "google_adk", {"events": events})

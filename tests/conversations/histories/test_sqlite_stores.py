"""SQLite databases of frameworks: read as they are, and never written to.

The dumps in `stores/stored` are of databases that the scripts next to them let the frameworks write.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    RequestEntry,
    ResultEntry,
    TextEntry,
)
from pytest_approvals.conversations.histories.files import LocatedConversation, SkippedFile, read_conversations
from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.errors import HistoryError
from pytest_approvals.journal.arguments import parse_arguments

STORED = Path(__file__).parent / "stores" / "stored"

FRAMEWORKS = {"openai_agents": "responses", "langgraph": "langgraph", "google_adk": "google_adk"}
"""The framework of each store, and the format of its conversations."""

frameworks = pytest.mark.parametrize("name", FRAMEWORKS)

Database = Callable[..., Path]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """Make a database of a dump, changed by SQL."""

    def make(name: str, *changes: str) -> Path:
        path = tmp_path / "sessions.db"
        connection = sqlite3.connect(path)
        connection.executescript((STORED / f"{name}.sql").read_text())
        for change in changes:
            connection.execute(change)
        connection.commit()
        connection.close()
        return path

    return make


def read(path: Path) -> LocatedConversation:
    [stored] = read_conversations([str(path)])
    assert isinstance(stored, LocatedConversation), stored
    return stored


def error(path: Path) -> str:
    [found] = read_conversations([str(path)])
    assert isinstance(found, HistoryError)
    return str(found).removeprefix(f"{path}: ")


@frameworks
def test_a_database_tells_the_story(database: Database, name: str) -> None:
    """Its texts, calls and results are those that the framework stored."""
    conversation = read(database(f"{name}_done")).conversation
    calls = {entry.id: (entry.tool, parse_arguments(entry.arguments)) for entry in conversation.of(CallEntry)}
    results = {entry.call_id: entry.value for entry in conversation.of(ResultEntry)}

    assert FRAMEWORKS[name] == conversation.format
    assert ["Pay 5 and 6", "Let me see.", "Done."] == [entry.text for entry in conversation.of(TextEntry)]
    assert {"c1": ("pay", {"amount": 5}), "c2": ("pay", {"amount": 6}), "c3": ("read", {"path": "x"})} == calls
    assert ("paid 5", "text of x") == (results["c1"], results["c3"])


@frameworks
def test_it_is_named_by_its_id(database: Database, name: str) -> None:
    """A database has no lines."""
    stored = read(database(f"{name}_done"))

    assert "thread-7" in stored.conversation.name
    assert stored.line is None


@pytest.mark.parametrize("name", ["langgraph", "google_adk"])
def test_requests_and_decisions_are_read(database: Database, name: str) -> None:
    """The sessions of OpenAI Agents hold items only, and these two hold approvals."""
    conversation = read(database(f"{name}_done")).conversation

    assert ["c1", "c2"] == [entry.call_id for entry in conversation.of(RequestEntry)]
    assert ["approve", "reject"] == [entry.verdict for entry in conversation.of(DecisionEntry)]


@frameworks
@pytest.mark.parametrize("how", ["paused", "done"])
def test_what_a_framework_stored_has_no_mistake(database: Database, name: str, how: str) -> None:
    """Lint finds nothing in it but what waits."""
    found = lint_conversation(read(database(f"{name}_{how}")).conversation)

    assert [] == [each.text for each in found if each.is_mistake]
    assert (how == "paused") == bool(found)


@frameworks
def test_a_database_is_not_written_to(database: Database, name: str) -> None:
    """Its bytes stay, no file is left beside it, and permission to read is enough."""
    path = database(f"{name}_done")
    before = path.read_bytes()
    path.chmod(0o400)
    read(path)

    assert before == path.read_bytes()
    assert [path] == list(path.parent.iterdir())


def test_a_database_with_a_log_is_not_written_to(database: Database) -> None:
    """Savers write to a log first; its mode makes readers leave files beside the database, unless they take care."""
    path = database("langgraph_done")
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode = wal")
    connection.close()
    before = path.read_bytes()
    read(path)

    assert before == path.read_bytes()
    assert [path] == list(path.parent.iterdir())


def test_what_is_in_the_log_only_is_read(database: Database) -> None:
    """The writer is still there, and has not moved its last rows."""
    path = database("openai_agents_done")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("pragma journal_mode = wal")
    writer.execute("update agent_messages set session_id = 'newest'")
    stored = read(path)
    writer.close()

    assert f"{path}[session newest]" == stored.conversation.name


def test_a_database_in_a_folder_is_found(database: Database) -> None:
    """Its suffix is one of those that folders are searched for."""
    path = database("langgraph_done")

    assert f"{path}[thread thread-7]" == read(path.parent).conversation.name


def test_each_session_is_a_conversation(database: Database) -> None:
    """Rows are put together by the id of their session."""
    copied = "insert into agent_messages (session_id, message_data) select 'other', message_data from agent_messages"
    path = database("openai_agents_done", copied)
    names = [
        each.conversation.name for each in read_conversations([str(path)]) if isinstance(each, LocatedConversation)
    ]

    assert [f"{path}[session other]", f"{path}[session thread-7]"] == names


@pytest.mark.parametrize("how", ["paused", "done"])
def test_an_agent_that_is_a_node_belongs_to_its_graph(database: Database, how: str) -> None:
    """LangGraph keeps its checkpoints and the answers in a namespace of their own; it is one conversation."""
    conversation = read(database(f"langgraph_node_{how}")).conversation
    found = lint_conversation(conversation)

    assert ["Pay 5 and 6", "I pay."] == [entry.text for entry in conversation.of(TextEntry)][:2]
    assert ["i1", "i2"] == [entry.call_id for entry in conversation.of(RequestEntry)]
    assert (["approve", "reject"] if how == "done" else []) == [
        entry.verdict for entry in conversation.of(DecisionEntry)
    ]
    assert ([] if how == "done" else ["waits", "waits"]) == [finding.rule for finding in found]


@pytest.mark.parametrize("how", ["paused", "done"])
def test_an_agent_in_a_tool_is_a_conversation_of_its_own(database: Database, how: str) -> None:
    """The graph keeps a copy of its requests, which is no request about a call that nobody made."""
    outer, inner = (
        stored.conversation
        for stored in read_conversations([str(database(f"langgraph_tool_{how}"))])
        if isinstance(stored, LocatedConversation)
    )

    assert ["cashier"] == [entry.tool for entry in outer.of(CallEntry)]
    assert [] == list(outer.of(RequestEntry))
    assert ["i1", "i2"] == [entry.call_id for entry in inner.of(RequestEntry)]
    assert [] == [found.text for each in (outer, inner) for found in lint_conversation(each) if found.is_mistake]


def test_a_call_of_a_node_that_lost_its_result_is_found(database: Database) -> None:
    """What the newest checkpoint of the graph lacks is found, and not made up for by those of the agent inside."""
    path = database("langgraph_node_done")
    newest = "select max(checkpoint_id) from checkpoints where checkpoint_ns = ''"
    with sqlite3.connect(path) as connection:
        [(data,)] = connection.execute(f"select checkpoint from checkpoints where checkpoint_id = ({newest})")
        # The id of the call that a result names.
        changed = data.replace(b"tool_call_id\xa2i1", b"tool_call_id\xa2zz")
        assert changed != data
        connection.execute(f"update checkpoints set checkpoint = ? where checkpoint_id = ({newest})", (changed,))
    connection.close()
    found = [each.rule for each in lint_conversation(read(path).conversation)]

    assert ["result-delivered-once", "result-matches-its-call"] == sorted(found)


def test_an_answer_as_json_text_is_a_decision() -> None:
    """Clients of Google ADK may wrap their answer in a text."""
    document = json.loads((Path(__file__).parent / "stored" / "google_adk_done.json").read_text())
    for part in (part for event in document["events"] for part in event["content"]["parts"]):
        answer = part.get("functionResponse", {})
        if answer.get("name") == "adk_request_confirmation":
            answer["response"] = {"response": json.dumps(answer["response"])}

    assert ["approve", "reject"] == [entry.verdict for entry in FormatDetector().read(document).of(DecisionEntry)]


# --- what was lost ----------------------------------------------------------------------------------------------------


def test_a_confirmation_of_google_adk_whose_request_is_lost(database: Database) -> None:
    """The actions of an event say what waits for confirmation, and the event that asks is gone."""
    asks = "delete from events where event_data like '%originalFunctionCall%'"
    found = lint_conversation(read(database("google_adk_paused", asks)).conversation)

    assert [
        "call 'c1' waits for confirmation, and no request asks about it",
        "call 'c2' waits for confirmation, and no request asks about it",
    ] == [each.text for each in found if each.rule == "pending-survives"]


def test_a_row_with_a_result_is_lost(database: Database) -> None:
    """The conversation goes on without the output of a call."""
    lost = "delete from agent_messages where message_data like '%function_call_output%' and message_data like '%c1%'"
    found = lint_conversation(read(database("openai_agents_done", lost)).conversation)

    assert ["pay(amount=5) has no result, and the conversation goes on"] == [each.text for each in found]


# --- databases in real life -------------------------------------------------------------------------------------------


def test_a_locked_database(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process is in the middle of a write."""
    monkeypatch.setattr("pytest_approvals.conversations.histories.sqlite_stores._BUSY_SECONDS", 0)
    path = database("openai_agents_done")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("begin exclusive")
    found = error(path)
    writer.close()

    assert "the database cannot be read: locked: another process is writing; wait for it, or read a copy" == found


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("openai_agents", "drop table agent_sessions", "there is no table agent_sessions beside agent_messages"),
        ("langgraph", "drop table writes", "there is no table writes beside checkpoints"),
        ("google_adk", "drop table sessions", "there is no table sessions beside events"),
        (
            "google_adk",
            "alter table events rename column event_data to data",
            "the table events has neither event_data nor author and content",
        ),
    ],
)
def test_a_half_migrated_database(database: Database, name: str, change: str, expected: str) -> None:
    """What is missing is named."""
    assert f"half migrated: {expected}" == error(database(f"{name}_done", change))


def test_a_column_that_is_missing(database: Database) -> None:
    """SQLite says which."""
    path = database("openai_agents_done", "alter table agent_messages rename column message_data to data")

    assert "the database cannot be read: half migrated: no such column: message_data" == error(path)


def test_a_damaged_database(database: Database) -> None:
    """Only its first bytes are those of a database."""
    path = database("openai_agents_done")
    path.write_bytes(path.read_bytes()[:100] + b"x" * 4000)

    assert error(path).startswith("the database cannot be read: damaged: ")


def test_a_schema_of_broken_bytes(database: Database) -> None:
    """What SQLite says about it is no text either."""
    path = database("langgraph_done")
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE checkpoints", b"CREATE TABLX \xf5heckpoint\xff"))

    assert error(path).startswith("the database cannot be read: damaged: ")


def test_a_value_that_is_cut(database: Database) -> None:
    """The row is named."""
    path = database("openai_agents_done", "update agent_messages set message_data = '{' where id = 3")

    assert "agent_messages 3: message_data is not JSON" == error(path)


def test_a_checkpoint_that_cannot_be_decoded(database: Database) -> None:
    """A broken value of MessagePack is no crash."""
    path = database("langgraph_done", "update checkpoints set checkpoint = x'c1'")

    assert "a value of type msgpack cannot be decoded" == error(path)


def test_a_pickle_is_left_alone(database: Database) -> None:
    """Loading one would execute what it says."""
    path = database("langgraph_done", "update checkpoints set type = 'pickle'")

    assert "the database holds no conversation" == error(path)


def test_an_older_schema_of_google_adk(database: Database) -> None:
    """Before version 1 an event had a column for its content, and a pickle of its actions."""
    path = database(
        "google_adk_done",
        "create table old as select id, app_name, user_id, session_id, invocation_id, timestamp,"
        " json_extract(event_data, '$.author') author, json_extract(event_data, '$.content') content,"
        " x'80' actions from events",
        "drop table events",
        "alter table old rename to events",
    )
    stored = read(path)

    assert [] == lint_conversation(stored.conversation)
    assert 3 == len(list(stored.conversation.of(ResultEntry)))


def test_a_database_of_another_kind(tmp_path: Path) -> None:
    """A named one is an error; one in a folder is skipped."""
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("create table events (id integer, what text)")
    connection.close()
    [found] = read_conversations([str(tmp_path)])

    assert error(path).startswith("a SQLite database of no known store: expected one of OpenAI Agents, LangGraph or")
    assert isinstance(found, SkippedFile)

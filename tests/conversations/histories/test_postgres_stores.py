"""PostgreSQL databases of frameworks: read as they are, and never written to.

The dumps `stores/stored/*.postgres.sql` are of databases that the scripts `make_postgres_*` let the frameworks write. A
server of the installed PostgreSQL is started on the loopback interface for them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_approvals.cli import main
from pytest_approvals.conversations.histories import postgres_stores
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    RequestEntry,
    ResultEntry,
    TextEntry,
)
from pytest_approvals.conversations.histories.files import LocatedConversation, read_conversations
from pytest_approvals.conversations.histories.postgres_stores import connect, hide_password, is_server
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.errors import HistoryError, UsageError
from pytest_approvals.journal.arguments import parse_arguments
from tests.postgres_server import running_postgres

STORED = Path(__file__).parent / "stores" / "stored"

FRAMEWORKS = ("langgraph", "google_adk", "agno")

frameworks = pytest.mark.parametrize("name", FRAMEWORKS)

Database = Callable[..., str]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server, and return its address without a database."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with running_postgres() as started:
        yield started.address


@pytest.fixture
def database(server: str, request: pytest.FixtureRequest) -> Iterator[Database]:
    """Make a database of a dump, changed by SQL, and return its address."""
    import psycopg

    made: list[str] = []

    def make(name: str, *changes: str) -> str:
        made.append(f"made_{len(made)}")
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            connection.execute(f"create database {made[-1]}".encode())
        url = f"{server}/{made[-1]}"
        with psycopg.connect(url) as connection:
            connection.execute((STORED / f"{name}.postgres.sql").read_bytes())
            for change in changes:
                connection.execute(change.encode())
        return url

    yield make
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        for name in made:
            connection.execute(f"drop database {name} with (force)".encode())


def read(url: str) -> LocatedConversation:
    [stored] = read_conversations([url])
    assert isinstance(stored, LocatedConversation), stored
    return stored


def error(url: str) -> str:
    [found] = read_conversations([url])
    assert isinstance(found, HistoryError)
    return str(found).removeprefix(f"{url}: ")


@frameworks
def test_a_database_tells_the_story(database: Database, name: str) -> None:
    """Its texts, calls and results are those that the framework stored."""
    conversation = read(database(f"{name}_done")).conversation
    calls = {entry.id: (entry.tool, parse_arguments(entry.arguments)) for entry in conversation.of(CallEntry)}
    results = {entry.call_id: entry.value for entry in conversation.of(ResultEntry)}

    assert name == conversation.format
    assert ["Pay 5 and 6", "Let me see.", "Done."] == [entry.text for entry in conversation.of(TextEntry)]
    assert {"c1": ("pay", {"amount": 5}), "c2": ("pay", {"amount": 6}), "c3": ("read", {"path": "x"})} == calls
    assert ("paid 5", "text of x") == (results["c1"], results["c3"])


@frameworks
@pytest.mark.parametrize("how", ["paused", "done"])
def test_a_healthy_database_has_no_finding(database: Database, name: str, how: str) -> None:
    """Neither paused nor finished."""
    findings = lint_conversation(read(database(f"{name}_{how}")).conversation)

    assert [] == [found for found in findings if found.is_mistake]


@pytest.mark.parametrize("how", ["paused", "done"])
def test_an_agent_that_is_a_node_belongs_to_its_graph(database: Database, how: str) -> None:
    """The saver keeps its checkpoints under a namespace of their own, and its lists in another table."""
    conversation = read(database(f"langgraph_node_{how}")).conversation
    mistakes = [found.text for found in lint_conversation(conversation) if found.is_mistake]

    assert [] == mistakes
    assert ["Pay 5 and 6", "I pay."] == [entry.text for entry in conversation.of(TextEntry)][:2]
    assert ["i1", "i2"] == [entry.call_id for entry in conversation.of(RequestEntry)]
    assert (["approve", "reject"] if how == "done" else []) == [
        entry.verdict for entry in conversation.of(DecisionEntry)
    ]


@pytest.mark.parametrize("how", ["paused", "done"])
def test_an_agent_in_a_tool_is_a_conversation_of_its_own(database: Database, how: str) -> None:
    """The requests are those of the inner one."""
    outer, inner = (
        stored.conversation
        for stored in read_conversations([database(f"langgraph_tool_{how}")])
        if isinstance(stored, LocatedConversation)
    )

    assert ["cashier"] == [entry.tool for entry in outer.of(CallEntry)]
    assert [] == list(outer.of(RequestEntry))
    assert ["i1", "i2"] == [entry.call_id for entry in inner.of(RequestEntry)]
    assert [] == [found.text for each in (outer, inner) for found in lint_conversation(each) if found.is_mistake]


def test_a_call_of_a_node_that_lost_its_result_is_found(database: Database) -> None:
    """What the newest list of the graph lacks is not made up for by that of the agent inside."""
    of_graph = "checkpoint_ns = '' and channel = 'messages'"
    newest = f"select max(version) from public.checkpoint_blobs where {of_graph}"
    change = (
        f"update public.checkpoint_blobs set blob = decode(replace(encode(blob, 'hex'), '{_ANSWERED_INSIDE}31',"
        f" '{_ANSWERED_INSIDE}7a'), 'hex') where {of_graph} and version = ({newest})"
    )
    found = {each.rule for each in lint_conversation(read(database("langgraph_node_done", change)).conversation)}

    assert {"result-delivered-once", "result-matches-its-call"} == found


_ANSWERED_INSIDE = "746f6f6c5f63616c6c5f6964a269"  # tool_call_id and i, in MessagePack
_ANSWERED = "746f6f6c5f63616c6c5f6964a2633"  # tool_call_id and c, in MessagePack
BROKEN = {
    "langgraph": ("langgraph_done", "result-matches-its-call",
                  ("update public.checkpoint_blobs set blob = "
                  f"decode(replace(encode(blob, 'hex'), '{_ANSWERED}1', '{_ANSWERED}9'), 'hex')")),
    "google_adk": ("google_adk_done", "result-delivered-once",
                   "delete from public.events where event_data::text like '%paid 5%'"),
    "agno": ("agno_paused", "pending-survives",
             "update ai.agno_runs set run_data = jsonb_set(run_data, '{requirements}', '[]')"),
}  # fmt: skip
"""What is changed in a dump by SQL, and the rule that finds it."""


@frameworks
def test_what_a_database_lost_is_found(database: Database, name: str) -> None:
    """A request or a result that is gone from one of the tables."""
    dump, rule, change = BROKEN[name]

    assert rule in {found.rule for found in lint_conversation(read(database(dump, change)).conversation)}


def test_a_database_cannot_be_written_to(database: Database) -> None:
    """The connection is one for reading."""
    import psycopg

    with connect(database("google_adk_done")) as connection, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("delete from public.events")


@pytest.mark.parametrize(
    ("dump", "change", "message"),
    [
        ("langgraph_done", "drop table public.checkpoint_blobs",
         "half migrated: there is no table checkpoint_blobs beside checkpoints"),
        ("google_adk_done", "alter table public.events rename event_data to data",
         "half migrated: the table events has neither event_data nor author and content"),
        ("google_adk_done", "delete from public.events", "the database holds no conversation"),
        ("google_adk_done", "drop table public.events",
         "a database of no known store: expected one of OpenAI Agents, LangGraph, ADK, Agno"),
    ],
)  # fmt: skip
def test_a_database_that_is_no_whole_store_says_why(database: Database, dump: str, change: str, message: str) -> None:
    """What is there, and what is missing."""
    assert message == error(database(dump, change))


def test_a_locked_database_is_not_waited_for(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a migration should take."""
    import psycopg

    monkeypatch.setattr(postgres_stores, "LOCK_MILLISECONDS", 20)
    url = database("google_adk_done")
    with psycopg.connect(url) as other:
        other.execute("lock table public.events in access exclusive mode")

        assert "the database cannot be read: locked: another process migrates it; try again" == error(url)


def test_a_database_that_is_not_there_says_so(server: str) -> None:
    """With the words of the server."""
    assert 'database "absent" does not exist' in error(f"{server}/absent")


def test_the_commands_take_an_address(database: Database, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The password is not shown, and the driver in the address of SQLAlchemy is ignored."""
    url = database("google_adk_done", "delete from public.events where event_data::text like '%paid 5%'")
    url = url.replace("postgresql://postgres@", "postgresql+asyncpg://postgres:geheim@")

    assert 1 == main(["lint", url])
    shown = capsys.readouterr().out
    assert "result-delivered-once" in shown
    assert "geheim" not in shown


def test_the_driver_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says which."""
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(UsageError, match=r"pip install 'pytest-approvals\[postgres\]'"):
        list(read_conversations(["postgresql://127.0.0.1:1/none"]))


@pytest.mark.parametrize("path", ["postgresql", "x.postgresql", "http://postgresql/x", "postgresqlx://host"])
def test_other_paths_are_no_addresses(path: str) -> None:
    """Only those whose scheme is that of PostgreSQL."""
    assert not is_server(path)


def test_an_address_without_a_user_is_shown_as_it_is() -> None:
    """There is nothing to hide."""
    assert "postgres://db/shop" == hide_password("postgres://db/shop")

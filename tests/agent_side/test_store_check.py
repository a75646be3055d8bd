"""The check of a store that is not the run's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pytest_approvals.agent_side.contract import Unsupported
from pytest_approvals.agent_side.kit import store_check
from pytest_approvals.agent_side.kit.store_check import check_store, find_store_remedy, is_database_error

ADDRESS = "postgresql://ann:geheim@db:5433/shop?sslmode=require"


def fail(address: str, probe: Callable[[], Awaitable[object]]) -> str:
    with pytest.raises(Unsupported) as caught:
        asyncio.run(check_store("native.postgres", address, probe))
    assert "native.postgres" == caught.value.capability
    return caught.value.why


def raising(error: Exception) -> Callable[[], Awaitable[object]]:
    async def probe() -> None:
        raise error

    return probe


def test_a_store_that_fails_is_named_without_its_password() -> None:
    """With the type and the first line of the message, and with what to do."""
    error = OSError("database is locked\n[SQL: SELECT 1]")

    assert (
        "the store at db:5433/shop cannot be used: OSError: database is locked; another process holds it: end that "
        "one, or use another store"
    ) == fail(ADDRESS, raising(error))


def test_a_failure_that_is_not_known_has_no_remedy() -> None:
    """Nothing is guessed."""
    assert "the store at db cannot be used: KeyError: 'x'" == fail("postgresql://db", raising(KeyError("x")))


def test_a_store_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one whose tables another process holds."""
    monkeypatch.setattr(store_check, "_SECONDS", 0.01)

    async def wait() -> None:
        await asyncio.Event().wait()

    assert "it does not answer within 0.01 s; another process may hold its tables" in fail(ADDRESS, wait)


def test_what_is_no_failure_of_the_store_passes_through() -> None:
    """As what the adapter itself refuses."""
    with pytest.raises(Unsupported, match="^native.sqlite: no"):
        asyncio.run(check_store("native.postgres", ADDRESS, raising(Unsupported("native.sqlite", "no"))))


def test_a_store_that_can_be_used_is_not_named() -> None:
    """The probe has been awaited."""
    used: list[bool] = []

    async def use() -> None:
        used.append(True)

    asyncio.run(check_store("native.postgres", ADDRESS, use))

    assert [True] == used


def test_a_store_whose_tables_another_process_makes_is_used_again() -> None:
    """PostgreSQL refuses the second of two processes that create a table `IF NOT EXISTS` at the same time."""
    used: list[bool] = []

    async def use() -> None:
        used.append(True)
        if len(used) == 1:
            raise RuntimeError('duplicate key value violates unique constraint "pg_type_typname_nsp_index"')

    asyncio.run(check_store("native.postgres", ADDRESS, use))

    assert [True, True] == used


def test_a_store_that_holds_the_same_row_is_named() -> None:
    """It is not used again: the row is there."""
    refusal = RuntimeError('duplicate key value violates unique constraint "checkpoints_pkey"')

    assert "checkpoints_pkey" in fail(ADDRESS, raising(refusal))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("sqlite:////tmp/a.db", "/tmp/a.db"),
        ("file:////tmp/sessions", "/tmp/sessions"),
        ("postgresql:///shop", "shop"),
        ("postgresql://db:many/shop", "the given address"),
        ("", "the given address"),
    ],
)
def test_an_address_is_shown_as_far_as_it_says_something(address: str, place: str) -> None:
    """A file has no host."""
    assert fail(address, raising(ValueError())).startswith(f"the store at {place} cannot be used: ")


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("attempt to write a readonly database", "it can only be read"),
        ("cannot execute INSERT in a read-only transaction", "it can only be read"),
        ("no such table: checkpoints", "its tables are missing"),
        ('relation "checkpoints" does not exist', "its tables are missing"),
        ("no such column: checkpoint_id", "it is of another release"),
        ("Table agno_sessions has an invalid schema", "it is of another release"),
        ("file is not a database", "it is damaged"),
        ('FATAL:  database "shop" does not exist', "create the database"),
        ('FATAL:  role "ann" does not exist', "the server refuses the user"),
        ('password authentication failed for user "ann"', "the server refuses the user"),
        ("permission denied for schema public", "its user may not do that"),
        ("canceling statement due to lock timeout", "another process holds it"),
        ("unable to open database file", "it cannot be opened"),
        ("connection timeout expired", "the server does not answer"),
        ("[Errno 111] Connect call failed ('127.0.0.1', 1)", "the server does not answer"),
        ("database or disk is full", "there is no space left"),
    ],
)
def test_each_failure_has_a_remedy(message: str, remedy: str) -> None:
    """In the words of SQLite, PostgreSQL and their drivers."""
    assert find_store_remedy(message).startswith(remedy)


@pytest.mark.parametrize("kind", ["ValueError", "ToolRaised", "TimeoutError", "MyOperationalErrors"])
def test_other_errors_are_not_those_of_databases(kind: str) -> None:
    """A message that reads like one does not make them so."""
    assert not is_database_error(kind)

"""A store of the user's own that cannot be used."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from agents import Agent, SQLiteSession, function_tool

from pytest_approvals import Approvals, calls, say
from pytest_approvals.errors import AgentFailed


@function_tool(needs_approval=True)
def refund(order: int) -> str:
    """Refund an order."""
    return f"order {order} is refunded"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "DROP TABLE agent_messages",
            "its tables are missing: initialise it as the framework documents, as by `setup()`",
        ),
        (
            "ALTER TABLE agent_messages RENAME COLUMN session_id TO conversation",
            "it is of another release of the framework: migrate it, or use a new one",
        ),
    ],
)
def test_a_store_that_cannot_be_used_is_named(approvals: Approvals, tmp_path: Path, change: str, message: str) -> None:
    """With what to do, so that the agent is not looked at in vain."""
    session = SQLiteSession("monday", tmp_path / "sessions.db")
    with sqlite3.connect(tmp_path / "sessions.db") as database:
        database.execute(change)
    database.close()

    with pytest.raises(AgentFailed, match="failed with OperationalError: ") as caught:
        approvals.run(
            lambda model: Agent(name="main", model=model, tools=[refund]),
            model=[calls("refund", order=1), say("Done.")],
            run_options={"session": session},
        )
    session.close()

    assert str(caught.value).endswith(f"; if that is its store, {message}")

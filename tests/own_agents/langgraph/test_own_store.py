"""A checkpointer of the user's own whose database cannot be used."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.sqlite import SqliteSaver

from pytest_approvals import Approvals, approve_all, calls, say
from pytest_approvals.errors import AgentFailed


def refund(order: int) -> str:
    """Refunds an order."""
    return f"order {order} is refunded"


def spoil(file: Path, change: str) -> None:
    with sqlite3.connect(file) as database:
        database.execute(change)
    database.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DROP TABLE writes", "its tables are missing: initialise it as the framework documents, as by `setup()`"),
        (
            "ALTER TABLE checkpoints RENAME COLUMN thread_id TO conversation",
            "it is of another release of the framework: migrate it, or use a new one",
        ),
    ],
)
def test_a_store_that_cannot_be_used_is_named(approvals: Approvals, tmp_path: Path, change: str, message: str) -> None:
    """With what to do, so that the agent is not looked at in vain."""
    file = tmp_path / "threads.db"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        saver.setup()
        spoil(file, change)

        def build(model: Any) -> Any:
            gate = HumanInTheLoopMiddleware({"refund": True})
            return create_agent(model, [refund], middleware=[gate], checkpointer=saver)

        with pytest.raises(AgentFailed, match="failed with OperationalError: ") as caught:
            approvals.run(build, model=[calls("refund", order=1), say("Done.")], oracle=approve_all())

    assert str(caught.value).endswith(f"; if that is its store, {message}")


def test_a_store_that_can_only_be_read_is_named(approvals: Approvals, tmp_path: Path) -> None:
    """Nothing ran, since the question could not be kept."""
    file = tmp_path / "threads.db"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        saver.setup()
    only_read = sqlite3.connect(f"file:{file}?mode=ro", uri=True, check_same_thread=False)

    def build(model: Any) -> Any:
        gate = HumanInTheLoopMiddleware({"refund": True})
        return create_agent(model, [refund], middleware=[gate], checkpointer=SqliteSaver(only_read))

    with pytest.raises(AgentFailed) as caught:
        approvals.run(build, model=[calls("refund", order=1), say("Done.")], oracle=approve_all())
    only_read.close()

    assert str(caught.value).endswith("; if that is its store, it can only be read: use a store that can be written to")

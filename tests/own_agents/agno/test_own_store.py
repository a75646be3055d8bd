"""A database of the user's own that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.tools import tool

from pytest_approvals import Approvals, calls, say
from pytest_approvals.errors import UsageError


@tool(requires_confirmation=True)
def refund(order: int) -> str:
    """Refund an order."""
    return f"order {order} is refunded"


def test_a_database_that_cannot_be_used_is_named(approvals: Approvals, tmp_path: Path) -> None:
    """The framework logs it, and says of the answer that it finds no run."""
    file = tmp_path / "agno.db"
    file.write_bytes(b"no database" * 1000)

    with pytest.raises(UsageError) as caught:
        approvals.run(
            lambda model: Agent(model=model, tools=[refund], db=SqliteDb(db_file=str(file)), telemetry=False),
            model=[calls("refund", order=1), say("Done.")],
        )

    assert (
        f"agno cannot do this: the store at {file} cannot be used: DatabaseError: (sqlite3.DatabaseError) file is not "
        "a database; it is damaged, or no store of the framework: use another one"
    ) == str(caught.value)

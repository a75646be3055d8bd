"""A folder of sessions of the user's own that cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from strands import Agent, tool
from strands.session.file_session_manager import FileSessionManager

from pytest_approvals import Approvals, calls, say
from pytest_approvals.errors import AgentFailed


@tool
def refund(order: int) -> str:
    """Refunds an order."""
    return f"order {order} is refunded"


def test_a_session_that_cannot_be_read_is_named(approvals: Approvals, tmp_path: Path) -> None:
    """With its file, since the agent is built with it."""
    file = tmp_path / "session_7" / "session.json"
    file.parent.mkdir()
    file.write_text("{", encoding="utf-8")

    def build(model: Any) -> Any:
        sessions = FileSessionManager(session_id="7", storage_dir=str(tmp_path))
        return Agent(model=model, tools=[refund], callback_handler=None, session_manager=sessions)

    with pytest.raises(AgentFailed) as caught:
        approvals.run(build, model=[calls("refund", order=1), say("Done.")])

    assert str(caught.value).startswith(
        f"your factory `build` raised SessionException: Invalid JSON in file {file}: Expecting property name"
    )

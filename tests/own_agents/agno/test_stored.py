"""What an agent of Agno leaves in its database is judged, in the application's own test or in a nightly job."""

from __future__ import annotations

from pathlib import Path

from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.openai import OpenAIChat
from agno.tools import tool

from pytest_approvals.testing import judge_conversation


@tool(requires_confirmation=True)
def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


def test_what_was_stored_is_in_order(scripted_model, model_server, tmp_path: Path) -> None:
    scripted_model.calls("refund", order=42).says("Refunded.")
    model = OpenAIChat(base_url=model_server.openai_url, api_key="none")
    agent = Agent(model=model, tools=[refund], db=SqliteDb(db_file=str(tmp_path / "runs.db")), telemetry=False)
    paused = agent.run("Refund order 42", session_id="7")
    for requirement in paused.active_requirements:
        requirement.confirm()
    agent.continue_run(run_id=paused.run_id, requirements=paused.requirements, session_id="7")

    assert [] == judge_conversation(tmp_path / "runs.db")

"""What an agent of Strands leaves in its session files is judged, in the application's own test or in a nightly job."""

from __future__ import annotations

from pathlib import Path

from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager

from pytest_approvals.testing import judge_conversation


@tool
def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


def ask(event: BeforeToolCallEvent) -> None:
    if event.interrupt("refund", reason=event.tool_use["input"]) != "y":
        event.cancel_tool = "not approved"


def test_what_was_stored_is_in_order(scripted_model, model_server, tmp_path: Path) -> None:
    scripted_model.calls("refund", order=42).says("Refunded.")
    model = OpenAIModel(client_args={"base_url": model_server.openai_url, "api_key": "none"}, model_id="gpt")
    sessions = FileSessionManager(session_id="7", storage_dir=str(tmp_path))
    agent = Agent(model=model, tools=[refund], session_manager=sessions, callback_handler=None)
    agent.add_hook(ask, BeforeToolCallEvent)
    paused = agent("Refund order 42")
    agent([{"interruptResponse": {"interruptId": each.id, "response": "y"}} for each in paused.interrupts])

    assert [] == judge_conversation(tmp_path)

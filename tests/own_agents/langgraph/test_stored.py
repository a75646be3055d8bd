"""What an agent of LangChain leaves in its checkpoints is judged, in the application's own test or in a nightly job."""

from __future__ import annotations

from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from pytest_approvals.testing import judge_conversation


def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


def test_what_was_stored_is_in_order(scripted_model, model_server, tmp_path: Path) -> None:
    scripted_model.calls("refund", order=42).says("Refunded.")
    model = ChatOpenAI(base_url=model_server.openai_url, api_key="none")
    gate, thread = HumanInTheLoopMiddleware({"refund": True}), {"configurable": {"thread_id": "7"}}
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        agent = create_agent(model, [refund], middleware=[gate], checkpointer=saver)
        agent.invoke({"messages": [("user", "Refund order 42")]}, thread)
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)

    assert [] == judge_conversation(tmp_path / "threads.db")

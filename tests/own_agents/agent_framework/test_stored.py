"""What an agent of Agent Framework leaves in its session is judged, in the application's own test or nightly job."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import Agent, Message, tool
from agent_framework.openai import OpenAIChatCompletionClient

from pytest_approvals.testing import judge_conversation


@tool(approval_mode="always_require")
def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


async def run_refund(base_url: str) -> dict[str, Any]:
    client = OpenAIChatCompletionClient(model="gpt", base_url=base_url, api_key="none")
    agent = Agent(client=client, tools=[refund])
    session = agent.create_session()
    paused = await agent.run("Refund order 42", session=session)
    answers = [request.to_function_approval_response(True) for request in paused.user_input_requests]
    await agent.run(Message("user", answers), session=session)
    await client.client.close()
    return session.to_dict()


def test_what_was_stored_is_in_order(scripted_model, model_server) -> None:
    scripted_model.calls("refund", order=42).says("Refunded.")
    stored = asyncio.run(run_refund(model_server.openai_url))

    assert [] == judge_conversation(stored)

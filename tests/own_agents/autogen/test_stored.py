"""What an agent of AutoGen saves is judged, in the application's own test or in a nightly job."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelFamily
from autogen_ext.models.openai import OpenAIChatCompletionClient

from pytest_approvals.testing import judge_conversation


def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


async def run_refund(base_url: str) -> Mapping[str, Any]:
    info: Any = {"vision": False, "json_output": False, "structured_output": False}
    info |= {"function_calling": True, "family": ModelFamily.UNKNOWN}
    client = OpenAIChatCompletionClient(model="gpt", base_url=base_url, api_key="none", model_info=info)
    agent = AssistantAgent("desk", model_client=client, tools=[refund], reflect_on_tool_use=True)
    await agent.run(task="Refund order 42")
    await client.close()
    return await agent.save_state()


def test_what_was_stored_is_in_order(scripted_model, model_server) -> None:
    scripted_model.calls("refund", order=42).says("Refunded.")
    stored = asyncio.run(run_refund(model_server.openai_url))

    assert [] == judge_conversation(stored)
    # Who approved a call is not stored, so a tool that needs it is named.
    assert ["approval-before-execution"] == [found.rule for found in judge_conversation(stored, gated=["refund"])]

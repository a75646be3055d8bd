"""What a run of OpenAI Agents leaves is judged, in the application's own test or in a nightly job."""

from __future__ import annotations

import asyncio

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from pytest_approvals.testing import judge_conversation


@function_tool(needs_approval=True)
def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


async def run_refund(base_url: str) -> tuple[object, object]:
    async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
        agent = Agent(name="desk", model=OpenAIResponsesModel("gpt", client), tools=[refund])
        state = (await Runner.run(agent, "Refund order 42")).to_state()
        state.approve(state.get_interruptions()[0])
        return state.to_json(), (await Runner.run(agent, state)).to_input_list()


def test_what_was_stored_is_in_order(scripted_model, model_server) -> None:
    scripted_model.calls("refund", order=42).says("Refunded.")
    set_tracing_disabled(True)
    state, items = asyncio.run(run_refund(model_server.openai_url))

    assert [] == judge_conversation(state)
    assert [] == judge_conversation(items)

"""What an agent of Pydantic AI leaves in its history is judged, in the application's own test or in a nightly job."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelMessagesTypeAdapter
from pydantic_ai.models.test import TestModel

from pytest_approvals.testing import judge_conversation

agent = Agent(TestModel(), output_type=[str, DeferredToolRequests])


@agent.tool_plain(requires_approval=True)
def refund(order: int) -> str:
    return f"refunded {order}"


async def run_refund() -> list[Any]:
    paused = await agent.run("Refund order 42")
    assert isinstance(paused.output, DeferredToolRequests)
    answers = DeferredToolResults(approvals={call.tool_call_id: True for call in paused.output.approvals})
    done = await agent.run(message_history=paused.all_messages(), deferred_tool_results=answers)
    return list(ModelMessagesTypeAdapter.dump_python(done.all_messages(), mode="json"))


def test_what_was_stored_is_in_order() -> None:
    stored = asyncio.run(run_refund())

    assert [] == judge_conversation(stored)
    # The result comes a second time.
    assert ["result-delivered-once"] == [found.rule for found in judge_conversation([*stored[:3], *stored[2:]])]

"""What an agent of Google ADK leaves in its session is judged, in the application's own test or in a nightly job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

from pytest_approvals.testing import judge_conversation


def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse]:
        is_asked = len(llm_request.contents) == 1
        call = FunctionCall(id="c1", name="refund", args={"order": 42})
        yield LlmResponse(
            content=Content(role="model", parts=[Part(function_call=call) if is_asked else Part(text="OK")])
        )


def test_what_was_stored_is_in_order() -> None:
    tools: list[Any] = [FunctionTool(refund, require_confirmation=True)]
    runner = InMemoryRunner(LlmAgent(name="desk", model=Scripted(model="scripted"), tools=tools), app_name="shop")
    where = {"user_id": "ann", "session_id": "7"}
    asyncio.run(runner.session_service.create_session(app_name="shop", **where))
    events = list(runner.run(**where, new_message=Content(role="user", parts=[Part(text="Refund order 42")])))
    [asked] = [call for event in events for call in event.get_function_calls() if call.name != "refund"]
    answer = FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": True})
    list(runner.run(**where, new_message=Content(role="user", parts=[Part(function_response=answer)])))
    session = asyncio.run(runner.session_service.get_session(app_name="shop", **where))

    assert [] == judge_conversation(session.model_dump_json(by_alias=True))

"""
Writes what Agent Framework traces of one story.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with agent-framework-core==1.23.0 --with opentelemetry-sdk \
      --with opentelemetry-exporter-otlp-proto-common python make_agent_framework.py
"""

import asyncio
import json

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from agent_framework.observability import ChatTelemetryLayer, enable_instrumentation
from exporting import CALLS, PROMPT, Recorder


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, BaseChatClient):
    def __init__(self, replies):
        super().__init__()
        self.replies = iter(replies)

    def _inner_get_response(self, *, messages, stream, options, **others):
        contents = next(self.replies)

        async def reply():
            return ChatResponse(messages=[Message("assistant", contents)], response_id="r")

        return reply()


@tool(approval_mode="always_require")
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@tool(approval_mode="never_require")
def read(path: str) -> str:
    """Reads."""
    return f"text of {path}"


async def main():
    recorder = Recorder("agent_framework", is_global=True)
    enable_instrumentation(enable_sensitive_data=True)
    calls = [
        Content.from_function_call(call_id=call_id, name=name, arguments=json.dumps(given))
        for call_id, name, given in CALLS
    ]
    client = Scripted([[Content.from_text("Let me see."), *calls], [Content.from_text("Done.")]])
    agent = Agent(client=client, tools=[pay, read], name="clerk")
    session = agent.create_session()
    paused = await agent.run(PROMPT, session=session)
    recorder.write_otlp("paused")
    one, other = paused.user_input_requests
    answers = [one.to_function_approval_response(True), other.to_function_approval_response(False)]
    await agent.run(Message("user", answers), session=session)
    recorder.write_otlp("done")


asyncio.run(main())

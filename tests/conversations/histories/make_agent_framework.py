"""
Writes what Agent Framework stores of one story: a paused session, and the same when it was finished.

Run it with the framework's Python, from anywhere; the files next to it are written anew:

    uv run --no-project --with agent-framework-core==1.23.0 python tests/conversations/histories/make_agent_framework.py
"""

import asyncio
import json
from pathlib import Path

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

STORED = Path(__file__).parent / "stored"


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
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


def call(call_id, name, **arguments):
    return Content.from_function_call(call_id=call_id, name=name, arguments=json.dumps(arguments))


async def main():
    calls = [call("c1", "pay", amount=5), call("c2", "pay", amount=6), call("c3", "read", path="x")]
    client = Scripted([[Content.from_text("Let me see."), *calls], [Content.from_text("Done.")]])
    agent = Agent(client=client, tools=[pay, read])
    session = agent.create_session()
    paused = await agent.run("Pay 5 and 6", session=session)
    write("agent_framework_paused", session)
    one, other = paused.user_input_requests
    answers = [one.to_function_approval_response(True), other.to_function_approval_response(False)]
    await agent.run(Message("user", answers), session=session)
    write("agent_framework_done", session)


def write(name, session):
    (STORED / f"{name}.json").write_text(json.dumps(session.to_dict(), indent=1) + "\n")


asyncio.run(main())

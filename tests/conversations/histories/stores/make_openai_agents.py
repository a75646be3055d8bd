"""
Writes what a SQLite session of OpenAI Agents stores of one story: paused, and finished.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with openai-agents==0.24.0 python make_openai_agents.py
"""

import asyncio
import json
import tempfile
from pathlib import Path

from agents import Agent, Model, ModelResponse, Runner, SQLiteSession, Usage, function_tool, set_tracing_disabled
from dumping import CALLS, PROMPT, dump, pay, read
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


def said(text):
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=content)


def call(call_id, tool, given):
    return ResponseFunctionToolCall(
        type="function_call", id=f"fc_{call_id}", call_id=call_id, name=tool, arguments=json.dumps(given)
    )


class Scripted(Model):
    def __init__(self):
        self.replies = iter([[said("Let me see."), *(call(*each) for each in CALLS)], [said("Done.")]])

    async def get_response(self, *args, **kwargs):
        return ModelResponse(output=next(self.replies), usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


async def main():
    set_tracing_disabled(True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sessions.db")
        session = SQLiteSession("thread-7", path)
        agent = Agent(
            name="clerk", model=Scripted(), tools=[function_tool(pay, needs_approval=True), function_tool(read)]
        )
        state = (await Runner.run(agent, PROMPT, session=session)).to_state()
        dump(path, "openai_agents_paused")
        one, other = state.get_interruptions()
        state.approve(one)
        state.reject(other, rejection_message="no 6")
        await Runner.run(agent, state, session=session)
        dump(path, "openai_agents_done")
        session.close()


asyncio.run(main())

"""
Writes what Google ADK stores of one story, by `DatabaseSessionService` in PostgreSQL: paused, and finished.

Run it from this folder, with an empty database; the files next to it are written anew:

    uv run --no-project --with google-adk==2.13.0 --with 'sqlalchemy[asyncio]' --with asyncpg \
      python make_postgres_google_adk.py postgresql://postgres@127.0.0.1:5432/made
"""

import asyncio
import sys

from dumping import CALLS, PROMPT, dump_server, pay, read
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService
from google.adk.tools import FunctionTool
from google.genai import types

CALLED = [
    types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=given)) for call_id, name, given in CALLS
]
REPLIES = [[types.Part(text="Let me see."), *CALLED], [types.Part(text="Done.")]]


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        yield LlmResponse(content=types.Content(role="model", parts=REPLIES.pop(0)))


async def run(runner, *parts):
    message, waiting = types.Content(role="user", parts=parts), []
    async for event in runner.run_async(user_id="user", session_id="thread-7", new_message=message):
        waiting += [call.id for call in event.get_function_calls() if call.name == "adk_request_confirmation"]
    return waiting


def answer(request_id, confirmed):
    response = types.FunctionResponse(id=request_id, name="adk_request_confirmation", response={"confirmed": confirmed})
    return types.Part(function_response=response)


async def main(url):
    service = DatabaseSessionService(url.replace("postgresql://", "postgresql+asyncpg://"))
    tools = [FunctionTool(pay, require_confirmation=True), FunctionTool(read)]
    agent = LlmAgent(name="clerk", model=Scripted(model="scripted"), tools=tools)
    runner = Runner(agent=agent, app_name="shop", session_service=service)
    await service.create_session(app_name="shop", user_id="user", session_id="thread-7")
    one, other = await run(runner, types.Part(text=PROMPT))
    dump_server(url, "google_adk_paused")
    await run(runner, answer(one, True), answer(other, False))
    dump_server(url, "google_adk_done")


asyncio.run(main(sys.argv[1]))

"""
Writes what Google ADK stores of one story, by `DatabaseSessionService` in SQLite, and its sessions as JSON.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with google-adk==2.13.0 --with 'sqlalchemy[asyncio]' --with aiosqlite \
      python make_google_adk.py
"""

import asyncio
import tempfile
from pathlib import Path

from dumping import CALLS, PROMPT, STORED, dump, pay, read
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


async def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sessions.db")
        service = DatabaseSessionService(f"sqlite+aiosqlite:///{path}")
        tools = [FunctionTool(pay, require_confirmation=True), FunctionTool(read)]
        agent = LlmAgent(name="clerk", model=Scripted(model="scripted"), tools=tools)
        runner = Runner(agent=agent, app_name="shop", session_service=service)
        await service.create_session(app_name="shop", user_id="user", session_id="thread-7")
        one, other = await run(runner, types.Part(text=PROMPT))
        await write(service, path, "google_adk_paused")
        await run(runner, answer(one, True), answer(other, False))
        await write(service, path, "google_adk_done")


async def write(service, path, name):
    dump(path, name)
    session = await service.get_session(app_name="shop", user_id="user", session_id="thread-7")
    (STORED.parents[1] / "stored" / f"{name}.json").write_text(
        session.model_dump_json(by_alias=True, exclude_none=True, indent=1) + "\n"
    )


asyncio.run(main())

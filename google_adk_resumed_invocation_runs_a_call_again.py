# /// script
# requires-python = ">=3.10"
# dependencies = ["google-adk==2.13.0"]
# ///
"""An invocation that is resumed after a crash runs an approved call a second time."""
import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService
from google.adk.tools import FunctionTool
from google.genai import types

EFFECTS = Path("effects.txt")


def pay_now(amount):
    with EFFECTS.open("a") as file:
        file.write(f"{amount} ")
    return f"paid {amount}"

def die():
    """End this process as a crash does, if it is the one that is to die."""
    if sys.argv[1:] == ["crash"]:
        os.kill(os.getpid(), signal.SIGKILL)


def play_crash():
    """Let another process die in the turn with the approval."""
    subprocess.run([sys.executable, __file__, "crash"], check=False)


class ScriptedModel(BaseLlm):
    """Calls `pay`, and says that it is done when it has the result."""

    async def generate_content_async(self, llm_request, stream=False):
        has_result = any(part.function_response for content in llm_request.contents for part in content.parts)
        call = types.FunctionCall(id="c1", name="pay", args={"amount": 5})
        part = types.Part(text="Done.") if has_result else types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def pay(amount: int) -> str:
    """Pay an amount."""
    result = pay_now(amount)
    die()
    return result


KEYS = {"app_name": "app", "user_id": "user", "session_id": "session"}
PERSON = {"user_id": "user", "session_id": "session"}
agent = LlmAgent(name="agent", model=ScriptedModel(model="scripted"),
                 tools=[FunctionTool(pay, require_confirmation=True)])
app = App(name="app", root_agent=agent, resumability_config=ResumabilityConfig(is_resumable=True))
runner = Runner(app=app, session_service=DatabaseSessionService("sqlite+aiosqlite:///sessions.db"))


async def before():
    await runner.session_service.create_session(**KEYS)
    message = types.Content(role="user", parts=[types.Part(text="Pay 5")])
    async for event in runner.run_async(**PERSON, new_message=message):
        for call in event.get_function_calls():
            if call.name == "adk_request_confirmation":
                request, invocation = call.id, event.invocation_id
    answer = types.FunctionResponse(id=request, name="adk_request_confirmation", response={"confirmed": True})
    message = types.Content(role="user", parts=[types.Part(function_response=answer)])
    async for _ in runner.run_async(**PERSON, new_message=message, invocation_id=invocation):
        pass


async def after():
    session = await runner.session_service.get_session(**KEYS)
    async for _ in runner.run_async(**PERSON, invocation_id=session.events[-1].invocation_id):
        pass

if sys.argv[1:] == ["crash"]:
    asyncio.run(before())
play_crash()
asyncio.run(after())
ran = EFFECTS.read_text().split()
bug = "the call runs again, and nobody has approved that" if len(ran) > 1 else ""

print("ran:", ran)
print("BUG: " + bug if bug else "OK")
sys.exit(bool(bug))

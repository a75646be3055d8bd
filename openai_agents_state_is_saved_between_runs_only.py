# /// script
# requires-python = ">=3.10"
# dependencies = ["openai-agents==0.24.0"]
# ///
"""A RunState is kept between runs only, so that a crash forgets an approved call that has run."""
import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from agents import Agent, Model, ModelResponse, Runner, RunState, SQLiteSession, Usage
from agents import function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)

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


class ScriptedModel(Model):
    """Calls `pay`, and says that it is done when it has the result."""

    async def get_response(self, system_instructions, input, *others, **options):
        if any(item.get("type") == "function_call_output" for item in input):
            die()
            text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
            fields = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
            output = ResponseOutputMessage(content=[text], **fields)
        else:
            fields = {"type": "function_call", "call_id": "c1", "name": "pay"}
            output = ResponseFunctionToolCall(arguments='{"amount": 5}', **fields)
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *others, **options):
        raise NotImplementedError


@function_tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay an amount."""
    return pay_now(amount)


KEPT = Path("state.json")
agent = Agent(name="agent", model=ScriptedModel(), tools=[pay])


async def approve():
    state = await RunState.from_string(agent, KEPT.read_text())
    for request in state.get_interruptions():
        state.approve(request)
    await Runner.run(agent, state, session=SQLiteSession("session", "sessions.db"))


async def before():
    result = await Runner.run(agent, "Pay 5", session=SQLiteSession("session", "sessions.db"))
    KEPT.write_text(result.to_state().to_string())
    await approve()


async def after():
    await approve()  # the state that was kept waits for an approval, as if nothing had happened

if sys.argv[1:] == ["crash"]:
    asyncio.run(before())
play_crash()
asyncio.run(after())
ran = EFFECTS.read_text().split()
bug = "the call had returned, and is asked about and runs again" if len(ran) > 1 else ""

print("ran:", ran)
print("BUG: " + bug if bug else "OK")
sys.exit(bool(bug))

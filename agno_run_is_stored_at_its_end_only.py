# /// script
# requires-python = ">=3.10"
# dependencies = ["agno==3.1.10", "sqlalchemy"]
# ///
"""A continued run is stored at its end only, so that a crash forgets an approved call that has run."""
import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools import tool

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

    def invoke(self, messages, *others, **options):
        if messages[-1].role == "tool":
            die()
            return ModelResponse(role="assistant", content="Done.")
        function = {"name": "pay", "arguments": '{"amount": 5}'}
        call = {"id": "c1", "type": "function", "function": function}
        return ModelResponse(role="assistant", content="", tool_calls=[call])

    async def ainvoke(self, messages, *others, **options):
        return self.invoke(messages)

    def invoke_stream(self, *others, **options):
        raise NotImplementedError

    ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke_stream


@tool(requires_confirmation=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return pay_now(amount)


agent = Agent(model=ScriptedModel(id="scripted"), tools=[pay], db=SqliteDb(db_file="runs.db"), session_id="s",
              telemetry=False)


async def approve(run):
    for requirement in run.active_requirements:
        requirement.confirm()
    await agent.acontinue_run(run_id=run.run_id, requirements=run.requirements)


async def before():
    await approve(await agent.arun("Pay 5"))


async def after():
    run = agent.get_session(session_id="s").runs[-1]
    print("after the crash:", run.status, [requirement.confirmation for requirement in run.active_requirements])
    await approve(run)  # it waits for an approval, as if nothing had happened

if sys.argv[1:] == ["crash"]:
    asyncio.run(before())
play_crash()
asyncio.run(after())
ran = EFFECTS.read_text().split()
bug = "the call had returned, and is asked about and runs again" if len(ran) > 1 else ""

print("ran:", ran)
print("BUG: " + bug if bug else "OK")
sys.exit(bool(bug))

# /// script
# requires-python = ">=3.10"
# dependencies = ["langchain==1.4.7", "langgraph-checkpoint-sqlite", "aiosqlite"]
# ///
"""A thread that is resumed after a crash runs an approved call a second time."""
import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

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


class ScriptedModel(BaseChatModel):
    """Calls `pay`, and says that it is done when it has the result."""

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options):
        call = {"type": "tool_call", "id": "c1", "name": "pay", "args": {"amount": 5}}
        reply = AIMessage("Done.") if messages[-1].type == "tool" else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    result = pay_now(amount)
    die()
    return result


THREAD = {"configurable": {"thread_id": "1"}}


async def run(*inputs):
    async with AsyncSqliteSaver.from_conn_string("checkpoints.db") as saver:
        agent = create_agent(ScriptedModel(), tools=[pay], checkpointer=saver,
                             middleware=[HumanInTheLoopMiddleware({"pay": True})])
        for input in inputs:
            await agent.ainvoke(input, THREAD, durability="sync")


async def before():
    approval = Command(resume={"decisions": [{"type": "approve"}]})
    await run({"messages": [{"role": "user", "content": "Pay 5"}]}, approval)


async def after():
    await run(None)  # as the guide "Durable execution" says

if sys.argv[1:] == ["crash"]:
    asyncio.run(before())
play_crash()
asyncio.run(after())
ran = EFFECTS.read_text().split()
bug = "the call runs again, and nobody has approved that" if len(ran) > 1 else ""

print("ran:", ran)
print("BUG: " + bug if bug else "OK")
sys.exit(bool(bug))

# /// script
# requires-python = ">=3.10"
# dependencies = ["strands-agents==1.62.0"]
# ///
"""A snapshot is saved after an invocation only, so that a crash forgets an approved call that has run."""
import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent, HookProvider
from strands.models import Model
from strands.session import SnapshotSessionManager
from strands.storage import LocalFileStorage

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

    update_config = get_config = structured_output = lambda self, *others, **options: {}

    async def stream(self, messages, *others, **options):
        has_result = any("toolResult" in block for block in messages[-1]["content"])
        if has_result:
            die()
        start = {} if has_result else {"toolUse": {"toolUseId": "c1", "name": "pay"}}
        delta = {"text": "Done."} if has_result else {"toolUse": {"input": '{"amount": 5}'}}
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if has_result else "tool_use"}}


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    return pay_now(amount)


class Approval(HookProvider):
    """The gate of the guide "Interrupts"."""

    def register_hooks(self, registry, **options):
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event):
        if event.interrupt("approval", reason=event.tool_use["input"]) != "y":
            event.cancel_tool = "User denied permission"


def build():
    manager = SnapshotSessionManager("session", storage=LocalFileStorage("."))
    return Agent(model=ScriptedModel(), tools=[pay], hooks=[Approval()], session_manager=manager, callback_handler=None)


async def approve(agent, interrupts):
    await agent.invoke_async([{"interruptResponse": {"interruptId": each.id, "response": "y"}} for each in interrupts])


async def before():
    agent = build()
    await approve(agent, (await agent.invoke_async("Pay 5")).interrupts)


async def after():
    agent = build()
    await approve(agent, agent._interrupt_state.interrupts.values())  # they wait, as if nothing had happened

if sys.argv[1:] == ["crash"]:
    asyncio.run(before())
play_crash()
asyncio.run(after())
ran = EFFECTS.read_text().split()
bug = "the call had returned, and is asked about and runs again" if len(ran) > 1 else ""

print("ran:", ran)
print("BUG: " + bug if bug else "OK")
sys.exit(bool(bug))

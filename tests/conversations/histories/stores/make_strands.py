"""
Writes what the file sessions of Strands store of one story: paused, and finished.

Run it from this folder; the folders next to it are written anew:

    uv run --no-project --with strands-agents==1.62.0 python make_strands.py
"""

import json
import shutil
import tempfile

from dumping import CALLS, PROMPT, STORED, pay, read
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent, HookProvider
from strands.models import Model
from strands.session.file_session_manager import FileSessionManager


class Scripted(Model):
    update_config = get_config = structured_output = lambda self, *others, **options: {}

    def __init__(self):
        calls = [{"toolUse": {"toolUseId": call_id, "name": name, "input": given}} for call_id, name, given in CALLS]
        self.replies = [[{"text": "Let me see."}, *calls], [{"text": "Done."}]]

    async def stream(self, messages, *others, **options):
        reply = self.replies.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        for block in reply:
            use = block.get("toolUse")
            start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}} if use else {}
            yield {"contentBlockStart": {"start": start}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(use["input"])}} if use else block}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if "toolUse" in reply[-1] else "end_turn"}}


class Approval(HookProvider):
    def register_hooks(self, registry, **options):
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event):
        if event.tool_use["name"] != "pay":
            return
        answer = event.interrupt("approval", reason={"call": event.tool_use["toolUseId"]})
        if answer != "y":
            event.cancel_tool = answer


def main():
    with tempfile.TemporaryDirectory() as folder:
        sessions = FileSessionManager(session_id="thread-7", storage_dir=folder)
        agent = Agent(
            model=Scripted(),
            tools=[tool(pay), tool(read)],
            hooks=[Approval()],
            callback_handler=None,
            agent_id="clerk",
            session_manager=sessions,
        )
        one, other = agent(PROMPT).interrupts
        copy(folder, "strands_paused")
        answers = ((one, "y"), (other, "no 6"))
        agent([{"interruptResponse": {"interruptId": each.id, "response": response}} for each, response in answers])
        copy(folder, "strands_done")


def copy(folder, name):
    shutil.rmtree(STORED / name, ignore_errors=True)
    shutil.copytree(folder, STORED / name)


main()

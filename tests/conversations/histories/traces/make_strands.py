"""
Writes what Strands Agents traces of one story, with the attributes that it writes by default and with the newest ones.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with strands-agents==1.62.0 --with opentelemetry-exporter-otlp-proto-common \
      python make_strands.py
"""

import json
import os
import subprocess
import sys

from exporting import CALLS, PROMPT, Recorder
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent, HookProvider
from strands.models import Model


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


@tool
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@tool
def read(path: str) -> str:
    """Reads."""
    return f"text of {path}"


class Approval(HookProvider):
    def register_hooks(self, registry, **options):
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event):
        if event.tool_use["name"] != "pay":
            return
        answer = event.interrupt("approval", reason={"call": event.tool_use["toolUseId"]})
        if answer != "y":
            event.cancel_tool = answer


def main(name):
    recorder = Recorder(name, is_global=True)
    attributes = {"session.id": "thread-7"}
    agent = Agent(
        model=Scripted(),
        tools=[pay, read],
        hooks=[Approval()],
        callback_handler=None,
        name="clerk",
        trace_attributes=attributes,
    )
    one, other = agent(PROMPT).interrupts
    recorder.write_otlp("paused")
    answers = ((one, "y"), (other, "no 6"))
    agent([{"interruptResponse": {"interruptId": each.id, "response": response}} for each, response in answers])
    recorder.write_otlp("done")


if len(sys.argv) > 1:
    main(sys.argv[1])
else:
    # The attributes are chosen when the library is imported.
    newest = {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}
    for name, chosen in (("", {}), ("_newest", newest)):
        subprocess.run([sys.executable, __file__, f"strands{name}"], env=os.environ | chosen, check=True)

"""
Writes what AutoGen saves of one story: the state of an agent and of a team, and the messages of a run.

Run it from this folder; the files in `stored` are written anew:

    uv run --no-project --with autogen-agentchat==0.7.5 --with 'autogen-ext==0.7.5' python make_autogen.py
"""

import asyncio
import json
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelFamily, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

STORED = Path(__file__).parent / "stored"
PROMPT = "Pay 5 and 6"
CALLS = [
    FunctionCall(id="c1", name="pay", arguments='{"amount": 5}'),
    FunctionCall(id="c2", name="pay", arguments='{"amount": 6}'),
    FunctionCall(id="c3", name="read", arguments='{"path": "x"}'),
]


async def pay(amount: int) -> str:
    """Pays."""
    if amount == 6:
        raise PermissionError("no 6")
    return f"paid {amount}"


async def read(path: str) -> str:
    """Reads."""
    return f"text of {path}"


def reply(content, thought=None):
    reason = "stop" if isinstance(content, str) else "function_calls"
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
    return CreateResult(finish_reason=reason, content=content, usage=usage, cached=False, thought=thought)


def build(name, *replies):
    info = {"function_calling": True, "json_output": False, "vision": False, "family": ModelFamily.UNKNOWN,
            "structured_output": False, "multiple_system_messages": True}  # fmt: skip
    model = ReplayChatCompletionClient(list(replies), model_info=info)
    return AssistantAgent(name, model_client=model, tools=[pay, read], reflect_on_tool_use=True)


def write(name, value):
    (STORED / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")


async def main():
    agent = build("clerk", reply(CALLS, "Let me see."), reply("Done."))
    result = await agent.run(task=PROMPT)
    write("autogen_done", await agent.save_state())
    write("autogen_run_done", {"messages": [message.model_dump(mode="json") for message in result.messages]})
    first = build("clerk", reply(CALLS[:1]), reply("Paid."))
    second = build("reader", reply(CALLS[2:]), reply("Read."))
    team = RoundRobinGroupChat([first, second], termination_condition=MaxMessageTermination(3))
    await team.run(task=PROMPT)
    write("autogen_team", await team.save_state())


asyncio.run(main())

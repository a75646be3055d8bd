"""
Writes what LangChain and LangGraph store of one story, exported as JSON in each way that a reader knows.

Run it with the framework's Python, from anywhere; the files next to it are written anew:

    cd tests/conversations/histories
    uv run --no-project --with langchain==1.4.2 --with langgraph==1.2.22 python make_langgraph.py
"""

import dataclasses
import json
from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, messages_to_dict
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

STORED = Path(__file__).parent / "stored"
THREAD = {"configurable": {"thread_id": "t"}}


class Scripted(GenericFakeChatModel):
    def bind_tools(self, *args, **kwargs):
        return self


@tool
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@tool
def read(path: str) -> str:
    """Reads."""
    return f"text of {path}"


def call(call_id, name, **arguments):
    return {"id": call_id, "name": name, "args": arguments, "type": "tool_call"}


def plain(value):
    """Return what JSON cannot hold as those do who export a checkpoint."""
    if hasattr(value, "lc_id"):
        return dumpd(value)
    if hasattr(value, "_asdict"):
        return value._asdict()
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else str(value)


def write(name, value):
    (STORED / f"{name}.json").write_text(json.dumps(value, indent=1, default=plain) + "\n")


def write_all(agent, saver, how):
    state = agent.get_state(THREAD)
    messages = state.values["messages"]
    write(f"langchain_dict_{how}", messages_to_dict(messages))
    write(f"langchain_dumpd_{how}", dumpd(messages))
    write(f"langchain_model_{how}", [message.model_dump() for message in messages])
    write(f"langgraph_state_{how}", state._asdict())
    write(f"langgraph_checkpoints_{how}", [each._asdict() for each in saver.list(THREAD)])


def main():
    calls = [call("c1", "pay", amount=5), call("c2", "pay", amount=6), call("c3", "read", path="x")]
    model = Scripted(messages=iter([AIMessage("Let me see.", tool_calls=calls), AIMessage("Done.")]))
    saver = InMemorySaver()
    gate = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    agent = create_agent(model, [pay, read], middleware=[gate], checkpointer=saver)
    agent.invoke({"messages": [HumanMessage("Pay 5 and 6")]}, THREAD)
    write_all(agent, saver, "paused")
    decisions = [{"type": "approve"}, {"type": "reject", "message": "no 6"}]
    agent.invoke(Command(resume={"decisions": decisions}), THREAD)
    write_all(agent, saver, "done")


main()

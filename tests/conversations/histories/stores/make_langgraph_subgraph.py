"""
Writes what the SQLite saver of LangGraph stores of a graph whose node is an agent, and of an agent that a tool runs,
and the states of both while they are paused, as a server exports them.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with langchain==1.4.7 --with langgraph==1.2.22 --with langgraph-checkpoint-sqlite \
      python make_langgraph_subgraph.py
"""

import dataclasses
import json
import tempfile
from pathlib import Path

from dumping import PROMPT, STORED, dump, pay
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command


class Scripted(GenericFakeChatModel):
    def bind_tools(self, *args, **kwargs):
        return self


def call(call_id, name, **given):
    return {"id": call_id, "name": name, "args": given, "type": "tool_call"}


def make_cashier():
    calls = [call("i1", "pay", amount=5), call("i2", "pay", amount=6)]
    model = Scripted(messages=iter([AIMessage("I pay.", tool_calls=calls), AIMessage("One is paid.")]))
    return create_agent(model, [pay], middleware=[HumanInTheLoopMiddleware(interrupt_on={"pay": True})], name="cashier")


def make_node(saver):
    graph = StateGraph(MessagesState)
    graph.add_node("cashier", make_cashier())
    graph.add_edge(START, "cashier")
    return graph.compile(checkpointer=saver)


def make_tool(saver):
    inner = make_cashier()

    def cashier(task: str) -> str:
        """Asks the cashier."""
        return inner.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content

    asks = AIMessage("Let me see.", tool_calls=[call("o1", "cashier", task="pay 5 and 6")])
    return create_agent(Scripted(messages=iter([asks, AIMessage("Done.")])), [cashier], checkpointer=saver)


def plain(value):
    """Return what JSON holds of a state: an object for each of its parts."""
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if dataclasses.is_dataclass(value):
        return plain({each.name: getattr(value, each.name) for each in dataclasses.fields(value)})
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.model_dump() if hasattr(value, "model_dump") else value


def main():
    thread = {"configurable": {"thread_id": "thread-7"}}
    for kind, make in (("node", make_node), ("tool", make_tool)):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "checkpoints.db"))
            with SqliteSaver.from_conn_string(path) as saver:
                agent = make(saver)
                agent.invoke({"messages": [HumanMessage(PROMPT)]}, thread)
                dump(path, f"langgraph_{kind}_paused")
                state = json.dumps(plain(agent.get_state(thread, subgraphs=True)), indent=1, default=str)
                (STORED.parents[1] / "stored" / f"langgraph_state_{kind}_paused.json").write_text(f"{state}\n")
                decisions = [{"type": "approve"}, {"type": "reject", "message": "no 6"}]
                agent.invoke(Command(resume={"decisions": decisions}), thread)
                dump(path, f"langgraph_{kind}_done")


if __name__ == "__main__":
    main()

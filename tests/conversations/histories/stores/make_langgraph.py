"""
Writes what the SQLite saver of LangGraph stores of one story: paused, and finished.

Run it from this folder; the files next to it are written anew:

    uv run --no-project --with langchain==1.4.2 --with langgraph==1.2.22 --with langgraph-checkpoint-sqlite \
      python make_langgraph.py
"""

import tempfile
from pathlib import Path

from dumping import CALLS, PROMPT, dump, pay, read
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command


class Scripted(GenericFakeChatModel):
    def bind_tools(self, *args, **kwargs):
        return self


def main():
    calls = [{"id": call_id, "name": name, "args": given, "type": "tool_call"} for call_id, name, given in CALLS]
    model = Scripted(messages=iter([AIMessage("Let me see.", tool_calls=calls), AIMessage("Done.")]))
    gate = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    thread = {"configurable": {"thread_id": "thread-7"}}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "checkpoints.db"))
        with SqliteSaver.from_conn_string(path) as saver:
            agent = create_agent(model, [pay, read], middleware=[gate], checkpointer=saver)
            agent.invoke({"messages": [HumanMessage(PROMPT)]}, thread)
            dump(path, "langgraph_paused")
            decisions = [{"type": "approve"}, {"type": "reject", "message": "no 6"}]
            agent.invoke(Command(resume={"decisions": decisions}), thread)
            dump(path, "langgraph_done")


main()

"""
Writes what the PostgreSQL saver of LangGraph stores of one story: paused, and finished.

Run it from this folder, with an empty database; the files next to it are written anew:

    uv run --no-project --with langchain==1.4.7 --with langgraph-checkpoint-postgres==3.2.0 --with 'psycopg[binary]' \
      python make_postgres_langgraph.py postgresql://postgres@127.0.0.1:5432/made
"""

import sys

from dumping import CALLS, PROMPT, dump_server, pay, read
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command


class Scripted(GenericFakeChatModel):
    def bind_tools(self, *args, **kwargs):
        return self


def main(url):
    calls = [{"id": call_id, "name": name, "args": given, "type": "tool_call"} for call_id, name, given in CALLS]
    model = Scripted(messages=iter([AIMessage("Let me see.", tool_calls=calls), AIMessage("Done.")]))
    gate = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    thread = {"configurable": {"thread_id": "thread-7"}}
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        agent = create_agent(model, [pay, read], middleware=[gate], checkpointer=saver)
        agent.invoke({"messages": [HumanMessage(PROMPT)]}, thread)
        dump_server(url, "langgraph_paused")
        decisions = [{"type": "approve"}, {"type": "reject", "message": "no 6"}]
        agent.invoke(Command(resume={"decisions": decisions}), thread)
        dump_server(url, "langgraph_done")


main(sys.argv[1])

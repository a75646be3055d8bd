"""
Writes what the PostgreSQL saver of LangGraph stores of a graph whose node is an agent, and of an agent that a tool
runs: paused, and finished.

Run it from this folder, with an empty database; the files next to it are written anew:

    uv run --no-project --with langchain==1.4.7 --with langgraph-checkpoint-postgres==3.2.0 --with 'psycopg[binary]' \
      --with langgraph-checkpoint-sqlite \
      python make_postgres_langgraph_subgraph.py postgresql://postgres@127.0.0.1:5432/made
"""

import sys

import psycopg
from dumping import PROMPT, dump_server
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command
from make_langgraph_subgraph import make_node, make_tool


def main(url):
    thread = {"configurable": {"thread_id": "thread-7"}}
    for kind, make in (("node", make_node), ("tool", make_tool)):
        with psycopg.connect(url) as connection:
            connection.execute("drop schema public cascade; create schema public")
        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            agent = make(saver)
            agent.invoke({"messages": [HumanMessage(PROMPT)]}, thread)
            dump_server(url, f"langgraph_{kind}_paused")
            decisions = [{"type": "approve"}, {"type": "reject", "message": "no 6"}]
            agent.invoke(Command(resume={"decisions": decisions}), thread)
            dump_server(url, f"langgraph_{kind}_done")


main(sys.argv[1])

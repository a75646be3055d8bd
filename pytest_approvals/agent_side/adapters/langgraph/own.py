"""A graph of one's own around a `ToolNode`, as the guides of LangGraph have it: one node runs all calls of a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


def own_graph(name: str, model: Any, tools: Sequence[Any], checkpointer: Any) -> Any:
    """Gives the graph of the agent called *name*."""
    offering = model.bind_tools(tools)

    async def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await offering.ainvoke(state["messages"])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=checkpointer, name=name)

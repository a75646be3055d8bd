"""
Agents that hand the conversation over to each other: a graph around their graphs.

It is what the guide "Handoffs" has for agents that are graphs of their own: a tool gives a `Command` to the graph
around its own one, which goes on at the other agent and keeps in its state who has the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from ...contract import MAIN, ToolSpec


class Conversation(MessagesState):
    """The state of the graph around: the messages, and the agent that has the conversation."""

    active: str


def members(specs: Iterable[ToolSpec]) -> list[str]:
    """Gives the agents that share the conversation; none where nobody hands it over."""
    handing = [spec for spec in specs if spec.hands_over_to]
    return list(dict.fromkeys([MAIN, *(str(spec.hands_over_to) for spec in handing)])) if handing else []


def around(agents: Mapping[str, Any], names: list[str], saver: Any) -> Any:
    """Gives the graph around those of *names*, which begins each run at the agent that has the conversation."""
    graph = StateGraph(Conversation)
    for name in names:
        graph.add_node(name, agents[name])
    graph.add_conditional_edges(START, _active, names)
    return graph.compile(checkpointer=saver)


def _active(state: Mapping[str, Any]) -> str:
    return str(state.get("active") or MAIN)


def handing_over(spec: ToolSpec) -> StructuredTool:
    """Gives the tool that hands over, with all that was said."""

    def hand_over(
        state: Annotated[dict[str, Any], InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Any:
        target = str(spec.hands_over_to)
        told = ToolMessage(f"Transferred to {target}.", name=spec.name, tool_call_id=tool_call_id)
        update = {"active": target, "messages": [*state["messages"], told]}
        return Command(goto=target, graph=Command.PARENT, update=update)

    # The annotations are looked up in this module, where they are texts.
    hand_over.__annotations__ = {
        "state": Annotated[dict[str, Any], InjectedState],
        "tool_call_id": Annotated[str, InjectedToolCallId],
    }
    return StructuredTool.from_function(hand_over, name=spec.name, description=spec.description)

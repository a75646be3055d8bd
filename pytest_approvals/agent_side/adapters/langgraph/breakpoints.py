"""Static breakpoints of a user's graph (`interrupt_before`, `interrupt_after`), as requests about the calls that wait.

A breakpoint shows nothing: the person reads the state of the thread, and lets the graph go on or changes the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...contract import MAIN, Decision, Request, ToolSpec, Unsupported

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

_PREFIX = "breakpoint/"
_REJECTED = "The user rejected this call."


def read_breakpoint(graph: Any, state: StateSnapshot, tools: Sequence[ToolSpec]) -> tuple[Request, ...]:
    """Return a request about each call that waits at a breakpoint of the graph; none if it waits at no breakpoint."""
    has_breakpoints = getattr(graph, "interrupt_before_nodes", ()) or getattr(graph, "interrupt_after_nodes", ())
    if not has_breakpoints or not state.next or any(task.interrupts for task in state.tasks):
        return ()
    specs = {spec.name: spec for spec in tools if spec.agent == MAIN}
    return tuple(
        Request(
            id=f"{_PREFIX}{call['id']}",
            call_id=call["id"],
            tool=call["name"],
            arguments=call["args"],
            kind=specs[call["name"]].kind if call["name"] in specs else "function",
        )
        for call in _list_open_calls(state)
    )


def _list_open_calls(state: StateSnapshot) -> list[Any]:
    messages = state.values.get("messages", ()) if isinstance(state.values, dict) else ()
    answered = {message.tool_call_id for message in messages if message.type == "tool"}
    last = next((message for message in reversed(messages) if message.type == "ai"), None)
    return [call for call in getattr(last, "tool_calls", ()) if call["id"] not in answered]


def is_about_breakpoint(decision: Decision) -> bool:
    """Return whether a decision answers a request of `read_breakpoint`."""
    return decision.request is not None and decision.request.id.startswith(_PREFIX)


async def write_into_state(graph: Any, config: Any, decisions: Sequence[Decision]) -> None:
    """Answer the calls that wait at a breakpoint: nothing for approvals, messages in the state for rejections.

    Raises:
        Unsupported: The calls of the reply are decided on differently, or not all, or one is edited.
    """
    from langchain_core.messages import ToolMessage

    state = await graph.aget_state(config)
    calls = {call["id"]: call for call in _list_open_calls(state)}
    told = {decision.request.call_id: decision for decision in decisions if decision.request is not None}
    verdicts = {decision.meant or decision.verdict for decision in told.values()}
    if not verdicts <= {"approve", "reject"}:
        raise Unsupported(min(verdicts - {"approve", "reject"}), "a breakpoint stops, and takes no other arguments")
    if len(verdicts) > 1 or set(told) != set(calls):
        raise Unsupported("parallel", "a breakpoint stops before all calls of a reply; decide on them alike, at once")
    if verdicts == {"reject"}:
        messages = [
            ToolMessage(_rejection_text(decision), name=calls[call_id]["name"], tool_call_id=call_id)
            for call_id, decision in told.items()
        ]
        await graph.aupdate_state(config, {"messages": messages}, as_node=state.next[0])


def _rejection_text(decision: Decision) -> str:
    return str(decision.raw) if decision.meant is not None else decision.reason or _REJECTED

"""The state of an agent: its snapshot, and the interrupts in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

_OF_A_CALL = re.compile(r"v1:(?!agent_as_tool:)\w+:(?P<call>.*):[0-9a-f-]{36}", re.DOTALL)
"""The id of an interrupt that an agent's own gate raised about a call; that of a sub-agent's is longer."""


def open_interrupts(agent: Any) -> list[Any]:
    """
    Gives the interrupts that hold the agent up.

    Those wait for a response. So does one whose response came with an invocation that failed: it stays in the state,
    the call did not run, and the agent takes nothing but responses.
    """
    from strands.interrupt import Interrupt

    state = interrupt_state(agent)
    if not state["activated"]:
        return []
    every = list(state["interrupts"].values())
    settled = _settled(state) | {_call(one) for one in every if one["response"] is None}
    return [Interrupt(**one) for one in every if one["response"] is None or _call(one) not in settled]


def interrupted_calls(agent: Any) -> dict[str, Mapping[str, Any]]:
    """Gives the calls of the reply that is held up, and those of sub-agents that are, by id."""
    return dict(_calls(interrupt_state(agent)))


def _calls(state: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for turn in state["context"].get("sub_agent_interrupted_turns", {}).values():
        yield from _calls(turn["data"]["interrupt_state"])
    message, _ = _pending(state)
    for block in message["content"]:
        if "toolUse" in block:
            yield block["toolUse"]["toolUseId"], block["toolUse"]


def _pending(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Any]]:
    """Gives the message whose calls are held up, and the results that are there; older releases keep both elsewhere."""
    pending = state.get("pending_tool_execution")
    if pending:
        return pending["assistant_message"], pending["completed_tool_results"]
    context = state["context"]
    return context.get("tool_use_message", {"content": ()}), context.get("tool_results", [])


def _settled(state: Mapping[str, Any]) -> set[str | None]:
    _, results = _pending(state)
    return {None, *(result["toolUseId"] for result in results)}


def _call(interrupt: Mapping[str, Any]) -> str | None:
    matched = _OF_A_CALL.fullmatch(interrupt["id"])
    return matched["call"] if matched else None


# --- what there is in a release ---------------------------------------------------------------------------------------


def interrupt_state(agent: Any) -> Mapping[str, Any]:
    """Gives the interrupt state; releases without snapshots show it in what they save of an agent."""
    if hasattr(agent, "take_snapshot"):
        state: Mapping[str, Any] = agent.take_snapshot(include=["interrupt_state"]).data["interrupt_state"]
        return state
    shown: Mapping[str, Any] = _saved(agent)["_internal_state"]["interrupt_state"]
    return shown


def written(agent: Any) -> dict[str, Any]:
    """
    Gives the state as JSON: a snapshot, and in releases that have none what a session manager saves of an agent.

    When a snapshot was taken is no part of the state, and does not make it another one.
    """
    if hasattr(agent, "take_snapshot"):
        return {**agent.take_snapshot(preset="session").to_dict(), "created_at": ""}
    return {"messages": agent.messages, "agent": {**_saved(agent), "created_at": "", "updated_at": ""}}


def restored(agent: Any, saved: Mapping[str, Any]) -> None:
    """Puts what `written` gave into *agent*."""
    if hasattr(agent, "load_snapshot"):
        from strands.types._snapshot import Snapshot

        agent.load_snapshot(Snapshot.from_dict(saved))
        return
    from strands.agent.state import AgentState
    from strands.types.session import SessionAgent

    session = SessionAgent.from_dict(saved["agent"])
    agent.messages = saved["messages"]
    agent.state = AgentState(session.state)
    session.initialize_internal_state(agent)


def copied(agent: Any, other: Any) -> None:
    """Puts a snapshot of *agent*, which is made to be independent of it, into *other*."""
    if hasattr(agent, "take_snapshot"):
        other.load_snapshot(agent.take_snapshot(preset="session"))
    else:
        restored(other, deepcopy(written(agent)))


def _saved(agent: Any) -> dict[str, Any]:
    from strands.types.session import SessionAgent

    saved: dict[str, Any] = SessionAgent.from_agent(agent).to_dict()
    return saved

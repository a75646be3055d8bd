"""The state of an agent: its snapshot, and the interrupts in it.

The framework's own stores: session managers, which an agent is made with.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from ...contract import Blueprint

_CALL_INTERRUPT_ID = re.compile(r"v1:(?!agent_as_tool:)\w+:(?P<call>.*):[0-9a-f-]{36}", re.DOTALL)
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
    settled = _settled_calls(state) | {_call_id_of(one) for one in every if one["response"] is None}
    return [Interrupt(**one) for one in every if one["response"] is None or _call_id_of(one) not in settled]


def interrupted_calls(agent: Any) -> dict[str, Mapping[str, Any]]:
    """Gives the calls of the reply that is held up, and those of sub-agents that are, by id."""
    return dict(_iterate_calls(interrupt_state(agent)))


def _iterate_calls(state: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for turn in state["context"].get("sub_agent_interrupted_turns", {}).values():
        yield from _iterate_calls(turn["data"]["interrupt_state"])
    message, _ = _pending_reply(state)
    for block in message["content"]:
        if "toolUse" in block:
            yield block["toolUse"]["toolUseId"], block["toolUse"]


def _pending_reply(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Any]]:
    """Gives the message whose calls are held up, and the results that are there; older releases keep both elsewhere."""
    pending = state.get("pending_tool_execution")
    if pending:
        return pending["assistant_message"], pending["completed_tool_results"]
    context = state["context"]
    return context.get("tool_use_message", {"content": ()}), context.get("tool_results", [])


def _settled_calls(state: Mapping[str, Any]) -> set[str | None]:
    _, results = _pending_reply(state)
    return {None, *(result["toolUseId"] for result in results)}


def _call_id_of(interrupt: Mapping[str, Any]) -> str | None:
    matched = _CALL_INTERRUPT_ID.fullmatch(interrupt["id"])
    return matched["call"] if matched else None


# --- what there is in a release ---------------------------------------------------------------------------------------


def interrupt_state(agent: Any) -> Mapping[str, Any]:
    """Gives the interrupt state; releases without snapshots show it in what they save of an agent."""
    if hasattr(agent, "take_snapshot"):
        state: Mapping[str, Any] = agent.take_snapshot(include=["interrupt_state"]).data["interrupt_state"]
        return state
    shown: Mapping[str, Any] = _session_agent_dict(agent)["_internal_state"]["interrupt_state"]
    return shown


def write_state(agent: Any) -> dict[str, Any]:
    """
    Gives the state as JSON: a snapshot, and in releases that have none what a session manager saves of an agent.

    When a snapshot was taken is no part of the state, and does not make it another one.
    """
    if hasattr(agent, "take_snapshot"):
        return {**agent.take_snapshot(preset="session").to_dict(), "created_at": ""}
    return {"messages": agent.messages, "agent": {**_session_agent_dict(agent), "created_at": "", "updated_at": ""}}


def restore_state(agent: Any, saved: Mapping[str, Any]) -> None:
    """Puts what `write_state` gave into *agent*."""
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


def copy_state(agent: Any, other: Any) -> None:
    """Puts a snapshot of *agent*, which is made to be independent of it, into *other*."""
    if hasattr(agent, "take_snapshot"):
        other.load_snapshot(agent.take_snapshot(preset="session"))
    else:
        restore_state(other, deepcopy(write_state(agent)))


def _session_agent_dict(agent: Any) -> dict[str, Any]:
    from strands.types.session import SessionAgent

    saved: dict[str, Any] = SessionAgent.from_agent(agent).to_dict()
    return saved


def build_session_manager(blueprint: Blueprint, session: str) -> Any:
    """Gives the session manager that a serialize mode asks for; None where there is none."""
    if blueprint.serialize == "native.files":
        from strands.session import FileSessionManager

        return FileSessionManager(session_id=session, storage_dir=os.path.join(blueprint.directory, "sessions"))
    if blueprint.serialize == "native.snapshots":
        from strands.session import SnapshotSessionManager
        from strands.storage import LocalFileStorage

        return SnapshotSessionManager(session, storage=LocalFileStorage(blueprint.directory))
    return None


async def write_reference(agent: Any, manager: Any, session: str) -> str:
    """
    Gives the reference into the store: the session, and where snapshots are kept, the one of this moment.

    `FileSessionManager` keeps the newest state of a session and no older one.
    """
    if not hasattr(manager, "save_snapshot"):
        return json.dumps({"session": session})
    return json.dumps({"session": session, "snapshot": await manager.save_snapshot(agent, is_latest=False)})


async def follow_reference(agent: Any, manager: Any, where: dict[str, Any]) -> None:
    """Goes to the snapshot that a reference names; the newest state of the session is restored without it."""
    if "snapshot" in where:
        await manager.restore_snapshot(agent, snapshot_id=where["snapshot"])

"""State of an agent: its snapshots, the interrupts in them, and its session managers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from ...contract import Blueprint

_CALL_INTERRUPT_ID = re.compile(r"v1:(?!agent_as_tool:)\w+:(?P<call>.*):[0-9a-f-]{36}", re.DOTALL)
"""Id of an interrupt that an agent's own gate raised about a call; a sub-agent's is longer."""


def open_interrupts(agent: Any) -> list[Any]:
    """Return the interrupts that the agent waits for.

    Those wait for a response. So does one whose response came with an invocation that failed: it stays in the state,
    the call did not run, and the agent accepts nothing but responses. A call whose sub-agent was interrupted has begun.
    """
    from strands.interrupt import Interrupt

    state = interrupt_state(agent)
    if not state["activated"]:
        return []
    interrupts = list(state["interrupts"].values())
    settled = _settled_calls(state) | {
        _call_id_of(interrupt) for interrupt in interrupts if interrupt["response"] is None
    }
    return [
        Interrupt(**interrupt)
        for interrupt in interrupts
        if interrupt["response"] is None or _call_id_of(interrupt) not in settled
    ]


def interrupted_calls(agent: Any) -> dict[str, Mapping[str, Any]]:
    """Return the calls of the interrupted reply, and of interrupted sub-agents, by id."""
    return dict(_iterate_calls(interrupt_state(agent)))


def _iterate_calls(state: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for turn in state["context"].get("sub_agent_interrupted_turns", {}).values():
        yield from _iterate_calls(turn["data"]["interrupt_state"])
    message, _ = _pending_reply(state)
    for block in message["content"]:
        if "toolUse" in block:
            yield block["toolUse"]["toolUseId"], block["toolUse"]


def _pending_reply(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Any]]:
    """Return the message with the interrupted calls, and the results that exist.

    Older releases keep both elsewhere.
    """
    pending = state.get("pending_tool_execution")
    if pending:
        return pending["assistant_message"], pending["completed_tool_results"]
    context = state["context"]
    return context.get("tool_use_message", {"content": ()}), context.get("tool_results", [])


def _settled_calls(state: Mapping[str, Any]) -> set[str | None]:
    _, results = _pending_reply(state)
    interrupted = state["context"].get("sub_agent_interrupted_turns", {})
    # None stands for interrupts that are about no call of this agent, such as those of sub-agents.
    return {None, *interrupted, *(result["toolUseId"] for result in results)}


def _call_id_of(interrupt: Mapping[str, Any]) -> str | None:
    matched = _CALL_INTERRUPT_ID.fullmatch(interrupt["id"])
    return matched["call"] if matched else None


# --- what there is in a release ---------------------------------------------------------------------------------------


def interrupt_state(agent: Any) -> Mapping[str, Any]:
    """Return the interrupt state; without snapshots, from what is saved of an agent."""
    if hasattr(agent, "take_snapshot"):
        state: Mapping[str, Any] = agent.take_snapshot(include=["interrupt_state"]).data["interrupt_state"]
        return state
    shown: Mapping[str, Any] = _session_agent_dict(agent)["_internal_state"]["interrupt_state"]
    return shown


def write_state(agent: Any) -> dict[str, Any]:
    """Return the state as JSON: a snapshot, or what a session manager saves of an agent.

    Releases without snapshots have the latter. The time of a snapshot is not part of the state.
    """
    if hasattr(agent, "take_snapshot"):
        return {**agent.take_snapshot(preset="session").to_dict(), "created_at": ""}
    return {"messages": agent.messages, "agent": {**_session_agent_dict(agent), "created_at": "", "updated_at": ""}}


def restore_state(agent: Any, saved: Mapping[str, Any]) -> None:
    """Restore in *agent* what `write_state` returned."""
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


def write_text(state: Any) -> str:
    """Return a state as text, with bytes in it as the framework's own stores write them."""
    try:
        from strands.types.session import encode_bytes_values
    except ImportError:  # early releases
        return json.dumps(state)
    return json.dumps(encode_bytes_values(state))


def read_text(text: str) -> Any:
    """Return what `write_text` wrote."""
    try:
        from strands.types.session import decode_bytes_values
    except ImportError:  # early releases
        return json.loads(text)
    return decode_bytes_values(json.loads(text))


def copy_state(agent: Any, other: Any) -> None:
    """Restore a snapshot of *agent*, which is independent of it, in *other*."""
    if hasattr(agent, "take_snapshot"):
        other.load_snapshot(agent.take_snapshot(preset="session"))
    else:
        restore_state(other, deepcopy(write_state(agent)))


def _session_agent_dict(agent: Any) -> dict[str, Any]:
    from strands.types.session import SessionAgent

    saved: dict[str, Any] = SessionAgent.from_agent(agent).to_dict()
    return saved


def build_session_manager(blueprint: Blueprint, session: str) -> Any:
    """Build the session manager that a serialize mode asks for; None if it needs none."""
    if blueprint.serialize == "native.files":
        from strands.session import FileSessionManager

        return FileSessionManager(session_id=session, storage_dir=os.path.join(blueprint.directory, "sessions"))
    if blueprint.serialize == "native.snapshots":
        from strands.session import SnapshotSessionManager
        from strands.storage import LocalFileStorage

        return SnapshotSessionManager(session, storage=LocalFileStorage(blueprint.directory))
    return None


async def write_reference(agent: Any, manager: Any, session: str) -> str:
    """Return the reference into the store: the session, and the snapshot of this moment.

    `FileSessionManager` keeps only the newest state of a session, so there is no snapshot to name.
    """
    if not hasattr(manager, "save_snapshot"):
        return json.dumps({"session": session})
    return json.dumps({"session": session, "snapshot": await manager.save_snapshot(agent, is_latest=False)})


async def follow_reference(agent: Any, manager: Any, reference: dict[str, Any]) -> None:
    """Restore the snapshot that a reference names.

    Without a snapshot the newest state of the session is restored already.
    """
    if "snapshot" in reference:
        await manager.restore_snapshot(agent, snapshot_id=reference["snapshot"])

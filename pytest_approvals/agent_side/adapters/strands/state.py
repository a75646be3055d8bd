"""The state of an agent: its snapshot, and the interrupts in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_OF_A_CALL = re.compile(r"v1:(?!agent_as_tool:)\w+:(?P<call>.*):[0-9a-f-]{36}", re.DOTALL)
"""The id of an interrupt that an agent's own gate raised about a call; that of a sub-agent's is longer."""


def open_interrupts(agent: Any) -> list[Any]:
    """
    Gives the interrupts that hold the agent up.

    Those wait for a response. So does one whose response came with an invocation that failed: it stays in the state, the
    call did not run, and the agent takes nothing but responses.
    """
    from strands.interrupt import Interrupt

    state = agent.take_snapshot(include=["interrupt_state"]).data["interrupt_state"]
    if not state["activated"]:
        return []
    every = list(state["interrupts"].values())
    settled = _settled(state) | {_call(one) for one in every if one["response"] is None}
    return [Interrupt(**one) for one in every if one["response"] is None or _call(one) not in settled]


def _settled(state: Mapping[str, Any]) -> set[str | None]:
    done = (state.get("pending_tool_execution") or {}).get("completed_tool_results", ())
    return {None, *(result["toolUseId"] for result in done)}


def _call(interrupt: Mapping[str, Any]) -> str | None:
    matched = _OF_A_CALL.fullmatch(interrupt["id"])
    return matched["call"] if matched else None


def written(agent: Any) -> dict[str, Any]:
    """Gives a snapshot as JSON; when it was taken is no part of the state, and does not make it another one."""
    return {**agent.take_snapshot(preset="session").to_dict(), "created_at": ""}


def restored(agent: Any, saved: Mapping[str, Any]) -> None:
    """Puts a snapshot that went through JSON into *agent*."""
    agent.load_snapshot(_snapshot_class().from_dict(saved))


def _snapshot_class() -> Any:
    try:
        from strands import Snapshot
    except ImportError:
        from strands.types._snapshot import Snapshot
    return Snapshot

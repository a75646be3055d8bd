"""The state of an agent: its snapshot, and the interrupts in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def open_interrupts(agent: Any) -> list[Any]:
    """Gives the interrupts that wait for a response."""
    from strands.interrupt import Interrupt

    state = agent.take_snapshot(include=["interrupt_state"]).data["interrupt_state"]
    if not state["activated"]:
        return []
    return [Interrupt(**one) for one in state["interrupts"].values() if one["response"] is None]


def restored(agent: Any, saved: Mapping[str, Any]) -> None:
    """Puts a snapshot that went through JSON into *agent*."""
    agent.load_snapshot(_snapshot_class().from_dict(saved))


def _snapshot_class() -> Any:
    try:
        from strands import Snapshot
    except ImportError:
        from strands.types._snapshot import Snapshot
    return Snapshot

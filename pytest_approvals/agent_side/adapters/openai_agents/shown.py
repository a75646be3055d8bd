"""What the SDK's stream shows to its consumer, told to the world as it is shown."""

from __future__ import annotations

from typing import Any

from ...contract import World
from .items import field_of, parsed, text_of


def tell(event: Any, world: World) -> None:
    """Tells what one event of `RunResultStreaming.stream_events` shows."""
    if event.type != "run_item_stream_event":
        return
    raw = event.item.raw_item
    if event.name == "message_output_created":
        text = "".join(getattr(part, "text", "") for part in raw.content)
        # A structured answer is no text, though it comes as one.
        if event.item.agent.output_type is None or not isinstance(parsed(text), dict):
            world.shown("text", text=text)
    elif event.name in ("tool_called", "handoff_requested"):
        world.shown("call", id=field_of(raw, "call_id") or field_of(raw, "id"), tool=field_of(raw, "name"))
    elif event.name in ("tool_output", "handoff_occured"):  # the SDK spells it so
        world.shown("result", id=field_of(raw, "call_id"), text=text_of(field_of(raw, "output")))
    elif event.name == "mcp_approval_requested":
        world.shown("request", id=field_of(raw, "id"), tool=field_of(raw, "name"))

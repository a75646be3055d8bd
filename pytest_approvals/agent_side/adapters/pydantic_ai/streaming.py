"""What the framework's stream shows to its consumer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_approvals.agent_side.contract import MAIN

from .decisions import open_requests
from .naming import Specs


def seen(event: Any, specs: Specs) -> Iterator[tuple[str, dict[str, Any]]]:
    """Gives what one event shows, as arguments for `World.shown`."""
    kind = event.event_kind
    if kind in ("part_start", "part_delta"):
        yield from _text(event)
    elif kind == "function_tool_call":
        spec = specs.get((MAIN, event.part.tool_name))
        yield "call", {"id": event.part.tool_call_id, "tool": spec.name if spec else event.part.tool_name}
    elif kind == "function_tool_result":
        yield from _result(event.part if hasattr(event, "part") else event.result)
    elif kind == "deferred_tool_requests":
        for request in open_requests(event.requests, specs):
            yield "request", {"id": request.id}
    elif kind == "agent_run_result":
        yield "end", {}


def _text(event: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    part = event.part if event.event_kind == "part_start" else event.delta
    name = "content" if event.event_kind == "part_start" else "content_delta"
    kind = getattr(part, "part_kind", None) or getattr(part, "part_delta_kind", None)
    if kind == "text" and getattr(part, name):
        yield "text", {"text": getattr(part, name)}


def _result(part: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    text = part.model_response_str() if hasattr(part, "model_response_str") else part.model_response()
    yield "result", {"id": part.tool_call_id, "text": text}

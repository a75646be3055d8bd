"""What the framework's stream shows to its consumer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic_ai import DeferredToolRequests, messages

from pytest_approvals.agent_side.contract import MAIN

from .decisions import open_requests
from .naming import ANSWER, Specs

TOLD_IN_THE_STREAM = hasattr(messages, "DeferredToolRequestsEvent")
"""Before there was such an event, a consumer found the requests in the result that the last event carries."""

Seen = Iterator[tuple[str, dict[str, Any]]]


def seen(event: Any, specs: Specs) -> Seen:
    """
    Gives what one event shows, as arguments for `World.shown`.

    A call is shown where the model makes it; the event that announces its execution comes again after an approval, and
    shows nothing new.
    """
    match event.event_kind:
        case "part_start":
            yield from _part(event.part, specs)
        case "part_delta":
            if event.delta.part_delta_kind == "text":
                yield from _text(event.delta.content_delta)
        case "function_tool_result":
            yield from _result(event.part if hasattr(event, "part") else event.result)
        case "deferred_tool_requests":
            yield from _requests(event.requests, specs)
        case "agent_run_result":
            if not TOLD_IN_THE_STREAM:
                yield from _requests(event.result.output, specs)
            yield "end", {}


def _requests(output: Any, specs: Specs) -> Seen:
    if isinstance(output, DeferredToolRequests):
        yield from (("request", {"id": request.id}) for request in open_requests(output, specs))


def _part(part: Any, specs: Specs) -> Seen:
    if part.part_kind == "text":
        yield from _text(part.content)
    elif part.part_kind == "tool-call" and part.tool_name != ANSWER:
        spec = specs.get((MAIN, part.tool_name))
        yield "call", {"id": part.tool_call_id, "tool": spec.name if spec else part.tool_name}


def _text(text: str) -> Seen:
    if text:
        yield "text", {"text": text}


def _result(part: Any) -> Seen:
    text = part.model_response_str() if hasattr(part, "model_response_str") else part.model_response()
    yield "result", {"id": part.tool_call_id, "text": text}

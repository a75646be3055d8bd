"""Outcome of a run, read from its output or its stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from ...contract import MAIN, Finished, Outcome, Paused
from ...kit.tool_schema import is_object_text
from .messages import text_of
from .requests import ServerTools, read_requests

ShowEvent = Callable[..., None]


class RunFailed(Exception):
    """A run ended with the status `error` or `cancelled`, the framework's sign of failure."""


def read_outcome(run: Any, served: ServerTools, names: Mapping[str, str]) -> Outcome:
    """Read the output of a run; see `read_requests`."""
    status = _status_word(run.status)
    if status in ("ERROR", "CANCELLED"):
        raise RunFailed(f"{status}: {run.content}")
    if run.is_paused:
        return Paused(requests=read_requests(run.requirements, run.run_id, served, names), text=_text_with_calls(run))
    return Finished(output=_to_output(run.content))


def _status_word(status: Any) -> str:
    return str(getattr(status, "value", status)).upper()


def _text_with_calls(run: Any) -> str | None:
    """Return the model's text in the message with the pending calls.

    The content of a paused run is the framework's own text.
    """
    last = next((message for message in reversed(run.messages or ()) if message.role == "assistant"), None)
    return (text_of(last.content) or None) if last is not None else None


def _to_output(content: Any) -> Any:
    return content.model_dump() if hasattr(content, "model_dump") else content


# --- streams ----------------------------------------------------------------------------------------------------------


async def read_stream(
    events: AsyncIterator[Any],
    main: Any,
    shown: ShowEvent,
    keep: Callable[[Any], None],
    served: ServerTools,
    names: Mapping[str, str],
) -> Outcome:
    """Consume a stream, report what it shows, and read from its events how the run ended.

    Args:
        events: The stream.
        main: What is run; members of a team report their own runs in the same stream.
        shown: Receives what the stream shows.
        keep: Receives the output of the run, with which the stream ends.
        served: The tools of MCP servers.
        names: The framework's names of the agents that were renamed, by their names in the tools.
    """
    outcome: Outcome = Finished()
    failure: str | None = None
    async for event in events:
        # With `yield_run_output`, the last element of the stream is the output itself.
        if not hasattr(event, "event"):
            keep(event)
            continue
        # Teams have the same events, under names with this prefix.
        kind = event.event.removeprefix("Team")
        for shown_kind, values in _read_event(kind, event):
            # A structured answer is streamed as text, but is not text of the agent.
            if shown_kind != "text" or main.output_schema is None or not is_object_text(event.content):
                shown(shown_kind, **values)
        if not _is_from(main, event, names):
            continue
        if kind == "RunPaused":
            outcome = Paused(requests=read_requests(event.requirements, event.run_id, served, names))
            for request in outcome.requests:
                # A stream only shows the pending calls with the pause.
                shown("call", id=request.call_id, tool=request.tool)
                shown("request", id=request.id)
        elif kind == "RunCompleted" and not isinstance(outcome, Paused):
            outcome = Finished(output=_to_output(event.content))
        elif kind in ("RunError", "RunCancelled"):
            failure = f"{kind}: {getattr(event, 'content', None) or getattr(event, 'reason', None)}"
    shown("end")
    if failure is not None:
        raise RunFailed(failure)
    return outcome


def _is_from(main: Any, event: Any, names: Mapping[str, str]) -> bool:
    from_leader = event.event.startswith("Team")
    # A run that is continued keeps the id that its agent had when it began.
    ids = (main.id, MAIN) if MAIN in names else (main.id,)
    return from_leader == hasattr(main, "members") and (event.team_id if from_leader else event.agent_id) in ids


def _read_event(kind: str, event: Any) -> list[tuple[str, dict[str, Any]]]:
    if kind == "RunContent" and isinstance(event.content, str) and event.content:
        return [("text", {"text": event.content})]
    if kind == "ToolCallStarted":
        return [("call", {"id": event.tool.tool_call_id, "tool": event.tool.tool_name})]
    if kind == "ToolCallCompleted":
        return [("result", {"id": event.tool.tool_call_id, "text": text_of(event.tool.result)})]
    return []

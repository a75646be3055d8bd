"""How a run ended, as its output or its stream tells it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from ...contract import Finished, Outcome, Paused
from .messages import is_json_object, text_of
from .requests import ServerTools, read_requests

ShowEvent = Callable[..., None]


class RunFailed(Exception):
    """A run ended with the status `error` or `cancelled`, which is how the framework tells its caller of a failure."""


def read_outcome(run: Any, served: ServerTools) -> Outcome:
    """Reads the output of a run."""
    status = _status_word(run.status)
    if status in ("ERROR", "CANCELLED"):
        raise RunFailed(f"{status}: {run.content}")
    if run.is_paused:
        return Paused(requests=read_requests(run.requirements, run.run_id, served), text=_text_beside_calls(run))
    return Finished(output=_to_output(run.content))


def _status_word(status: Any) -> str:
    return str(getattr(status, "value", status)).upper()


def _text_beside_calls(run: Any) -> str | None:
    """Gives what the model said beside the calls that wait; the content of a paused run is the framework's own text."""
    last = next((message for message in reversed(run.messages or ()) if message.role == "assistant"), None)
    return (text_of(last.content) or None) if last is not None else None


def _to_output(content: Any) -> Any:
    return content.model_dump() if hasattr(content, "model_dump") else content


# --- streams ----------------------------------------------------------------------------------------------------------


async def read_stream(
    events: AsyncIterator[Any], main: Any, shown: ShowEvent, keep: Callable[[Any], None], served: ServerTools
) -> Outcome:
    """
    Consumes a stream, tells what it shows, and reads how the run ended from its events.

    Arguments:
        main: What is run; members of a team tell of their own runs in the same stream.
        keep: Is given the output of the run, with which the stream ends.
    """
    outcome: Outcome = Finished()
    failure: str | None = None
    async for event in events:
        if not hasattr(event, "event"):
            keep(event)
            continue
        kind = event.event.removeprefix("Team")
        for what, facts in _read_event(kind, event):
            # An answer that has to be an object is streamed as text, and is not what the agent says.
            if what != "text" or main.output_schema is None or not is_json_object(event.content):
                shown(what, **facts)
        if not _is_from(main, event):
            continue
        if kind == "RunPaused":
            outcome = Paused(requests=read_requests(event.requirements, event.run_id, served))
            for request in outcome.requests:
                # The pause is where a stream shows the calls that wait.
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


def _is_from(main: Any, event: Any) -> bool:
    leads = event.event.startswith("Team")
    return leads == hasattr(main, "members") and bool(main.id == (event.team_id if leads else event.agent_id))


def _read_event(kind: str, event: Any) -> list[tuple[str, dict[str, Any]]]:
    if kind == "RunContent" and isinstance(event.content, str) and event.content:
        return [("text", {"text": event.content})]
    if kind == "ToolCallStarted":
        return [("call", {"id": event.tool.tool_call_id, "tool": event.tool.tool_name})]
    if kind == "ToolCallCompleted":
        return [("result", {"id": event.tool.tool_call_id, "text": text_of(event.tool.result)})]
    return []

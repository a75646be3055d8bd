"""Events of the AG-UI protocol, as an interface reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....contract import Decision, Request, Unsupported

Event = Mapping[str, Any]

_CONFIRMS = "confirm_changes"
"""The call that stands for a question to the person; no model made it."""


class RunError(Exception):
    """A run ended with an error event."""

    def __init__(self, event: Event) -> None:
        super().__init__(f"{event.get('code') or 'no code'}: {event.get('message')}")


@dataclass(slots=True)
class Told:
    """
    What the events of one run tell.

    Attributes:
        messages: The last snapshot of the thread; None where there was none.
        interrupts: What the run waits for.
        text: What the agent said.
    """

    messages: list[dict[str, Any]] | None = None
    interrupts: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""

    def take(self, event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
        """
        Takes in one event, and gives what it shows, as arguments for `World.shown`.

        Errors:
            RunError: It tells of an error.
        """
        kind = event["type"]
        if kind == "RUN_ERROR":
            raise RunError(event)
        if kind == "MESSAGES_SNAPSHOT":
            self.messages = event["messages"]
        elif kind == "RUN_FINISHED":
            self.interrupts = (event.get("outcome") or {}).get("interrupts") or []
        elif kind == "TEXT_MESSAGE_CONTENT":
            self.text += event["delta"]
            yield "text", {"text": event["delta"]}
        else:
            yield from _shown(event)


def _shown(event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = event["type"]
    if kind == "TOOL_CALL_START" and event["toolCallName"] != _CONFIRMS:
        yield "call", {"id": event["toolCallId"], "tool": event["toolCallName"]}
    elif kind == "TOOL_CALL_RESULT":
        yield "result", {"id": event["toolCallId"], "text": str(event.get("content", ""))}
    elif kind == "CUSTOM" and event.get("name") == "function_approval_request":
        yield "request", {"id": event["value"]["id"]}


# --- requests and answers ---------------------------------------------------------------------------------------------


def requests_in(interrupts: Iterable[Event]) -> tuple[Request, ...]:
    """Gives the interrupts that ask about calls."""
    return tuple(_request(one) for one in interrupts if one.get("reason") == "tool_call")


def _request(interrupt: Event) -> Request:
    from ..contents import parsed

    call = interrupt["metadata"]["agent_framework"]["function_call"]
    server = call.get("server_name") or (call.get("additional_properties") or {}).get("server_label")
    return Request(
        id=interrupt["id"],
        call_id=interrupt.get("toolCallId") or call.get("call_id"),
        tool=call["name"],
        arguments=parsed(call.get("arguments")),
        kind="hosted_mcp" if server else "function",
        server=server,
        handle=interrupt,
    )


def resume(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """Gives decisions as the entries that a run is resumed with."""
    return [
        {
            "interruptId": one.address if one.request is None else one.request.id,
            "status": "resolved",
            "payload": _payload(one),
        }
        for one in decisions
    ]


def _payload(decision: Decision) -> dict[str, Any]:
    if decision.verdict == "raw":
        return {"approved": decision.raw}
    if decision.verdict in ("approve", "reject"):
        return {"approved": decision.verdict == "approve"}
    if decision.verdict == "edit" and decision.tool is None:
        return {"approved": True, "editedArgs": dict(decision.arguments or {})}
    raise Unsupported("edit_tool" if decision.verdict == "edit" else decision.verdict, "an answer is about one call")

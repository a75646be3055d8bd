"""Events of the AG-UI protocol, as an interface reads them."""

from __future__ import annotations

import json
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
        interrupts: What the run waits for.
        text: What the agent said.
        confirms: The calls that stand for questions, by the ids of the calls that they ask about.
    """

    interrupts: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    confirms: dict[str, str] = field(default_factory=dict)
    _asking: set[str] = field(default_factory=set)

    def take(self, event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
        """
        Takes in one event, and gives what it shows, as arguments for `World.shown`.

        Errors:
            RunError: It tells of an error.
        """
        kind = event["type"]
        if kind == "RUN_ERROR":
            raise RunError(event)
        if kind == "RUN_FINISHED":
            self.interrupts = (event.get("outcome") or {}).get("interrupts") or event.get("interrupt") or []
        elif kind == "TEXT_MESSAGE_CONTENT":
            self.text += event["delta"]
            yield "text", {"text": event["delta"]}
        elif kind == "TOOL_CALL_START" and event["toolCallName"] == _CONFIRMS:
            self._asking.add(event["toolCallId"])
        elif kind == "TOOL_CALL_ARGS" and event["toolCallId"] in self._asking:
            self.confirms[json.loads(event["delta"])["function_call_id"]] = event["toolCallId"]
        else:
            yield from _shown(event)


def _shown(event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = event["type"]
    if kind == "TOOL_CALL_START":
        yield "call", {"id": event["toolCallId"], "tool": event["toolCallName"]}
    elif kind == "TOOL_CALL_RESULT":
        yield "result", {"id": event["toolCallId"], "text": str(event.get("content", ""))}
    elif kind == "CUSTOM" and event.get("name") == "function_approval_request":
        yield "request", {"id": event["value"]["id"]}


# --- requests and answers ---------------------------------------------------------------------------------------------


def requests_in(interrupts: Iterable[Event]) -> tuple[Request, ...]:
    """Gives the interrupts that ask about calls."""
    return tuple(_request(one, told) for one in interrupts if (told := _told(one)) is not None)


def _told(interrupt: Event) -> Event | None:
    """Gives what an interrupt tells of a call; None where it is about something else."""
    told = interrupt.get("value") if is_early(interrupt) else interrupt.get("metadata", {}).get("agent_framework")
    return told if told is not None and told.get("type") == "function_approval_request" else None


def is_early(interrupt: Event) -> bool:
    """Says whether an interrupt has the form that it had before the protocol got one of its own."""
    return "value" in interrupt


def _request(interrupt: Event, told: Event) -> Request:
    from ..contents import parsed

    call = told["function_call"]
    return Request(
        id=interrupt["id"],
        call_id=call["call_id"],
        tool=call["name"],
        arguments=parsed(call.get("arguments")),
        handle=interrupt,
    )


def resume(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """Gives decisions as the entries that a run is resumed with."""
    return [_entry(one) for one in decisions]


def _entry(decision: Decision) -> dict[str, Any]:
    payload = {"approved": _approved(decision)}
    if decision.verdict == "edit":
        payload["editedArgs"] = dict(decision.arguments or {})
    return {"interruptId": _address(decision), "status": "resolved", "payload": payload}


def confirmations(decisions: Sequence[Decision], confirms: Mapping[str, str]) -> list[tuple[Any, str]]:
    """
    Gives decisions as early releases take them: the results of the calls that stand for questions, by their ids.

    Arguments:
        confirms: Those calls, by the ids of the calls that they ask about.
    """
    # Edited arguments stand beside the answer.
    return [
        (
            confirms.get(str(_address(one)), _address(one)),
            json.dumps({"accepted": _approved(one), **(one.arguments or {})}),
        )
        for one in decisions
    ]


def _address(decision: Decision) -> Any:
    return decision.address if decision.request is None else decision.request.id


def _approved(decision: Decision) -> Any:
    if decision.verdict == "raw":
        return decision.raw
    if decision.verdict not in ("approve", "reject", "edit"):
        raise Unsupported(decision.verdict, "an answer is about one call")
    if decision.tool is not None:
        raise Unsupported("edit_tool", "an answer has other arguments for a call, and no other tool")
    return decision.verdict != "reject"

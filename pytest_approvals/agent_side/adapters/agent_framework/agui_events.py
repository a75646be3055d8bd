"""Events of the AG-UI protocol, as an interface reads them.

The messages of a thread, as an interface keeps them.

Events change them as they come, as the protocol's own clients have it; a snapshot stands in place of all of them. So
what a run told before it failed is kept, and so is the message that it began with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from ...contract import Decision, Request, Unsupported

Event = Mapping[str, Any]

_CONFIRMATION_TOOL = "confirm_changes"
"""The call that stands for a question to the person; no model made it."""


class RunError(Exception):
    """A run ended with an error event."""

    def __init__(self, event: Event) -> None:
        super().__init__(f"{event.get('code') or 'no code'}: {event.get('message')}")


@dataclass(slots=True)
class RunReader:
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
        elif kind == "TOOL_CALL_START" and event["toolCallName"] == _CONFIRMATION_TOOL:
            self._asking.add(event["toolCallId"])
        elif kind == "TOOL_CALL_ARGS" and event["toolCallId"] in self._asking:
            self.confirms[json.loads(event["delta"])["function_call_id"]] = event["toolCallId"]
        else:
            yield from _read_event(event)


def _read_event(event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = event["type"]
    if kind == "TOOL_CALL_START":
        yield "call", {"id": event["toolCallId"], "tool": event["toolCallName"]}
    elif kind == "TOOL_CALL_RESULT":
        yield "result", {"id": event["toolCallId"], "text": str(event.get("content", ""))}
    elif kind == "CUSTOM" and event.get("name") == "function_approval_request":
        yield "request", {"id": event["value"]["id"]}


# --- requests and answers ---------------------------------------------------------------------------------------------


def read_requests(interrupts: Iterable[Event]) -> tuple[Request, ...]:
    """Gives the interrupts that ask about calls."""
    return tuple(_build_request(one, told) for one in interrupts if (told := _call_details(one)) is not None)


def _call_details(interrupt: Event) -> Event | None:
    """Gives what an interrupt tells of a call; None where it is about something else."""
    told = (
        interrupt.get("value")
        if is_early_interrupt(interrupt)
        else interrupt.get("metadata", {}).get("agent_framework")
    )
    return told if told is not None and told.get("type") == "function_approval_request" else None


def is_early_interrupt(interrupt: Event) -> bool:
    """Says whether an interrupt has the form that it had before the protocol got one of its own."""
    return "value" in interrupt


def _build_request(interrupt: Event, told: Event) -> Request:
    from .messages import parse_arguments

    call = told["function_call"]
    return Request(
        id=interrupt["id"],
        call_id=call["call_id"],
        tool=call["name"],
        arguments=parse_arguments(call.get("arguments")),
        handle=interrupt,
    )


def write_resume(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """Gives decisions as the entries that a run is resumed with."""
    return [_write_entry(one) for one in decisions]


def _write_entry(decision: Decision) -> dict[str, Any]:
    payload = {"approved": _approval(decision)}
    if decision.verdict == "edit":
        payload["editedArgs"] = dict(decision.arguments or {})
    return {"interruptId": _interrupt_id(decision), "status": "resolved", "payload": payload}


def write_confirmations(decisions: Sequence[Decision], confirms: Mapping[str, str]) -> list[tuple[Any, str]]:
    """
    Gives decisions as early releases take them: the results of the calls that stand for questions, by their ids.

    Arguments:
        confirms: Those calls, by the ids of the calls that they ask about.
    """
    # Edited arguments stand beside the answer.
    return [
        (
            confirms.get(str(_interrupt_id(one)), _interrupt_id(one)),
            json.dumps({"accepted": _approval(one), **(one.arguments or {})}),
        )
        for one in decisions
    ]


def _interrupt_id(decision: Decision) -> Any:
    return decision.address if decision.request is None else decision.request.id


def _approval(decision: Decision) -> Any:
    if decision.verdict == "raw":
        return decision.raw
    if decision.verdict not in ("approve", "reject", "edit"):
        raise Unsupported(decision.verdict, "an answer is about one call")
    if decision.tool is not None:
        raise Unsupported("edit_tool", "an answer has other arguments for a call, and no other tool")
    return decision.verdict != "reject"


ThreadEvent = Mapping[str, Any]
ThreadMessage = dict[str, Any]


class AGUIThread:
    """
    One thread.

    Attributes:
        messages: Its messages, in the form in which a run takes them.
    """

    def __init__(self) -> None:
        self.id = str(uuid4())
        self.messages: list[ThreadMessage] = []

    def add(self, role: str, content: str, **more: str) -> None:
        """Adds a message that the interface makes."""
        self.messages.append({"id": str(uuid4()), "role": role, "content": content, **more})

    def take(self, event: ThreadEvent) -> None:
        """Takes in one event of a run."""
        if change := _CHANGES.get(event["type"]):
            change(self, event)

    def _snapshot(self, event: ThreadEvent) -> None:
        self.messages = list(event["messages"])

    def _text_begins(self, event: ThreadEvent) -> None:
        self.messages.append({"id": event["messageId"], "role": event.get("role", "assistant"), "content": ""})

    def _text(self, event: ThreadEvent) -> None:
        for message in self.messages:
            if message["id"] == event["messageId"]:
                message["content"] = message.get("content", "") + event["delta"]

    def _call_begins(self, event: ThreadEvent) -> None:
        parent = event.get("parentMessageId") or event["toolCallId"]
        if not self.messages or self.messages[-1]["id"] != parent:
            self.messages.append({"id": parent, "role": "assistant"})
        call = {"name": event["toolCallName"], "arguments": ""}
        calls = self.messages[-1].setdefault("toolCalls", [])
        calls.append({"id": event["toolCallId"], "type": "function", "function": call})

    def _arguments(self, event: ThreadEvent) -> None:
        calls = [call for message in self.messages for call in message.get("toolCalls") or ()]
        called = next((call for call in reversed(calls) if call["id"] == event["toolCallId"]), None)
        if called is not None:
            called["function"]["arguments"] += event["delta"]

    def _result(self, event: ThreadEvent) -> None:
        result = {"role": "tool", "toolCallId": event["toolCallId"], "content": event["content"]}
        self.messages.append({"id": event["messageId"], **result})


_CHANGES: Mapping[str, Callable[[AGUIThread, ThreadEvent], None]] = {
    "MESSAGES_SNAPSHOT": AGUIThread._snapshot,
    "TEXT_MESSAGE_START": AGUIThread._text_begins,
    "TEXT_MESSAGE_CONTENT": AGUIThread._text,
    "TOOL_CALL_START": AGUIThread._call_begins,
    "TOOL_CALL_ARGS": AGUIThread._arguments,
    "TOOL_CALL_RESULT": AGUIThread._result,
}

"""Events of the AG-UI protocol, and the messages of a thread, as an interface keeps them.

Events change the messages as they come, as in the protocol's own clients; a snapshot replaces all of them. So the
messages of a run that failed are kept, and so is the message with which it began.
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
"""Tool of the calls that stand for questions to the user; no model makes them."""


class RunError(Exception):
    """A run ended with an error event."""

    def __init__(self, event: Event) -> None:
        super().__init__(f"{event.get('code') or 'no code'}: {event.get('message')}")


@dataclass(slots=True)
class RunReader:
    """Reader of the events of one run.

    Attributes:
        interrupts: What the run waits for.
        text: The text of the agent.
        confirms: The calls that stand for questions, by the ids of the calls that they ask about.
    """

    interrupts: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    confirms: dict[str, str] = field(default_factory=dict)
    _asking: set[str] = field(default_factory=set)

    def read(self, event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
        """Read one event, and yield what it shows, as arguments for `World.shown`.

        Raises:
            RunError: The event is an error.
        """
        kind = event["type"]
        if kind == "RUN_ERROR":
            raise RunError(event)
        if kind == "RUN_FINISHED":
            # Before the protocol had `outcome`, the framework had a field of its own for them.
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
    """Return the interrupts that ask about calls, as approval requests."""
    return tuple(
        _build_request(interrupt, details)
        for interrupt in interrupts
        if (details := _call_details(interrupt)) is not None
    )


def _call_details(interrupt: Event) -> Event | None:
    """Return an interrupt's details of a call; None if it is about something else."""
    details = (
        interrupt.get("value")
        if is_early_interrupt(interrupt)
        else interrupt.get("metadata", {}).get("agent_framework")
    )
    return details if details is not None and details.get("type") == "function_approval_request" else None


def is_early_interrupt(interrupt: Event) -> bool:
    """Return whether an interrupt has the form from before the protocol defined one."""
    return "value" in interrupt


def _build_request(interrupt: Event, details: Event) -> Request:
    from .messages import read_arguments

    call = details["function_call"]
    return Request(
        id=interrupt["id"],
        call_id=call["call_id"],
        tool=call["name"],
        arguments=read_arguments(call.get("arguments")),
        handle=interrupt,
    )


def write_resume(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """Return decisions as the entries of `resume`."""
    return [_write_entry(decision) for decision in decisions]


def _write_entry(decision: Decision) -> dict[str, Any]:
    payload = {"approved": _approval(decision)}
    if decision.verdict == "edit":
        payload["editedArgs"] = dict(decision.arguments or {})
    return {"interruptId": _interrupt_id(decision), "status": "resolved", "payload": payload}


def write_confirmations(decisions: Sequence[Decision], confirms: Mapping[str, str]) -> list[tuple[Any, str]]:
    """Return decisions as early releases take them: results of calls, by their ids.

    Args:
        decisions: The decisions.
        confirms: The calls that stand for questions, by the ids of the calls that they ask about.
    """
    # Edited arguments are fields next to the answer.
    return [
        (
            confirms.get(str(_interrupt_id(decision)), _interrupt_id(decision)),
            json.dumps({"accepted": _approval(decision), **(decision.arguments or {})}),
        )
        for decision in decisions
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
    """One thread.

    Attributes:
        messages: Its messages, in the form in which a run takes them.
    """

    def __init__(self) -> None:
        self.id = str(uuid4())
        self.messages: list[ThreadMessage] = []

    def add(self, role: str, content: str, **more: str) -> None:
        """Add a message of the interface."""
        self.messages.append({"id": str(uuid4()), "role": role, "content": content, **more})

    def apply(self, event: ThreadEvent) -> None:
        """Apply one event of a run."""
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

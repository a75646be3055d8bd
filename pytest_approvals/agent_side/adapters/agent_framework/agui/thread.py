"""
The messages of a thread, as an interface keeps them.

Events change them as they come, as the protocol's own clients have it; a snapshot stands in place of all of them. So
what a run told before it failed is kept, and so is the message that it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

Event = Mapping[str, Any]
Message = dict[str, Any]


class Thread:
    """
    One thread.

    Attributes:
        messages: Its messages, in the form in which a run takes them.
    """

    def __init__(self) -> None:
        self.id = str(uuid4())
        self.messages: list[Message] = []

    def add(self, role: str, content: str, **more: str) -> None:
        """Adds a message that the interface makes."""
        self.messages.append({"id": str(uuid4()), "role": role, "content": content, **more})

    def take(self, event: Event) -> None:
        """Takes in one event of a run."""
        if change := _CHANGES.get(event["type"]):
            change(self, event)

    def _snapshot(self, event: Event) -> None:
        self.messages = list(event["messages"])

    def _text_begins(self, event: Event) -> None:
        self.messages.append({"id": event["messageId"], "role": event.get("role", "assistant"), "content": ""})

    def _text(self, event: Event) -> None:
        for message in self.messages:
            if message["id"] == event["messageId"]:
                message["content"] = message.get("content", "") + event["delta"]

    def _call_begins(self, event: Event) -> None:
        parent = event.get("parentMessageId") or event["toolCallId"]
        if not self.messages or self.messages[-1]["id"] != parent:
            self.messages.append({"id": parent, "role": "assistant"})
        call = {"name": event["toolCallName"], "arguments": ""}
        calls = self.messages[-1].setdefault("toolCalls", [])
        calls.append({"id": event["toolCallId"], "type": "function", "function": call})

    def _arguments(self, event: Event) -> None:
        calls = [call for message in self.messages for call in message.get("toolCalls") or ()]
        called = next((call for call in reversed(calls) if call["id"] == event["toolCallId"]), None)
        if called is not None:
            called["function"]["arguments"] += event["delta"]

    def _result(self, event: Event) -> None:
        result = {"role": "tool", "toolCallId": event["toolCallId"], "content": event["content"]}
        self.messages.append({"id": event["messageId"], **result})


_CHANGES: Mapping[str, Callable[[Thread, Event], None]] = {
    "MESSAGES_SNAPSHOT": Thread._snapshot,
    "TEXT_MESSAGE_START": Thread._text_begins,
    "TEXT_MESSAGE_CONTENT": Thread._text,
    "TOOL_CALL_START": Thread._call_begins,
    "TOOL_CALL_ARGS": Thread._arguments,
    "TOOL_CALL_RESULT": Thread._result,
}

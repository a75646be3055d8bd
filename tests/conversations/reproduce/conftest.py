"""Stored conversations for the tests of `reproduce`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.from_conversation import build_draft

REFUND = {"order": 4711, "to": "bob@example.org"}
FLIGHT = {"to": "Rome", "seats": 2}


def call(name: str, call_id: str, arguments: Mapping[str, Any], *, flagged: bool = False) -> dict[str, Any]:
    """A call of Microsoft.Extensions.AI."""
    inside = {"name": name, "arguments": dict(arguments), "informationalOnly": flagged, "callId": call_id}
    return {"$type": "functionCall", **inside}


def request(inside: Mapping[str, Any]) -> dict[str, Any]:
    """A request about a call."""
    asked = {"toolCall": inside, "requiresConfirmation": True, "requestId": f"ficc_{inside['callId']}"}
    return {"$type": "toolApprovalRequest", **asked}


def message(role: str, *contents: Mapping[str, Any] | str, **more: Any) -> dict[str, Any]:
    """A message; a text is a content, too."""
    parts = [{"$type": "text", "text": part} if isinstance(part, str) else part for part in contents]
    return {"role": role, "contents": parts, **more}


def session() -> dict[str, Any]:
    """
    A .NET session that is paused after a rejection: as 10.4 stored it, only the response's copy of the call is flagged.
    """
    refused = call("refund", "call_9x", REFUND, flagged=True)
    rejected = {"approved": False, "toolCall": refused, "reason": "not this month", "requestId": "ficc_call_9x"}
    waiting = request(call("book-flight", "call_b", FLIGHT))
    messages = [
        message("user", "Please refund order 4711 to bob@example.org, then book the flight to Rome."),
        message("assistant", "May I?", request(call("refund", "call_9x", REFUND)), messageId="m1"),
        message("user", {"$type": "toolApprovalResponse", **rejected}),
        message("assistant", refused, messageId="m1"),
        message("tool", {"$type": "functionResult", "callId": "call_9x", "result": "Tool call invocation rejected."}),
        message("assistant", "I have not refunded it. Shall I book the flight?"),
        message("user", "Yes, look first."),
        message("assistant", call("look", "call_a", {"what": "flights", "n": 3}, flagged=True)),
        message("tool", {"$type": "functionResult", "callId": "call_a", "result": "3 flights"}),
        message("assistant", waiting),
    ]
    bag = {"InMemoryChatHistoryProvider": {"messages": messages}, "_pendingApprovalRequests": [waiting]}
    return {"stateBag": bag}


@pytest.fixture
def paused_session(tmp_path: Path) -> Path:
    """That session, in a file."""
    path = tmp_path / "session.json"
    path.write_text(json.dumps(session()), encoding="utf-8")
    return path


@pytest.fixture
def stored() -> ScenarioDraft:
    """The draft of that session."""
    return build_draft(FormatDetector().read(session()))


class Messages:
    """What the tests write their own conversations with."""

    call, request, message = staticmethod(call), staticmethod(request), staticmethod(message)

    @staticmethod
    def draft(*messages: Mapping[str, Any]) -> ScenarioDraft:
        """The draft of a conversation."""
        return build_draft(FormatDetector().read(list(messages)))


@pytest.fixture
def written() -> type[Messages]:
    return Messages

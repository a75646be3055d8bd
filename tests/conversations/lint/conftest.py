"""Conversations in short words, and what lint finds in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.lint import LintFinding, lint_conversation

Json = dict[str, Any]


def text(said: str) -> Json:
    return {"$type": "text", "text": said}


def call(call_id: str = "c1", tool: str = "pay", flagged: bool = False, **arguments: Any) -> Json:
    return {
        "$type": "functionCall",
        "name": tool,
        "arguments": arguments or {"amount": 5},
        "informationalOnly": flagged,
        "callId": call_id,
    }


def ask(asked: Json, request_id: str = "r1", confirm: bool = True) -> Json:
    return {"$type": "toolApprovalRequest", "toolCall": asked, "requiresConfirmation": confirm, "requestId": request_id}


def answer(asked: Json, approved: bool = True, request_id: str = "r1") -> Json:
    return {"$type": "toolApprovalResponse", "approved": approved, "toolCall": asked, "requestId": request_id}


def result(call_id: str = "c1", value: Any = "paid 5") -> Json:
    return {"$type": "functionResult", "result": value, "callId": call_id}


class Words:
    """What conversations are made of, and what comes of them."""

    text = staticmethod(text)
    call = staticmethod(call)
    ask = staticmethod(ask)
    answer = staticmethod(answer)
    result = staticmethod(result)

    @staticmethod
    def messages(*said: Sequence[Any]) -> list[Json]:
        """Return messages of Microsoft.Extensions.AI: each a role and contents."""
        return [{"role": role, "contents": list(contents)} for role, *contents in said]

    @staticmethod
    def lint(document: Any, *gated: str) -> list[LintFinding]:
        """Return what is found in a document."""
        return lint_conversation(FormatDetector().read(document), gated)

    def found(self, *said: Sequence[Any]) -> list[str]:
        """Return rule and place of each finding."""
        return [f"{each.rule} at {each.where}" for each in self.lint(self.messages(*said))]


@pytest.fixture
def words() -> Words:
    return Words()

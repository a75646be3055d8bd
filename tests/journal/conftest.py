from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from pytest_approvals.journal.events import (
    AgentStart,
    DecisionMade,
    Event,
    Header,
    ModelAnswer,
    ModelRequest,
    RunEnd,
    StateRestored,
    StateSaved,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from pytest_approvals.journal.files import Journal

A = {"path": "a.txt"}
B = {"path": "b.txt"}
USER = {"kind": "user", "text": "Delete a.txt and b.txt"}


def call(label: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"label": label, "id": label, "tool": "delete_file", "arguments": arguments, "kind": "function"} | more


def request(q: str, label: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return call(label, arguments, q=q, call_id=label, agent="main")


@pytest.fixture
def numbered() -> Callable[..., list[Event]]:
    """Numbers events as a journal does."""

    def number(*events: Event) -> list[Event]:
        journal = Journal()
        for event in events:
            journal.record(event)
        return journal.events

    return number


@pytest.fixture
def two_calls(numbered: Callable[..., list[Event]]) -> list[Event]:
    """A clean run: two calls in one reply, saved as JSON between the turns; one is approved, one rejected."""
    asked = [call("c1", A), call("c2", B)]
    open_ones = [request("q1", "c1", A), request("q2", "c2", B)]
    told = [
        USER,
        {"kind": "call", "id": "c1", "tool": "delete_file", "arguments": A, "message": 1},
        {"kind": "call", "id": "c2", "tool": "delete_file", "arguments": B, "message": 1},
        {"kind": "result", "id": "c1", "tool": "delete_file", "text": "deleted a.txt", "message": 2},
        {"kind": "result", "id": "c2", "tool": "delete_file", "text": "keep b", "message": 3},
    ]
    tools = {"delete_file": {"approval": "always", "parameters": {"path": {"type": "string", "required": True}}}}
    return numbered(
        Header(
            scenario="parallel/one-approved-one-rejected",
            agent="reference",
            variant={"serialize": "json", "resume": "same", "history": "whole"},
            tools=tools,
        ),
        AgentStart(tools=["delete_file"]),
        TurnStart(turn=1, text="Delete a.txt and b.txt"),
        ModelRequest(m=1, conversation="main", agent="main", items=[USER], tools=["delete_file"]),
        ModelAnswer(m=1, conversation="main", calls=asked),
        TurnEnd(turn=1, outcome="paused", requests=open_ones),
        StateSaved(name="turn 1", mode="json", size=812),
        AgentStart(tools=["delete_file"], how="restored"),
        StateRestored(name="turn 1", mode="json", pending=deepcopy(open_ones)),
        DecisionMade(verdict="approve", q="q1", id="c1", label="c1", source="restored"),
        DecisionMade(verdict="reject", q="q2", id="c2", label="c2", reason="keep b", source="restored"),
        TurnStart(turn=2, decisions=[10, 11]),
        ToolStart(x=1, tool="delete_file", arguments=A, call_id="c1"),
        ToolEnd(x=1, result="deleted a.txt"),
        ModelRequest(m=2, conversation="main", agent="main", items=told, tools=["delete_file"]),
        ModelAnswer(m=2, conversation="main", say="Done."),
        TurnEnd(turn=2, outcome="finished", output="Done."),
        StateSaved(name="turn 2", mode="json", size=640),
        RunEnd(),
    )

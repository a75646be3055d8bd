"""
The state of a session: everything that an agent with approvals has to remember between two turns.

Plain values that go to JSON and back without loss. Whatever is not in here is not remembered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

from pytest_approvals.agent_side.contract.types import MAIN, Item, Kind, Verdict

CallStage = Literal["new", "waiting", "approved", "done"]
"""Where a call stands: nobody looked at it, it waits for a decision, it may run, the model can be told."""


@dataclass(slots=True, kw_only=True)
class CallState:
    """
    One call of the model's last reply.

    Attributes:
        id: The call id, made unique within its reply.
        tool, arguments: What is going to run: validated once *stage* is past `new`, and changed by an edit.
        request: The id of the open approval request, while it waits.
        entered: Its tool's body was entered before.
        note: What the model is told in front of the result.
        result: What the model is told; for a hosted call, the reason of a rejection.
        approved: For a hosted call: the decision that goes to the provider.
        inner: The conversation that the call runs, for a tool that is an agent.
        hands_over_to: The agent that goes on when the model is told about this call.
    """

    id: str
    tool: str
    arguments: Any
    kind: Kind = "function"
    server: str | None = None
    stage: CallStage = "new"
    request: str | None = None
    entered: bool = False
    note: str | None = None
    result: str | None = None
    approved: bool | None = None
    inner: ConversationState | None = None
    hands_over_to: str | None = None


@dataclass(slots=True, kw_only=True)
class ConversationState:
    """
    A conversation with a model.

    Attributes:
        agent: Whose model it is; a call can hand it over to another one.
        items: All that was said, as the model is sent it.
        messages: How many messages there were; the number of the next one.
        calls: The calls of the last reply, until the model was told about all of them.
        inbox: The caller's messages that wait until then.
        asks_model: The model has something to reply to.
        output: What the model said last, or answered.
        named: How many calls got an id from this agent, because the model gave none.
        trimmed: How many items trimming has taken off the front.
    """

    agent: str = MAIN
    items: list[Item] = field(default_factory=list)
    messages: int = 0
    calls: list[CallState] = field(default_factory=list)
    inbox: list[str] = field(default_factory=list)
    asks_model: bool = False
    output: Any = None
    named: int = 0
    trimmed: int = 0


@dataclass(slots=True, kw_only=True)
class AcceptedDecision:
    """A decision that was found to be one: about an open request, with a verdict that exists."""

    request: str
    verdict: Verdict
    reason: str | None = None
    arguments: Any = None
    tool: str | None = None


@dataclass(slots=True, kw_only=True)
class StandingDecision:
    """`always` or `never`, and what it is about: agent, server and tool."""

    about: list[str | None]
    verdict: Verdict
    reason: str | None = None


@dataclass(slots=True, kw_only=True)
class SessionState:
    """
    The whole state.

    Attributes:
        asked: How many requests were made; their ids are `req-1` up to this number.
        staged: The decisions that were handed in ahead of the next turn.
        standing: The decisions for all further calls of a tool; the last one about it stands.
    """

    main: ConversationState = field(default_factory=ConversationState)
    asked: int = 0
    staged: list[AcceptedDecision] = field(default_factory=list)
    standing: list[StandingDecision] = field(default_factory=list)


def state_to_json(state: Any) -> str:
    """Gives a state, or a part of one, as JSON."""
    return _ENCODER.encode(state)


def state_fields(value: Any) -> dict[str, Any]:
    """Gives the fields of one of the classes above; those that are None are left out."""
    cls = type(value)
    return {
        name: part for name, part in zip(cls.__slots__, _FIELD_GETTERS[cls](value), strict=True) if part is not None
    }


_FIELD_GETTERS = {
    cls: attrgetter(*cls.__slots__)
    for cls in (Item, CallState, ConversationState, AcceptedDecision, StandingDecision, SessionState)
}


_ENCODER = json.JSONEncoder(default=state_fields, ensure_ascii=False, check_circular=False)


def session_from_fields(written: Mapping[str, Any]) -> SessionState:
    """Makes a session of what `state_to_json` wrote, parsed."""
    return SessionState(
        main=conversation_from_fields(written["main"]),
        asked=written["asked"],
        staged=[AcceptedDecision(**answer) for answer in written["staged"]],
        standing=[StandingDecision(**standing) for standing in written["standing"]],
    )


def conversation_from_fields(written: Mapping[str, Any]) -> ConversationState:
    """Makes a conversation of its fields."""
    given = dict(written)
    given["items"] = [Item(**item) for item in given["items"]]
    given["calls"] = [_call_from_fields(call) for call in given["calls"]]
    return ConversationState(**given)


def _call_from_fields(written: Mapping[str, Any]) -> CallState:
    given = dict(written)
    if "inner" in given:
        given["inner"] = conversation_from_fields(given["inner"])
    given.setdefault("arguments", None)
    return CallState(**given)


def copy_json(value: Any) -> Any:
    """Gives a copy of a JSON value that shares nothing with it, so that nobody outside can change what will run."""
    if isinstance(value, Mapping):
        return {name: copy_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [copy_json(part) for part in value]
    return value

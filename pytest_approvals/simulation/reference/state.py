"""State of a session: everything that an agent with approvals has to remember between two turns.

Plain values that convert to JSON and back without loss. Nothing else is remembered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

from pytest_approvals.agent_side.contract.types import MAIN, HostedResult, Item, Kind, ModelCall, Verdict
from pytest_approvals.simulation.reference.arguments import parse_arguments

CallStage = Literal["new", "waiting", "approved", "running", "done"]
"""Progress of a call: not examined, waiting for a decision, free to execute, in its tool, ready for the model."""


@dataclass(slots=True, kw_only=True)
class CallState:
    """One call of the model's last reply.

    Attributes:
        id: Call id, unique within its reply.
        tool, arguments: What is going to be executed: validated once *stage* is past `new`, and changed by an edit.
        request: Id of the open approval request, while the call waits.
        entered: The tool's body was entered before.
        note: Text for the model in front of the result.
        result: Text for the model; for a hosted call, the reason of a rejection.
        approved: For a hosted call: the decision for the provider.
        inner: Conversation that the call runs, for a tool that is an agent.
        hands_over_to: Agent that continues once the model has the results.
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
    """A conversation with a model.

    Attributes:
        agent: Agent of the model; a call can hand the conversation over to another one.
        items: The model's complete input.
        messages: Number of messages so far, and of the next one.
        calls: Calls of the last reply, until the model has all their results.
        inbox: Messages of the caller that wait until then.
        asks_model: The model has something to reply to.
        output: Last text or answer of the model.
        named: Number of calls that got an id from this agent, because the model gave none.
        trimmed: Number of items that trimming has removed from the front.
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
    """A valid decision: about an open request, with a known verdict."""

    request: str
    verdict: Verdict
    reason: str | None = None
    arguments: Any = None
    tool: str | None = None


@dataclass(slots=True, kw_only=True)
class StandingDecision:
    """`always` or `never`, and its scope: agent, server and tool."""

    about: list[str | None]
    verdict: Verdict
    reason: str | None = None


@dataclass(slots=True, kw_only=True)
class SessionState:
    """The whole state.

    Attributes:
        asked: Number of requests so far; their ids begin with `req-1` up to this number.
        staged: Decisions that were submitted ahead of the next turn.
        standing: Decisions for all further calls of a tool; the last one about it counts.
    """

    main: ConversationState = field(default_factory=ConversationState)
    asked: int = 0
    staged: list[AcceptedDecision] = field(default_factory=list)
    standing: list[StandingDecision] = field(default_factory=list)


def state_to_json(state: Any) -> str:
    """Return a state, or a part of one, as JSON."""
    return _ENCODER.encode(state)


def state_fields(value: Any) -> dict[str, Any]:
    """Return the fields of one of the classes above; those that are None are left out."""
    cls = type(value)
    return {
        name: part for name, part in zip(cls.__slots__, _FIELD_GETTERS[cls](value), strict=True) if part is not None
    }


_FIELD_GETTERS = {
    cls: attrgetter(*cls.__slots__)
    for cls in (Item, CallState, ConversationState, AcceptedDecision, StandingDecision, SessionState)
}


# A state is a tree, so the search for cycles would be wasted time.
_ENCODER = json.JSONEncoder(default=state_fields, ensure_ascii=False, check_circular=False)


def session_from_fields(written: Mapping[str, Any]) -> SessionState:
    """Build a session from the parsed output of `state_to_json`."""
    return SessionState(
        main=conversation_from_fields(written["main"]),
        asked=written["asked"],
        staged=[AcceptedDecision(**answer) for answer in written["staged"]],
        standing=[StandingDecision(**standing) for standing in written["standing"]],
    )


def conversation_from_fields(written: Mapping[str, Any]) -> ConversationState:
    """Build a conversation from its fields."""
    fields = dict(written)
    fields["items"] = [Item(**item) for item in fields["items"]]
    fields["calls"] = [_call_from_fields(call) for call in fields["calls"]]
    _align_hosted_calls(fields["calls"], fields["items"])
    return ConversationState(**fields)


def _align_hosted_calls(calls: Sequence[CallState], items: Sequence[Item]) -> None:
    """Give hosted calls the tools and arguments of their items, in case what was saved was changed.

    A provider executes a call as its item says, so that is what people have to be asked about.
    """
    if any(call.kind == "hosted_mcp" for call in calls):
        # Not by their places: an agent may keep its calls in another order than the model made them.
        made: dict[str | None, list[Item]] = {}
        for item in [item for item in items if item.kind in ("call", "approval_request")][-len(calls) :]:
            made.setdefault(item.id, []).append(item)
        for call in calls:
            own = made.get(call.id)
            its = own.pop(0) if own else None
            if call.kind == "hosted_mcp" and its is not None:
                call.tool, call.arguments = its.tool or call.tool, copy_json(its.arguments)


def _call_from_fields(written: Mapping[str, Any]) -> CallState:
    fields = dict(written)
    if "inner" in fields:
        fields["inner"] = conversation_from_fields(fields["inner"])
    # None is left out when a state is written, and `arguments` has no default.
    fields.setdefault("arguments", None)
    return CallState(**fields)


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value, so that nobody outside can change what will be executed."""
    if isinstance(value, Mapping):
        return {name: copy_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [copy_json(part) for part in value]
    return value


def waiting_calls(conversation: ConversationState) -> Iterator[tuple[ConversationState, CallState]]:
    """Yield the calls that wait for a decision, in the order of the model's calls, nested ones in place."""
    for call in conversation.calls:
        if call.stage == "waiting":
            yield conversation, call
        elif call.inner is not None:
            yield from waiting_calls(call.inner)


def has_approved_call(conversation: ConversationState) -> bool:
    """Return whether a call is approved and has not run; a hosted one runs when the provider learns of it."""
    return any(
        has_approved_call(call.inner) if call.inner is not None else call.stage == "approved" or call.approved is True
        for call in conversation.calls
    )


@dataclass(slots=True)
class PartialCall:
    """A streamed call of which not all chunks have arrived."""

    id: str | None = None
    tool: str = ""
    arguments: list[str] = field(default_factory=list)

    def complete(self, whole: ModelCall) -> ModelCall:
        """Return the assembled call; kind and server are not streamed and come from *whole*."""
        arguments = parse_arguments("".join(self.arguments))
        return ModelCall(id=self.id, tool=self.tool, arguments=arguments, kind=whole.kind, server=whole.server)


def build_call_item(call: CallState, message: int) -> Item:
    """Return the item of a call in the model's reply; for a hosted call it is the provider's request."""
    kind = "approval_request" if call.kind == "hosted_mcp" else "call"
    return Item(kind=kind, id=call.id, tool=call.tool, arguments=call.arguments, message=message)


def build_hosted_item(result: HostedResult, message: int) -> Item:
    """Return the item of a call that the provider executed."""
    return Item(
        kind="hosted_result",
        id=result.call_id,
        tool=result.tool,
        arguments=dict(result.arguments),
        text=result.output if result.error is None else result.error,
        message=message,
    )

"""Cases: a request to the client as one JSON document, and its outcome as another.

    case:    {"behaviour", "streaming", "conversation_id", "tools", "model" or "model_updates", "messages"}
    outcome: {"messages", "model_inputs", "invocations", "messages_after", "error", "pulled"}

`pulled` shows how the model's first answer came through: for each update that reached the caller until that answer had
ended, how many updates of the model had been read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.errors import ContentError, suggest_name
from pytest_approvals.simulation.meai.approvals import ClientFailure
from pytest_approvals.simulation.meai.client import (
    TOOL_MESSAGE_ID,
    FunctionInvokingClient,
    FunctionTool,
    coalesce_updates,
)
from pytest_approvals.simulation.meai.contents import FunctionCall, JsonNotation, Message
from pytest_approvals.simulation.meai.json_messages import (
    MessageReader,
    ReadNote,
    require_shape,
    write_json,
    write_messages,
)
from pytest_approvals.simulation.meai.releases import BEHAVIOURS, ReleaseBehaviour

_CASE_KEYS = ("behaviour", "streaming", "conversation_id", "tools", "model", "model_updates", "messages")
_TOOL_KEYS = ("name", "approval_required", "returns", "raises", "terminates", "additional", "declaration_only")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPlan:
    """A tool of a case.

    Attributes:
        returns: Text in which `{argument}` is replaced by that argument; None for a tool that returns nothing.
        raises: Message of its exception.
    """

    name: str
    returns: str | None = None
    raises: str | None = None
    gated: bool = False
    terminates: bool = False
    additional: bool = False
    declared_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A parsed case.

    Attributes:
        replies: Messages or updates of the model in each turn; None is the null of a broken model.
        in_updates: The replies are updates.
        notes: Oddities of the messages.
    """

    behaviour: ReleaseBehaviour
    messages: tuple[Message, ...]
    replies: tuple[tuple[Message | None, ...] | None, ...]
    in_updates: bool = False
    tools: tuple[ToolPlan, ...] = ()
    streaming: bool = False
    conversation_id: str | None = None
    notes: tuple[ReadNote, ...] = ()

    @property
    def notation(self) -> JsonNotation:
        """Generation of the outcome: the earlier one if the caller's messages have it."""
        contents = [content for message in self.messages for content in message.contents]
        return "earlier" if any(content.notation == "earlier" for content in contents) else "current"


def read_case(value: Any) -> Case:
    """Parse a case.

    Raises:
        ContentError: A value has the wrong shape or is unknown.
    """
    document = require_shape(value, Mapping, "the case")
    _reject_unknown_keys(document, _CASE_KEYS, "")
    reader = MessageReader()
    tools = require_shape(_get_or(document, "tools", []), list, "tools")
    in_updates = document.get("model_updates") is not None
    if in_updates and document.get("model") is not None:
        raise ContentError(
            "model_updates", "cannot be combined with model; the model answers either in messages or in updates"
        )
    conversation_id = document.get("conversation_id")
    return Case(
        behaviour=_read_behaviour(document),
        messages=tuple(reader.messages(_get_required(document, "messages"))),
        replies=_read_updates(reader, document) if in_updates else _read_replies(reader, document),
        in_updates=in_updates,
        tools=tuple(_read_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools)),
        streaming=require_shape(_get_or(document, "streaming", False), bool, "streaming"),
        conversation_id=None if conversation_id is None else require_shape(conversation_id, str, "conversation_id"),
        notes=tuple(reader.notes),
    )


def _read_behaviour(document: Mapping[str, Any]) -> ReleaseBehaviour:
    name = require_shape(_get_required(document, "behaviour"), str, "behaviour")
    if name not in BEHAVIOURS:
        raise ContentError("behaviour", f"unknown value {name!r}; valid: {', '.join(BEHAVIOURS)}")
    return BEHAVIOURS[name]


def _read_replies(reader: MessageReader, document: Mapping[str, Any]) -> tuple[tuple[Message | None, ...] | None, ...]:
    turns = require_shape(_get_or(document, "model", []), list, "model")
    return tuple(
        None if turn is None else tuple(reader.messages(turn, f"model[{place}]")) for place, turn in enumerate(turns)
    )


def _read_updates(reader: MessageReader, document: Mapping[str, Any]) -> tuple[tuple[Message | None, ...], ...]:
    turns = require_shape(document["model_updates"], list, "model_updates")
    return tuple(
        tuple(
            _read_update(reader, update, f"model_updates[{place}][{index}]")
            for index, update in enumerate(require_shape(turn, list, f"model_updates[{place}]"))
        )
        for place, turn in enumerate(turns)
    )


def _read_update(reader: MessageReader, value: Any, where: str) -> Message | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        # The model sends its updates, so the role may be left out.
        return reader.message({"role": "assistant", **value}, where)
    return Message(role="assistant", contents=reader.contents(value, where))


def _read_tool(value: Any, where: str) -> ToolPlan:
    tool = require_shape(value, Mapping, where)
    _reject_unknown_keys(tool, _TOOL_KEYS, where)
    texts = {name: tool.get(name) for name in ("returns", "raises")}
    for name, text in texts.items():
        if text is not None:
            require_shape(text, str, f"{where}.{name}")
    flags = {
        field_name: require_shape(_get_or(tool, name, False), bool, f"{where}.{name}")
        for field_name, name in (
            ("gated", "approval_required"),
            ("terminates", "terminates"),
            ("additional", "additional"),
            ("declared_only", "declaration_only"),
        )
    }
    name = require_shape(_get_required(tool, "name", where), str, f"{where}.name")
    return ToolPlan(name=name, returns=texts["returns"], raises=texts["raises"], **flags)


def _get_required(document: Mapping[str, Any], name: str, where: str = "") -> Any:
    if name not in document:
        raise ContentError(f"{where}.{name}" if where else name, "is missing")
    return document[name]


def _get_or(document: Mapping[str, Any], name: str, default: Any) -> Any:
    value = document.get(name)
    return default if value is None else value


def _reject_unknown_keys(document: Mapping[str, Any], valid: Sequence[str], where: str) -> None:
    for name in document:
        if name not in valid:
            raise ContentError(f"{where}.{name}" if where else name, f"is unknown{suggest_name(name, valid)}")


@dataclass(slots=True)
class _CasePlayer:
    """Player of a case's model and tools, which records them.

    Attributes:
        read: Number of updates of the model that were read.
    """

    case: Case
    inputs: list[list[dict[str, Any]]] = field(default_factory=list)
    invocations: list[dict[str, Any]] = field(default_factory=list)
    read: int = 0

    async def respond(self, messages: Sequence[Message]) -> Sequence[Message] | None:
        reply = self._next(messages)
        if reply is None or any(update is None for update in reply):
            return None
        whole = [update for update in reply if update is not None]
        return coalesce_updates(whole) if self.case.in_updates else whole

    async def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message | None]:
        reply = self._next(messages)
        for update in (None,) if reply is None else reply:
            self.read += 1
            yield update

    def first_answer_has_ended(self, update: Message) -> bool:
        """Return whether an update comes after the first answer: its results, or a later answer."""
        return len(self.inputs) > 1 or (self.read > 0 and update.message_id == TOOL_MESSAGE_ID)

    def _next(self, messages: Sequence[Message]) -> tuple[Message | None, ...] | None:
        turn = len(self.inputs)
        self.inputs.append(write_messages(messages))
        if turn >= len(self.case.replies):
            key = "model_updates" if self.case.in_updates else "model"
            raise ContentError(
                key, f"has {turn} turn{'' if turn == 1 else 's'}, and the client calls the model once more; add a turn"
            )
        return self.case.replies[turn]

    def tools(self) -> list[FunctionTool]:
        return [
            FunctionTool(
                name=plan.name,
                run=None if plan.declared_only else self._runner(plan),
                gated=plan.gated,
                additional=plan.additional,
                terminates=plan.terminates,
            )
            for plan in self.case.tools
        ]

    def _runner(self, plan: ToolPlan) -> Any:
        async def run(call: FunctionCall) -> str | None:
            arguments = call.arguments or {}
            self.invocations.append({"name": call.name, "arguments": dict(arguments)})
            if plan.raises is not None:
                raise RuntimeError(plan.raises)
            return None if plan.returns is None else _fill_template(plan.returns, arguments)

        return run


def _fill_template(text: str, arguments: Mapping[str, Any]) -> str:
    """Fill in `{argument}`; a missing argument makes the tool fail, as a bound one does."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in arguments:
            raise LookupError(f"the required argument {match[1]!r} is missing")
        return _to_dotnet_text(arguments[match[1]])

    return re.sub(r"\{(\w+)\}", value, text)


def _to_dotnet_text(value: Any) -> str:
    """Return a value as .NET formats it: True and False, nothing for null, JSON for composed values."""
    if value is None or isinstance(value, bool | str):
        return "" if value is None else str(value)
    return write_json(value)


def run_case(case: Case) -> dict[str, Any]:
    """Play a case and return its outcome.

    Raises:
        ContentError: The case has fewer model turns than the client needs.
    """
    return asyncio.run(_run(case))


async def _run(case: Case) -> dict[str, Any]:
    player = _CasePlayer(case)
    client = FunctionInvokingClient(
        model=player,
        behaviour=case.behaviour,
        tools=player.tools(),
        conversation_id=case.conversation_id,
        notation=case.notation,
    )
    received: list[Message] = []
    pulled: list[int] = []
    error: dict[str, str] | None = None
    try:
        if case.streaming:
            async for update in client.stream(case.messages):
                received.append(update)
                if not player.first_answer_has_ended(update):
                    pulled.append(player.read)
        else:
            received = await client.respond(case.messages)
    except ClientFailure as failure:
        error = {"type": failure.type, "text": str(failure)}
    return {
        "messages": write_messages(coalesce_updates(received) if case.streaming else received),
        "model_inputs": player.inputs,
        "invocations": player.invocations,
        "messages_after": write_messages(case.messages),
        "error": error,
        "pulled": pulled if case.streaming else None,
    }

"""Messages of the framework in the neutral form, as its Chat Completions class sends them.

A scenario has a tool for each agent that can be asked, with one parameter. The leader of a team has one tool for all of
its members. The two mean the same and are translated where the model is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...contract import Chunk, Item, ModelCall, Reply, ToolSpec
from ...kit.tool_schema import is_object_text, parse_arguments

if TYPE_CHECKING:
    from agno.models.message import Message


DELEGATE = "delegate_task_to_member"
"""What the framework calls the tool of a team's leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegations:
    """The calls of one agent that run another one.

    Attributes:
        members: The member that a tool of the scenario runs.
        earlier: What that member was called before it was renamed, by its name.
    """

    members: Mapping[str, str] = field(default_factory=dict)
    earlier: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_specs(cls, specs: Iterable[ToolSpec], names: Mapping[str, str]) -> Delegations:
        """Return the delegations among the tools *specs*, to members of which some have other *names*."""
        members = {spec.name: names.get(spec.runs, spec.runs) for spec in specs if spec.runs is not None}
        return cls(members=members, earlier={new: old for old, new in names.items()})

    def to_neutral(self, name: str, arguments: Any) -> tuple[str, Any]:
        """Return a call of the framework's tool as a call of the scenario's tool."""
        if name != DELEGATE or not isinstance(arguments, dict):
            return name, arguments
        asked = arguments.get("member_id")
        tools = [tool for tool, member in self.members.items() if asked in (member, self.earlier.get(member))]
        return (tools[0], {"input": arguments.get("task")}) if tools else (name, arguments)

    def to_neutral_names(self, offered: Iterable[str]) -> list[str]:
        """Return the scenario's names of the tools that a model is offered."""
        return [name for tool in offered for name in (self.members if tool == DELEGATE else (tool,))]

    def to_framework(self, reply: Reply) -> tuple[list[ModelCall], list[Chunk]]:
        """Return the calls and chunks of a reply as the leader's model makes them."""
        calls = [self._to_delegation(call) for call in reply.calls]
        changed = {number: call for number, call in enumerate(calls) if call is not reply.calls[number]}
        return calls, list(_translate_chunks(reply.chunks, changed))

    def _to_delegation(self, call: ModelCall) -> ModelCall:
        if call.tool not in self.members or not isinstance(call.arguments, Mapping):
            return call
        arguments = {"member_id": self.members[call.tool], "task": call.arguments.get("input")}
        return ModelCall(id=call.id, tool=DELEGATE, arguments=arguments)


def _translate_chunks(chunks: Iterable[Chunk], changed: Mapping[int, ModelCall]) -> Iterable[Chunk]:
    """Yield chunks with the name and all arguments of a changed call in its first pieces."""
    complete: set[int] = set()
    for chunk in chunks:
        call = None if chunk.call is None else changed.get(chunk.call)
        if call is None or chunk.call is None:
            yield chunk
            continue
        arguments = None
        if chunk.arguments and chunk.call not in complete:
            complete.add(chunk.call)
            arguments = json.dumps(call.arguments)
        yield Chunk(call=chunk.call, id=chunk.id, tool=call.tool if chunk.tool else None, arguments=arguments)


def to_items(
    messages: Iterable[Message], delegations: Delegations, *, answers: bool = False, compresses: bool = False
) -> list[Item]:
    """Return the model input as a provider would get it.

    Args:
        messages: The framework's messages.
        delegations: The calls that run team members.
        answers: The model answers with an object, as text; such texts are not items of kind `say`.
        compresses: Rejections and errors are sent as the agent's compressor rewrote them. How it shortens what a tool
            returned is up to it.
    """
    return [
        item
        for number, message in enumerate(messages)
        for item in _message_items(message, number, delegations, answers, compresses)
    ]


def _message_items(
    message: Any, number: int, delegations: Delegations, answers: bool, compresses: bool
) -> Iterator[Item]:
    # Releases before compression lack the attribute.
    compressed = getattr(message, "compressed_content", None) if compresses and message.tool_call_error else None
    text = text_of(message.content if compressed is None else compressed)
    if message.role == "assistant":
        yield from _reasoning_items(message, number)
        if text:
            answer = answers and is_object_text(text)
            yield Item(kind="other" if answer else "say", text=text, message=number)
        yield from _call_items(message, number, delegations)
    elif message.role == "tool":
        tool = message.tool_name
        yield Item(kind="result", id=message.tool_call_id, tool=tool, text=text, message=number)
    else:
        yield Item(kind="user" if message.role == "user" else "other", text=text, message=number)


def _reasoning_items(message: Any, number: int) -> Iterator[Item]:
    # The place is that of the framework's class for Anthropic; the id of the provider has none.
    if message.redacted_reasoning_content:
        yield Item(kind="reasoning", signature=message.redacted_reasoning_content, message=number)
    if message.reasoning_content:
        signature = (message.provider_data or {}).get("signature")
        yield Item(kind="reasoning", text=message.reasoning_content, signature=signature, message=number)


def _call_items(message: Any, number: int, delegations: Delegations) -> Iterator[Item]:
    for call in message.tool_calls or ():
        function = call["function"]
        name, arguments = delegations.to_neutral(function["name"], parse_arguments(function["arguments"]))
        yield Item(kind="call", id=call.get("id"), tool=name, arguments=arguments, message=number)


def text_of(content: Any) -> str:
    """Return the text of a message's content."""
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, default=str)

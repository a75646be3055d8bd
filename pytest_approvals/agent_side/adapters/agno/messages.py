"""Calls that run another agent, which in a team are calls of a tool that the framework makes.

A scenario has a tool for each agent that can be asked, with one parameter; the leader of a team has one tool for all of
its members. The two say the same, and are put into each other's words where the model is asked.

Messages of the framework in the neutral form, as its class for Chat Completions would send them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...contract import Chunk, Item, ModelCall, Reply, ToolSpec

if TYPE_CHECKING:
    from agno.models.message import Message


DELEGATE = "delegate_task_to_member"
"""What the framework calls the tool of a team's leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegations:
    """
    The tools of one agent that run others.

    Attributes:
        members: The agent that a tool runs, by the tool's name.
    """

    members: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, specs: Iterable[ToolSpec]) -> Delegations:
        """Finds the tools that run agents."""
        return cls(members={spec.name: spec.runs for spec in specs if spec.runs is not None})

    def neutral(self, name: str, arguments: Any) -> tuple[str, Any]:
        """Gives a call of the framework's tool as the scenario's own."""
        if name != DELEGATE or not isinstance(arguments, dict):
            return name, arguments
        found = [tool for tool, member in self.members.items() if member == arguments.get("member_id")]
        return (found[0], {"input": arguments.get("task")}) if found else (name, arguments)

    def names(self, offered: Iterable[str]) -> list[str]:
        """Gives the names of the tools that a model is offered."""
        return [name for one in offered for name in (self.members if one == DELEGATE else (one,))]

    def made(self, reply: Reply) -> tuple[list[ModelCall], list[Chunk]]:
        """Gives the calls and chunks of a reply as the leader's model makes them."""
        whole = [self._made(call) for call in reply.calls]
        changed = {number: call for number, call in enumerate(whole) if call is not reply.calls[number]}
        return whole, list(_translate_chunks(reply.chunks, changed))

    def _made(self, call: ModelCall) -> ModelCall:
        if call.tool not in self.members or not isinstance(call.arguments, Mapping):
            return call
        arguments = {"member_id": self.members[call.tool], "task": call.arguments.get("input")}
        return ModelCall(id=call.id, tool=DELEGATE, arguments=arguments)


def _translate_chunks(chunks: Iterable[Chunk], changed: Mapping[int, ModelCall]) -> Iterable[Chunk]:
    """Gives chunks with the name and all arguments of a changed call where its first ones stood."""
    told: set[int] = set()
    for chunk in chunks:
        call = None if chunk.call is None else changed.get(chunk.call)
        if call is None or chunk.call is None:
            yield chunk
            continue
        arguments = None
        if chunk.arguments and chunk.call not in told:
            told.add(chunk.call)
            arguments = json.dumps(call.arguments)
        yield Chunk(call=chunk.call, id=chunk.id, tool=call.tool if chunk.tool else None, arguments=arguments)


def to_items(messages: Iterable[Message], delegations: Delegations, *, answers: bool = False) -> list[Item]:
    """
    Gives the input of the model as a provider would get it.

    Arguments:
        answers: The model answers with an object, as text; such texts are nothing that it says.
    """
    return [
        item
        for number, message in enumerate(messages)
        for item in _message_items(message, number, delegations, answers)
    ]


def _message_items(message: Any, number: int, delegations: Delegations, answers: bool) -> Iterator[Item]:
    text = text_of(message.content)
    if message.role == "assistant":
        if text:
            answer = answers and is_json_object(text)
            yield Item(kind="other" if answer else "say", text=text, message=number)
        yield from _call_items(message, number, delegations)
    elif message.role == "tool":
        tool = message.tool_name
        yield Item(kind="result", id=message.tool_call_id, tool=tool, text=text, message=number)
    else:
        yield Item(kind="user" if message.role == "user" else "other", text=text, message=number)


def _call_items(message: Any, number: int, delegations: Delegations) -> Iterator[Item]:
    for call in message.tool_calls or ():
        function = call["function"]
        name, arguments = delegations.neutral(function["name"], parse_arguments(function["arguments"]))
        yield Item(kind="call", id=call.get("id"), tool=name, arguments=arguments, message=number)


def parse_arguments(arguments: Any) -> Any:
    """Gives arguments as an object where they are one, else the text that they are."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    return value if isinstance(value, dict) else arguments


def is_json_object(text: str) -> bool:
    """Says whether *text* is an object."""
    return isinstance(parse_arguments(text), dict)


def text_of(content: Any) -> str:
    """Gives what a message says."""
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, default=str)

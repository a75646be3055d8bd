"""
Calls that run another agent, which in a team are calls of a tool that the framework makes.

A scenario has a tool for each agent that can be asked, with one parameter; the leader of a team has one tool for all of
its members. The two say the same, and are put into each other's words where the model is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...contract import Chunk, ModelCall, Reply, ToolSpec

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
        return whole, list(_chunks(reply.chunks, changed))

    def _made(self, call: ModelCall) -> ModelCall:
        if call.tool not in self.members or not isinstance(call.arguments, Mapping):
            return call
        arguments = {"member_id": self.members[call.tool], "task": call.arguments.get("input")}
        return ModelCall(id=call.id, tool=DELEGATE, arguments=arguments)


def _chunks(chunks: Iterable[Chunk], changed: Mapping[int, ModelCall]) -> Iterable[Chunk]:
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

"""
Asking the model, and taking its reply in: streams put together, ids made unique, everything said remembered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.contract import Blueprint, World
from pytest_approvals.agent_side.failures import ModelDown
from pytest_approvals.agent_side.neutral import Chunk, HostedResult, Item, ModelCall, Reply, ToolSpec

from . import wording
from .arguments import Misfit, fitted
from .keeping import Keeping
from .refusals import LimitReached
from .state import Call, Conversation


@dataclass(slots=True)
class Turn:
    """What is counted in one turn."""

    stream: bool
    replies: int = 0
    executions: int = 0


@dataclass(slots=True)
class Partial:
    """A call of which not all chunks have come."""

    id: str | None = None
    tool: str = ""
    arguments: list[str] = field(default_factory=list)


class Conversing(Keeping):
    """The layer that talks with the model."""

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.specs: dict[tuple[str, str], list[ToolSpec]] = {}
        for spec in blueprint.tools:
            self.specs.setdefault((spec.agent, spec.name), []).append(spec)

    async def ask_model(self, conversation: Conversation, turn: Turn) -> None:
        """
        Asks the model once. If it fails, the conversation is what it was, and the model can be asked again.

        Errors:
            LimitReached: The turn has had its replies.
            ModelDown: The model failed, or its stream broke.
        """
        limit = self.blueprint.limits.model_replies
        if limit is not None and turn.replies >= limit:
            raise LimitReached("model replies", limit)
        turn.replies += 1
        reply = await self.world.model(
            self.model_input(conversation),
            agent=conversation.agent,
            stream=turn.stream,
            tools=self.offered(conversation.agent),
        )
        self.take_reply(conversation, self.play(reply) if turn.stream else reply, turn)

    def model_input(self, conversation: Conversation) -> list[Item]:
        """Gives what the model is sent: all that was said."""
        return list(conversation.items)

    def spec_of(self, conversation: Conversation, call: Call) -> ToolSpec | None:
        """Gives the tool that a call is about, by agent and name; among tools of several servers, by the server too."""
        return self.spec_named(conversation, call.tool, call.server)

    def spec_named(self, conversation: Conversation, tool: str, server: str | None) -> ToolSpec | None:
        """Gives the tool of that name; None where there is none, or none of that server among several."""
        named = self.specs.get((conversation.agent, tool), [])
        return named[0] if len(named) == 1 else next((spec for spec in named if spec.server == server), None)

    def offered(self, agent: str) -> tuple[str, ...]:
        """Gives the names of the tools that an agent has."""
        return tuple(name for owner, name in self.specs if owner == agent)

    # --- streams ------------------------------------------------------------------------------------------------------

    def play(self, reply: Reply) -> Reply:
        """
        Puts a streamed reply together from its chunks, showing its text as it comes.

        Errors:
            ModelDown: The stream broke; what came of it is not a reply.
        """
        text, partial = "", dict[int, Partial]()
        for chunk in reply.chunks:
            if chunk.text:
                self.world.shown("text", text=chunk.text)
                text += chunk.text
            if chunk.call is not None:
                self.add_chunk(partial, chunk)
        if reply.breaks:
            raise ModelDown(0, reply.how)
        calls = tuple(completed(partial[place], reply.calls[place]) for place in sorted(partial))
        return Reply(say=text or None, calls=calls, answer=reply.answer, hosted=reply.hosted)

    def add_chunk(self, partial: dict[int, Partial], chunk: Chunk) -> None:
        """Adds a chunk to the call that it belongs to, by position: the id need not be repeated, nor be unique."""
        assert chunk.call is not None
        call = partial.setdefault(chunk.call, Partial())
        call.id = chunk.id or call.id
        call.tool = chunk.tool or call.tool
        if chunk.arguments:
            call.arguments.append(chunk.arguments)

    # --- remembering what was said ------------------------------------------------------------------------------------

    def take_reply(self, conversation: Conversation, reply: Reply, turn: Turn) -> None:
        """Remembers a reply as one message, and its calls as what is to be worked off."""
        calls = self.calls_of(conversation, reply)
        number = conversation.messages
        said = [hosted_item(result, number) for result in reply.hosted]
        said += [Item(kind="say", text=reply.say, message=number)] if reply.say else []
        said += [call_item(call, number) for call in calls]
        self.remember(conversation, said)
        conversation.calls = calls
        conversation.output = reply.say
        conversation.asks_model = False
        if reply.answer is not None:
            self.take_answer(conversation, reply.answer)
        if turn.stream:
            for call in calls:
                self.world.shown("call", id=call.id, tool=call.tool)

    def take_answer(self, conversation: Conversation, answer: Mapping[str, Any]) -> None:
        """Takes a structured answer as the output; where it does not fit, the model is told and asked again."""
        self.remember(conversation, [Item(kind="other", text=json.dumps(answer), message=conversation.messages)])
        try:
            conversation.output = fitted(ToolSpec(name="the answer", parameters=self.blueprint.answer), answer)
        except Misfit as error:
            told = wording.misfit("the answer", str(error))
            self.remember(conversation, [Item(kind="other", text=told, message=conversation.messages)])
            conversation.asks_model = True

    def calls_of(self, conversation: Conversation, reply: Reply) -> list[Call]:
        """Makes the calls of a reply, each with an id of its own."""
        calls: list[Call] = []
        for given in reply.calls:
            call_id = self.own_id(conversation, given, [call.id for call in calls])
            arguments = given.arguments if isinstance(given.arguments, str) else dict(given.arguments)
            calls.append(Call(id=call_id, tool=given.tool, arguments=arguments, kind=given.kind, server=given.server))
        return calls

    def own_id(self, conversation: Conversation, given: ModelCall, taken: Sequence[str]) -> str:
        """Gives the id of a call: the model's, if it gave one and did not give it twice in this reply."""
        if given.id is None:
            conversation.named += 1
            return f"call-{conversation.named}"
        if given.id not in taken or given.kind == "hosted_mcp":
            return given.id
        return next(name for n in range(2, len(taken) + 3) if (name := f"{given.id}-{n}") not in taken)

    def hear(self, conversation: Conversation, text: str) -> None:
        """Remembers a message of the user, which the model has to answer."""
        self.remember(conversation, [Item(kind="user", text=text, message=conversation.messages)])
        conversation.asks_model = True

    def remember(self, conversation: Conversation, said: Sequence[Item]) -> None:
        """Adds one message to the conversation, where there is anything in it."""
        if said:
            conversation.items += said
            conversation.messages += 1


def completed(partial: Partial, whole: ModelCall) -> ModelCall:
    """Gives a call whose chunks have all come; kind and server are not streamed."""
    arguments = parsed("".join(partial.arguments))
    return ModelCall(id=partial.id, tool=partial.tool, arguments=arguments, kind=whole.kind, server=whole.server)


def parsed(text: str) -> dict[str, Any] | str:
    """Gives arguments as an object, or as the text that they are where that is not a JSON object."""
    try:
        value = json.loads(text, parse_constant=_no_number)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def call_item(call: Call, message: int) -> Item:
    """Gives a call as it stands in the model's own reply; a hosted one stands there as the provider's question."""
    kind = "approval_request" if call.kind == "hosted_mcp" else "call"
    return Item(kind=kind, id=call.id, tool=call.tool, arguments=call.arguments, message=message)


def hosted_item(result: HostedResult, message: int) -> Item:
    """Gives the provider's report of a call that it ran."""
    return Item(
        kind="hosted_result",
        id=result.call_id,
        tool=result.tool,
        arguments=dict(result.arguments),
        text=result.output if result.error is None else result.error,
        message=message,
    )

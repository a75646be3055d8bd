"""
Requests in the place of calls: of an answer with a call of a gated tool all live calls become requests.

Sources: dotnet/extensions#6745, #6903, #7299, #7314, #7549.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from .behaviours import Behaviour
from .contents import (
    Content,
    FunctionCall,
    FunctionResult,
    Message,
    Notation,
    ToolApprovalRequest,
    function_calls,
    live_calls,
)
from .failures import InvalidOperation
from .invoking import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """
    How one request to the client asks.

    Attributes:
        notation: The generation of discriminators for the requests that it makes.
        asked: The ids of all requests, those of the caller's messages and those that were made.
    """

    behaviour: Behaviour
    toolbox: Toolbox
    notation: Notation
    asked: set[str]

    def reply(self, messages: Sequence[Message]) -> list[Message]:
        """Gives a whole answer of the model with requests, where one of its calls is gated."""
        own = OwnIds(self.behaviour)
        reply = [own.message(message) for message in messages]
        if self.behaviour.has_flags:
            flag_provider_handled(reply)
        names = [call.name for message in reply for call in self.live(message)]
        return [self.message(message) for message in reply] if any(map(self.toolbox.is_gated, names)) else reply

    def live(self, message: Message) -> list[FunctionCall]:
        """Gives the calls in a message that this client has to deal with."""
        return live_calls(message) if self.behaviour.has_flags else function_calls(message)

    def message(self, message: Message) -> Message:
        """Gives a message with a request in the place of each live call."""
        calls = {id(call) for call in self.live(message)}
        return replace(
            message,
            contents=tuple(
                self._request_for(content) if id(content) in calls else content for content in message.contents
            ),
        )

    def _request_for(self, call: Content) -> Content:
        if not isinstance(call, FunctionCall):
            return call
        plain = self.behaviour.request_id_prefix + call.call_id
        request_id = unused(plain, self.asked) if self.behaviour.by_position else plain
        self.asked.add(request_id)
        return ToolApprovalRequest(
            request_id=request_id,
            tool_call=call,
            requires_confirmation=not self.behaviour.tells_confirmation or self.toolbox.any_gated(call.name),
            notation=self.notation,
        )


@dataclass(slots=True)
class Streamed:
    """
    One streamed answer of the model on its way to the caller.

    Attributes:
        seen: All updates, as the caller got them.
        live: The calls to deal with.
        asks: A gated call has come; all calls become requests.
    """

    asking: Asking
    seen: list[Message] = field(default_factory=list)
    live: list[FunctionCall] = field(default_factory=list)
    asks: bool = False

    async def updates(self, stream: AsyncIterator[Message | None]) -> AsyncIterator[Message]:
        """Gives the updates on; those from the first call on when it is known whether the calls become requests."""
        own = OwnIds(self.asking.behaviour)
        held: list[Message] = []
        async for update in stream:
            if update is None:
                raise InvalidOperation("The inner IChatClient streamed a null ChatResponseUpdate.")
            held.append(own.message(update))
            self._look_at(held[-1])
            if self.asks or not self._holds:
                for each in self._released(held):
                    yield each
                held = []
        if self.asking.behaviour.has_flags:
            flag_provider_handled([*self.seen, *held], self.live)
            self.live = [call for call in self.live if not call.informational_only]
        for each in self._released(held):
            yield each

    @property
    def _holds(self) -> bool:
        waits = self.asking.behaviour.holds_every_call or self.asking.toolbox.any_gated()
        return bool(self.live) and waits

    def _look_at(self, update: Message) -> None:
        calls = self.asking.live(update)
        self.live += calls
        self.asks = self.asks or any(self.asking.toolbox.any_gated(call.name) for call in calls)

    def _released(self, held: Iterable[Message]) -> list[Message]:
        released = [self.asking.message(update) if self.asks else update for update in held]
        self.seen += released
        return released


@dataclass(slots=True)
class OwnIds:
    """Gives each call of one answer an id of its own, where the behaviour cares."""

    behaviour: Behaviour
    used: set[str] = field(default_factory=set)

    def message(self, message: Message) -> Message:
        """Gives a message, or an update, without an id that was in the answer before."""
        if not self.behaviour.by_position or not function_calls(message):
            return message
        return replace(message, contents=tuple(map(self._own, message.contents)))

    def _own(self, content: Content) -> Content:
        if not isinstance(content, FunctionCall):
            return content
        call_id = unused(content.call_id, self.used)
        self.used.add(call_id)
        return content if call_id == content.call_id else replace(content, call_id=call_id)


def unused(name: str, used: set[str]) -> str:
    """
    Gives the id, or where it was used already, a like one that was not.

    >>> unused("ficc_c1", {"ficc_c1", "ficc_c1_2"})
    'ficc_c1_3'
    """
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name not in used else next(each for each in numbered if each not in used)


def flag_provider_handled(messages: Sequence[Message], calls: Iterable[FunctionCall] | None = None) -> None:
    """
    Flags calls whose result the provider has sent along.

    Arguments:
        calls: The calls to look at; None for those in the messages.
    """
    contents = [content for message in messages for content in message.contents]
    handled = {content.call_id for content in contents if isinstance(content, FunctionResult)}
    for call in calls if calls is not None else [call for message in messages for call in function_calls(message)]:
        if call.call_id in handled:
            call.settle()

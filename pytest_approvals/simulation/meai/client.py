"""
The function-invoking client: what stands between a caller and a model, runs tools, and asks before it runs gated ones.

It keeps nothing between two requests; what was asked and decided is in the messages, and what was dealt with is in the
flags of calls that the caller may hold, too. Sources: dotnet/extensions#6745, #6903, #7299, #7314, #7468, #7549, #7617.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from .asking import Asking, Streamed
from .behaviours import Behaviour
from .contents import FunctionCall, Message, Notation, ToolApprovalRequest
from .failures import InvalidOperation
from .invoking import MOST_ITERATIONS, Invoking, Tool, Toolbox
from .settling import Settlement, rebuilt_calls, rejection, settled
from .updates import coalesced

TOOL_MESSAGE_ID = "tool-results"
"""The id that the streamed tool messages of one request share; .NET makes up a new one for each request."""

FALLBACK_MESSAGE_ID = "rebuilt-calls"
"""The id of a streamed message of rebuilt calls whose own is not known; made up likewise."""


class Model(Protocol):
    """What the client calls; it answers None where a broken one would."""

    async def respond(self, messages: Sequence[Message]) -> Sequence[Message] | None:
        """Gives the whole answer to the messages."""

    def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message | None]:
        """Gives the answer as updates."""


@dataclass(slots=True)
class _Request:
    """
    One request, while it is served.

    Attributes:
        messages: What the model is going to be sent.
        tool_message_id, fallback_id: Ids for streamed messages; None for those that are not.
    """

    messages: list[Message]
    invoking: Invoking
    asking: Asking
    tool_message_id: str | None = None
    fallback_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionInvokingClient:
    """
    The client.

    Attributes:
        model: What it calls.
        behaviour: The releases that it behaves as.
        tools: The caller's tools and its own.
        conversation_id: The model keeps the conversation under that id, and wants only what is new.
        notation: The generation of discriminators for the requests that it makes.
    """

    model: Model
    behaviour: Behaviour
    tools: Sequence[Tool] = field(default_factory=tuple)
    conversation_id: str | None = None
    notation: Notation = "current"

    async def respond(self, messages: Sequence[Message]) -> list[Message]:
        """
        Serves a request at once.

        Returns: Everything that the caller has not seen: rebuilt calls, results, what the model said.
        Errors:
            ClientFailure: As .NET fails.
        """
        request = self._request(messages)
        produced = [message async for message in self._settling(request)]
        for iteration in range(MOST_ITERATIONS + 1):
            if request.invoking.stopped:
                break
            reply = await self._reply(request)
            produced += reply
            calls = [call for message in reply for call in request.asking.live(message)]
            if self._ends_with(calls, iteration):
                break
            produced.append(await self._round(request, reply, calls))
        return produced

    async def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message]:
        """
        Serves a request in updates.

        Errors:
            ClientFailure: As .NET fails; what came before stays seen.
        """
        request = replace(self._request(messages), tool_message_id=TOOL_MESSAGE_ID, fallback_id=FALLBACK_MESSAGE_ID)
        async for message in self._settling(request):
            yield message
        for iteration in range(MOST_ITERATIONS + 1):
            if request.invoking.stopped:
                break
            streamed = Streamed(request.asking)
            async for update in streamed.updates(self.model.stream(list(request.messages))):
                yield update
            if streamed.asks or self._ends_with(streamed.live, iteration):
                break
            results = await self._round(request, coalesced(streamed.seen), streamed.live)
            yield replace(results, message_id=request.tool_message_id)

    @property
    def toolbox(self) -> Toolbox:
        """All its tools."""
        return Toolbox(tuple(self.tools), self.behaviour)

    @property
    def _service_keeps(self) -> bool:
        return bool(self.conversation_id and self.conversation_id.strip())

    def _request(self, messages: Sequence[Message]) -> _Request:
        contents = [content for message in messages for content in message.contents]
        asked = {content.request_id for content in contents if isinstance(content, ToolApprovalRequest)}
        asking = Asking(behaviour=self.behaviour, toolbox=self.toolbox, notation=self.notation, asked=asked)
        return _Request(list(messages), Invoking(self.toolbox), asking)

    def _ends_with(self, calls: Sequence[FunctionCall], iteration: int) -> bool:
        return (
            not calls or iteration >= MOST_ITERATIONS or any(self.toolbox.is_only_declared(call.name) for call in calls)
        )

    async def _settling(self, request: _Request) -> AsyncIterator[Message]:
        """Deals with requests and responses among the messages, and gives what comes of it as it comes."""
        settlement = settled(request.messages, self.behaviour, service_keeps=self._service_keeps)
        if settlement is None:
            return
        request.messages = settlement.messages
        for message in self._put_calls(request, settlement):
            yield message
        if settlement.approved:
            results = await request.invoking.run([each.call for each in settlement.approved])
            self._mark_approved(settlement, results)
            yield self._put(request, settlement, replace(results, message_id=request.tool_message_id))

    def _put_calls(self, request: _Request, settlement: Settlement) -> list[Message]:
        calls = rebuilt_calls([*settlement.rejected, *settlement.approved], request.fallback_id)
        if not self._service_keeps:
            for message in calls:
                self._put(request, settlement, message)
        if not settlement.rejected:
            return calls
        told = Message(
            role="tool",
            contents=tuple(rejection(each) for each in settlement.rejected),
            message_id=request.tool_message_id,
        )
        self._mark_rejected(settlement)
        return [*calls, self._put(request, settlement, told)]

    def _put(self, request: _Request, settlement: Settlement, message: Message) -> Message:
        request.messages.insert(settlement.at, message)
        settlement.at += 1
        return message

    def _mark_rejected(self, settlement: Settlement) -> None:
        for each in settlement.rejected:
            if self.behaviour.has_flags and each.response.function is not None:
                each.response.function.settle()
            if self.behaviour.marks_requests:
                each.mark_request()

    def _mark_approved(self, settlement: Settlement, results: Message) -> None:
        """Running has flagged what ran; its other copies are flagged here."""
        for each, _ in zip(settlement.approved, results.contents, strict=False):
            if self.behaviour.has_flags and each.response.function is not None:
                each.response.function.settle()
        for each in settlement.approved:
            if self.behaviour.marks_requests:
                each.mark_request()

    async def _reply(self, request: _Request) -> list[Message]:
        answer = await self.model.respond(list(request.messages))
        if answer is None:
            raise InvalidOperation("The inner IChatClient returned a null ChatResponse.")
        return request.asking.reply(answer)

    async def _round(self, request: _Request, reply: Sequence[Message], calls: Sequence[FunctionCall]) -> Message:
        """Runs the calls, and makes what the model is sent next."""
        results = await request.invoking.run(calls)
        request.messages = [results] if self._service_keeps else [*request.messages, *reply, results]
        return results

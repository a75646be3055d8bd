"""Streamed updates, and how they become messages again.

The tools that a client has, and how it runs calls of them, one after the other.

Requests in the place of calls: of an answer with a call of a gated tool all live calls become requests.

Sources: dotnet/extensions#6745, #6903, #7299, #7314, #7549.

The function-invoking client: what stands between a caller and a model, runs tools, and asks before it runs gated ones.

It keeps nothing between two requests; what was asked and decided is in the messages, and what was dealt with is in the
flags of calls that the caller may hold, too. Sources: dotnet/extensions#6745, #6903, #7299, #7314, #7468, #7549, #7617.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

from pytest_approvals.simulation.meai.approvals import Settlement, build_rejection, rebuild_calls, settle_approvals
from pytest_approvals.simulation.meai.contents import (
    Content,
    FunctionCall,
    FunctionResult,
    JsonNotation,
    Message,
    Text,
    ToolApprovalRequest,
    function_calls,
    live_calls,
)
from pytest_approvals.simulation.meai.errors import InvalidOperation, ToolError
from pytest_approvals.simulation.meai.releases import ReleaseBehaviour


def coalesce_updates(updates: Iterable[Message]) -> list[Message]:
    """
    Gives the messages that a caller makes of the updates.

    A new message begins where both author names or both message ids are there and differ, or the roles do; texts that
    stand side by side become one.
    """
    messages: list[Message] = []
    for update in updates:
        if not messages or _starts_new_message(update, messages[-1]):
            messages.append(update)
        else:
            messages[-1] = _append_update(messages[-1], update)
    return [replace(message, contents=_merge_texts(message.contents)) for message in messages]


def _starts_new_message(update: Message, last: Message) -> bool:
    return (
        _differ(update.author_name, last.author_name)
        or _differ(update.message_id, last.message_id)
        or _differ(update.role, last.role)
    )


def _differ(one: str | None, other: str | None) -> bool:
    return bool(one) and bool(other) and one != other


def _append_update(message: Message, update: Message) -> Message:
    return replace(
        message,
        contents=(*message.contents, *update.contents),
        message_id=update.message_id or message.message_id,
        author_name=message.author_name or update.author_name,
        created_at=update.created_at or message.created_at,
    )


def _merge_texts(contents: Sequence[Content]) -> tuple[Content, ...]:
    merged: list[Content] = []
    for content in contents:
        last = merged[-1] if merged else None
        if isinstance(content, Text) and isinstance(last, Text) and not (_is_annotated(content) or _is_annotated(last)):
            merged[-1] = replace(last, text=last.text + content.text)
        else:
            merged.append(content)
    return tuple(merged)


def _is_annotated(text: Text) -> bool:
    return bool(text.source and text.source.get("annotations"))


MAX_CONSECUTIVE_ERRORS = 3
"""How many rounds with a failed tool a request forgives."""

MAX_ITERATIONS = 40
"""How often a request calls the model before it stops running tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool:
    """
    A tool.

    Attributes:
        run: What it does; None for one that is only declared, and that the caller runs.
        gated: Its calls need approval.
        additional: It is the client's own, not one of those that the caller brings along.
        terminates: Once it has run, the client stops.
    """

    name: str
    run: Callable[[FunctionCall], Awaitable[Any]] | None = None
    gated: bool = False
    additional: bool = False
    terminates: bool = False


@dataclass(frozen=True, slots=True)
class Toolbox:
    """All tools of one request."""

    tools: tuple[FunctionTool, ...]
    behaviour: ReleaseBehaviour

    def find(self, name: str) -> FunctionTool | None:
        """Gives the tool with that name; which one, where two have it, depends on the release."""
        own_first = sorted(self.tools, key=lambda tool: tool.additional)
        if self.behaviour.later_tools_win:
            own_first = [*sorted(self.tools, key=lambda tool: not tool.additional)][::-1]
        return next((tool for tool in own_first if tool.name == name), None)

    def is_gated(self, name: str) -> bool:
        """Says whether the tool with that name is gated."""
        tool = self.find(name)
        return tool is not None and tool.gated

    def any_gated(self, name: str | None = None) -> bool:
        """Says whether any tool, or any with that name, is gated."""
        return any(tool.gated for tool in self.tools if name is None or tool.name == name)

    def is_only_declared(self, name: str) -> bool:
        """Says whether the caller has to run the tool with that name."""
        tool = self.find(name)
        return tool is not None and tool.run is None


@dataclass(slots=True)
class FunctionInvoker:
    """
    Runs calls for one request, and counts how often in a row that failed.

    Attributes:
        stopped: A tool asked to stop.
    """

    toolbox: Toolbox
    errors_in_a_row: int = 0
    stopped: bool = False

    async def run(self, calls: Sequence[FunctionCall]) -> Message:
        """
        Runs the calls until one asks to stop, flags those that were run, and gives the message with their results.

        Errors:
            ToolError: Tools have failed too often in a row.
        """
        results: list[FunctionResult] = []
        failed: list[tuple[str, str, str]] = []
        for call in calls:
            results.append(await self._run_one(call, failed))
            if self.stopped:
                break
        self._count(failed)
        return Message(role="tool", contents=tuple(results))

    async def _run_one(self, call: FunctionCall, failed: list[tuple[str, str, str]]) -> FunctionResult:
        if self.toolbox.behaviour.has_flags:
            call.settle()
        tool = self.toolbox.find(call.name)
        if tool is None or tool.run is None:
            return _build_result(call, f'Error: Requested function "{call.name}" not found.')
        try:
            result = await tool.run(call)
        except Exception as error:
            failed.append((call.name, call.call_id, str(error)))
            if self.errors_in_a_row >= MAX_CONSECUTIVE_ERRORS:
                raise ToolError(failed[-1:]) from error
            return _build_result(call, "Error: Function failed.")
        self.stopped = tool.terminates
        return _build_result(call, "Success: Function completed." if result is None else result)

    def _count(self, failed: Iterable[tuple[str, str, str]]) -> None:
        self.errors_in_a_row = self.errors_in_a_row + 1 if list(failed) else 0


def _build_result(call: FunctionCall, result: Any) -> FunctionResult:
    return FunctionResult(call_id=call.call_id, result=result)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBuilder:
    """
    How one request to the client asks.

    Attributes:
        notation: The generation of discriminators for the requests that it makes.
        asked: The ids of all requests, those of the caller's messages and those that were made.
    """

    behaviour: ReleaseBehaviour
    toolbox: Toolbox
    notation: JsonNotation
    asked: set[str]

    def reply(self, messages: Sequence[Message]) -> list[Message]:
        """Gives a whole answer of the model with requests, where one of its calls is gated."""
        own = UniqueCallIds(self.behaviour)
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
        request_id = make_unused_id(plain, self.asked) if self.behaviour.by_position else plain
        self.asked.add(request_id)
        return ToolApprovalRequest(
            request_id=request_id,
            tool_call=call,
            requires_confirmation=not self.behaviour.tells_confirmation or self.toolbox.any_gated(call.name),
            notation=self.notation,
        )


@dataclass(slots=True)
class StreamedReply:
    """
    One streamed answer of the model on its way to the caller.

    Attributes:
        seen: All updates, as the caller got them.
        live: The calls to deal with.
        asks: A gated call has come; all calls become requests.
    """

    asking: RequestBuilder
    seen: list[Message] = field(default_factory=list)
    live: list[FunctionCall] = field(default_factory=list)
    asks: bool = False

    async def updates(self, stream: AsyncIterator[Message | None]) -> AsyncIterator[Message]:
        """Gives the updates on; those from the first call on when it is known whether the calls become requests."""
        own = UniqueCallIds(self.asking.behaviour)
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
class UniqueCallIds:
    """Gives each call of one answer an id of its own, where the behaviour cares."""

    behaviour: ReleaseBehaviour
    used: set[str] = field(default_factory=set)

    def message(self, message: Message) -> Message:
        """Gives a message, or an update, without an id that was in the answer before."""
        if not self.behaviour.by_position or not function_calls(message):
            return message
        return replace(message, contents=tuple(map(self._own, message.contents)))

    def _own(self, content: Content) -> Content:
        if not isinstance(content, FunctionCall):
            return content
        call_id = make_unused_id(content.call_id, self.used)
        self.used.add(call_id)
        return content if call_id == content.call_id else replace(content, call_id=call_id)


def make_unused_id(name: str, used: set[str]) -> str:
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


TOOL_MESSAGE_ID = "tool-results"
"""The id that the streamed tool messages of one request share; .NET makes up a new one for each request."""

FALLBACK_MESSAGE_ID = "rebuilt-calls"
"""The id of a streamed message of rebuilt calls whose own is not known; made up likewise."""


class ChatModel(Protocol):
    """What the client calls; it answers None where a broken one would."""

    async def respond(self, messages: Sequence[Message]) -> Sequence[Message] | None:
        """Gives the whole answer to the messages."""

    def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message | None]:
        """Gives the answer as updates."""


@dataclass(slots=True)
class _ClientRequest:
    """
    One request, while it is served.

    Attributes:
        messages: What the model is going to be sent.
        tool_message_id, fallback_id: Ids for streamed messages; None for those that are not.
    """

    messages: list[Message]
    invoking: FunctionInvoker
    asking: RequestBuilder
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

    model: ChatModel
    behaviour: ReleaseBehaviour
    tools: Sequence[FunctionTool] = field(default_factory=tuple)
    conversation_id: str | None = None
    notation: JsonNotation = "current"

    async def respond(self, messages: Sequence[Message]) -> list[Message]:
        """
        Serves a request at once.

        Returns: Everything that the caller has not seen: rebuilt calls, results, what the model said.
        Errors:
            ClientFailure: As .NET fails.
        """
        request = self._request(messages)
        produced = [message async for message in self._settling(request)]
        for iteration in range(MAX_ITERATIONS + 1):
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
        for iteration in range(MAX_ITERATIONS + 1):
            if request.invoking.stopped:
                break
            streamed = StreamedReply(request.asking)
            async for update in streamed.updates(self.model.stream(list(request.messages))):
                yield update
            if streamed.asks or self._ends_with(streamed.live, iteration):
                break
            results = await self._round(request, coalesce_updates(streamed.seen), streamed.live)
            yield replace(results, message_id=request.tool_message_id)

    @property
    def toolbox(self) -> Toolbox:
        """All its tools."""
        return Toolbox(tuple(self.tools), self.behaviour)

    @property
    def _service_keeps(self) -> bool:
        return bool(self.conversation_id and self.conversation_id.strip())

    def _request(self, messages: Sequence[Message]) -> _ClientRequest:
        contents = [content for message in messages for content in message.contents]
        asked = {content.request_id for content in contents if isinstance(content, ToolApprovalRequest)}
        asking = RequestBuilder(behaviour=self.behaviour, toolbox=self.toolbox, notation=self.notation, asked=asked)
        return _ClientRequest(list(messages), FunctionInvoker(self.toolbox), asking)

    def _ends_with(self, calls: Sequence[FunctionCall], iteration: int) -> bool:
        return (
            not calls or iteration >= MAX_ITERATIONS or any(self.toolbox.is_only_declared(call.name) for call in calls)
        )

    async def _settling(self, request: _ClientRequest) -> AsyncIterator[Message]:
        """Deals with requests and responses among the messages, and gives what comes of it as it comes."""
        settlement = settle_approvals(request.messages, self.behaviour, service_keeps=self._service_keeps)
        if settlement is None:
            return
        request.messages = settlement.messages
        for message in self._put_calls(request, settlement):
            yield message
        if settlement.approved:
            results = await request.invoking.run([each.call for each in settlement.approved])
            self._mark_approved(settlement, results)
            yield self._put(request, settlement, replace(results, message_id=request.tool_message_id))

    def _put_calls(self, request: _ClientRequest, settlement: Settlement) -> list[Message]:
        calls = rebuild_calls([*settlement.rejected, *settlement.approved], request.fallback_id)
        if not self._service_keeps:
            for message in calls:
                self._put(request, settlement, message)
        if not settlement.rejected:
            return calls
        told = Message(
            role="tool",
            contents=tuple(build_rejection(each) for each in settlement.rejected),
            message_id=request.tool_message_id,
        )
        self._mark_rejected(settlement)
        return [*calls, self._put(request, settlement, told)]

    def _put(self, request: _ClientRequest, settlement: Settlement, message: Message) -> Message:
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

    async def _reply(self, request: _ClientRequest) -> list[Message]:
        answer = await self.model.respond(list(request.messages))
        if answer is None:
            raise InvalidOperation("The inner IChatClient returned a null ChatResponse.")
        return request.asking.reply(answer)

    async def _round(self, request: _ClientRequest, reply: Sequence[Message], calls: Sequence[FunctionCall]) -> Message:
        """Runs the calls, and makes what the model is sent next."""
        results = await request.invoking.run(calls)
        request.messages = [results] if self._service_keeps else [*request.messages, *reply, results]
        return results

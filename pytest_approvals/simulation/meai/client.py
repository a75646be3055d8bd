"""Function-invoking client: sits between a caller and a model, runs tools, and asks before it runs gated ones.

It keeps nothing between two requests: what was asked and decided is in the messages, and what is settled is in the
flags of calls that the caller may hold, too. If a reply calls a gated tool, all its live calls become requests. Calls
are executed one after the other.

Sources: dotnet/extensions#6745, #6903, #7299, #7314, #7468, #7549, #7617.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

from pytest_approvals.simulation.meai.approvals import (
    InvalidOperation,
    Settlement,
    ToolError,
    build_rejection,
    rebuild_calls,
    settle_approvals,
)
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
from pytest_approvals.simulation.meai.releases import ReleaseBehaviour


def coalesce_updates(updates: Iterable[Message]) -> list[Message]:
    """Return the messages that a caller builds from the updates.

    A new message begins if both author names or both message ids are present and differ, or the roles differ; adjacent
    texts are merged.
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


def _differ(first: str | None, second: str | None) -> bool:
    return bool(first) and bool(second) and first != second


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
"""Rounds with a failed tool that a request tolerates in a row."""

MAX_ITERATIONS = 40
"""Model calls of a request before it stops running tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool:
    """A tool.

    Attributes:
        run: Its function; None for a declared tool that the caller runs.
        gated: Its calls need approval.
        additional: It belongs to the client and not to the caller.
        terminates: The client stops after it.
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
        """Return the tool with that name; which of two depends on the release."""
        own_first = sorted(self.tools, key=lambda tool: tool.additional)
        if self.behaviour.later_tools_win:
            # Sorted the other way round and then reversed: the caller's tools still come first, the later of two
            # before the earlier.
            own_first = [*sorted(self.tools, key=lambda tool: not tool.additional)][::-1]
        return next((tool for tool in own_first if tool.name == name), None)

    def is_gated(self, name: str) -> bool:
        """Return whether the tool with that name is gated."""
        tool = self.find(name)
        return tool is not None and tool.gated

    def any_gated(self, name: str | None = None) -> bool:
        """Return whether any tool, or any with that name, is gated."""
        return any(tool.gated for tool in self.tools if name is None or tool.name == name)

    def is_only_declared(self, name: str) -> bool:
        """Return whether the caller has to run the tool with that name."""
        tool = self.find(name)
        return tool is not None and tool.run is None


@dataclass(slots=True)
class FunctionInvoker:
    """Invoker of the calls of one request, which counts failed rounds in a row.

    Attributes:
        stopped: A tool asked to stop.
    """

    toolbox: Toolbox
    errors_in_a_row: int = 0
    stopped: bool = False

    async def run(self, calls: Sequence[FunctionCall]) -> Message:
        """Run the calls until one asks to stop, flag those that were run, and return the message with their results.

        Raises:
            ToolError: Tools have failed too often in a row.
        """
        results: list[FunctionResult] = []
        failed: list[tuple[str, str, str]] = []
        for call in calls:
            results.append(await self._run_one(call, failed))
            if self.stopped:
                break
        self.errors_in_a_row = self.errors_in_a_row + 1 if failed else 0
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
            # The model is told of the errors of the first rounds; then the error ends the request.
            if self.errors_in_a_row >= MAX_CONSECUTIVE_ERRORS:
                raise ToolError(failed[-1:]) from error
            return _build_result(call, "Error: Function failed.")
        self.stopped = tool.terminates
        return _build_result(call, "Success: Function completed." if result is None else result)


def _build_result(call: FunctionCall, result: Any) -> FunctionResult:
    return FunctionResult(call_id=call.call_id, result=result)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBuilder:
    """Builder of the approval requests of one request to the client.

    Attributes:
        notation: Generation of discriminators for the built requests.
        asked: Ids of all requests: in the caller's messages, and built ones.
    """

    behaviour: ReleaseBehaviour
    toolbox: Toolbox
    notation: JsonNotation
    asked: set[str]

    def reply(self, messages: Sequence[Message]) -> list[Message]:
        """Return a complete reply of the model, with requests if one of its calls is gated."""
        ids = UniqueCallIds(self.behaviour)
        reply = [ids.message(message) for message in messages]
        if self.behaviour.has_flags:
            flag_provider_handled(reply)
        names = [call.name for message in reply for call in self.live(message)]
        return [self.message(message) for message in reply] if any(map(self.toolbox.is_gated, names)) else reply

    def live(self, message: Message) -> list[FunctionCall]:
        """Return the calls in a message that this client has to handle."""
        return live_calls(message) if self.behaviour.has_flags else function_calls(message)

    def message(self, message: Message) -> Message:
        """Return a message with a request in place of each live call."""
        # By identity, because two equal calls may differ in their flags.
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
    """A streamed reply of the model on its way to the caller.

    Attributes:
        seen: All updates, as the caller got them.
        live: Calls to handle.
        asks: A gated call has arrived; all calls become requests.
    """

    asking: RequestBuilder
    seen: list[Message] = field(default_factory=list)
    live: list[FunctionCall] = field(default_factory=list)
    asks: bool = False

    async def updates(self, stream: AsyncIterator[Message | None]) -> AsyncIterator[Message]:
        """Yield the updates; from the first call on, once it is known whether the calls become requests."""
        ids = UniqueCallIds(self.asking.behaviour)
        held: list[Message] = []
        async for update in stream:
            if update is None:
                raise InvalidOperation("The inner IChatClient streamed a null ChatResponseUpdate.")
            held.append(ids.message(update))
            self._inspect(held[-1])
            if self.asks or not self._holds_updates:
                for released in self._release(held):
                    yield released
                held = []
        if self.asking.behaviour.has_flags:
            flag_provider_handled([*self.seen, *held], self.live)
            self.live = [call for call in self.live if not call.informational_only]
        for released in self._release(held):
            yield released

    @property
    def _holds_updates(self) -> bool:
        waits = self.asking.behaviour.holds_every_call or self.asking.toolbox.any_gated()
        return bool(self.live) and waits

    def _inspect(self, update: Message) -> None:
        calls = self.asking.live(update)
        self.live += calls
        self.asks = self.asks or any(self.asking.toolbox.any_gated(call.name) for call in calls)

    def _release(self, held: Iterable[Message]) -> list[Message]:
        released = [self.asking.message(update) if self.asks else update for update in held]
        self.seen += released
        return released


@dataclass(slots=True)
class UniqueCallIds:
    """Call ids of one reply, made unique if the behaviour requires it."""

    behaviour: ReleaseBehaviour
    used: set[str] = field(default_factory=set)

    def message(self, message: Message) -> Message:
        """Return a message, or an update, without an id that the reply had before."""
        if not self.behaviour.by_position or not function_calls(message):
            return message
        return replace(message, contents=tuple(map(self._with_unique_id, message.contents)))

    def _with_unique_id(self, content: Content) -> Content:
        if not isinstance(content, FunctionCall):
            return content
        call_id = make_unused_id(content.call_id, self.used)
        self.used.add(call_id)
        return content if call_id == content.call_id else replace(content, call_id=call_id)


def make_unused_id(name: str, used: set[str]) -> str:
    """Return *name*, or if it was used, a similar unused name.

    >>> make_unused_id("ficc_c1", {"ficc_c1", "ficc_c1_2"})
    'ficc_c1_3'
    """
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name not in used else next(candidate for candidate in numbered if candidate not in used)


def flag_provider_handled(messages: Sequence[Message], calls: Iterable[FunctionCall] | None = None) -> None:
    """Flag calls whose result the provider has sent along.

    Args:
        messages: Messages with the results.
        calls: Calls to flag; default: those in the messages.
    """
    contents = [content for message in messages for content in message.contents]
    handled = {content.call_id for content in contents if isinstance(content, FunctionResult)}
    for call in calls if calls is not None else [call for message in messages for call in function_calls(message)]:
        if call.call_id in handled:
            call.settle()


TOOL_MESSAGE_ID = "tool-results"
"""Id of the streamed tool messages of a request; .NET generates a new one for each request."""

FALLBACK_MESSAGE_ID = "rebuilt-calls"
"""Id of a streamed message of rebuilt calls whose own id is unknown; generated in the same way."""


class ChatModel(Protocol):
    """Inner client, which returns None if it is broken."""

    async def respond(self, messages: Sequence[Message]) -> Sequence[Message] | None:
        """Return the complete answer to the messages."""

    def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message | None]:
        """Yield the answer as updates."""


@dataclass(slots=True)
class _ClientRequest:
    """One request, while it is served.

    Attributes:
        messages: Next input of the model.
        tool_message_id, fallback_id: Ids of streamed messages; None without streaming.
    """

    messages: list[Message]
    invoking: FunctionInvoker
    asking: RequestBuilder
    tool_message_id: str | None = None
    fallback_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionInvokingClient:
    """The client.

    Attributes:
        model: Inner client.
        behaviour: Releases that it behaves as.
        tools: Tools of the caller and its own.
        conversation_id: The service keeps the conversation under that id, and gets only new messages.
        notation: Generation of discriminators for the requests that it builds.
    """

    model: ChatModel
    behaviour: ReleaseBehaviour
    tools: Sequence[FunctionTool] = field(default_factory=tuple)
    conversation_id: str | None = None
    notation: JsonNotation = "current"

    async def respond(self, messages: Sequence[Message]) -> list[Message]:
        """Serve a request at once.

        Returns:
            Everything that the caller has not seen: rebuilt calls, results, replies of the model.

        Raises:
            ClientFailure: As in .NET.
        """
        request = self._request(messages)
        produced = [message async for message in self._settle(request)]
        # One reply more than rounds: the last one ends the request, even with calls.
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
        """Serve a request in updates.

        Raises:
            ClientFailure: As in .NET; earlier updates stay valid.
        """
        request = replace(self._request(messages), tool_message_id=TOOL_MESSAGE_ID, fallback_id=FALLBACK_MESSAGE_ID)
        async for message in self._settle(request):
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
        """All tools."""
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

    async def _settle(self, request: _ClientRequest) -> AsyncIterator[Message]:
        """Settle requests and responses in the messages, and yield the resulting messages."""
        settlement = settle_approvals(request.messages, self.behaviour, service_keeps=self._service_keeps)
        if settlement is None:
            return
        request.messages = settlement.messages
        for message in self._put_calls(request, settlement):
            yield message
        if settlement.approved:
            results = await request.invoking.run([decision.call for decision in settlement.approved])
            self._mark_approved(settlement, results)
            yield self._put(request, settlement, replace(results, message_id=request.tool_message_id))

    def _put_calls(self, request: _ClientRequest, settlement: Settlement) -> list[Message]:
        calls = rebuild_calls([*settlement.rejected, *settlement.approved], request.fallback_id)
        # A service that keeps the conversation has these calls; only the caller has not seen them.
        if not self._service_keeps:
            for message in calls:
                self._put(request, settlement, message)
        if not settlement.rejected:
            return calls
        results = Message(
            role="tool",
            contents=tuple(build_rejection(decision) for decision in settlement.rejected),
            message_id=request.tool_message_id,
        )
        self._mark_rejected(settlement)
        return [*calls, self._put(request, settlement, results)]

    def _put(self, request: _ClientRequest, settlement: Settlement, message: Message) -> Message:
        request.messages.insert(settlement.at, message)
        settlement.at += 1
        return message

    def _mark_rejected(self, settlement: Settlement) -> None:
        for decision in settlement.rejected:
            if self.behaviour.has_flags and decision.response.function is not None:
                decision.response.function.settle()
            if self.behaviour.marks_requests:
                decision.mark_request()

    def _mark_approved(self, settlement: Settlement, results: Message) -> None:
        """Flag the other copies of executed calls; running has flagged the calls themselves."""
        # A tool that stops the client leaves the approvals behind it without results.
        for decision, _ in zip(settlement.approved, results.contents, strict=False):
            if self.behaviour.has_flags and decision.response.function is not None:
                decision.response.function.settle()
        for decision in settlement.approved:
            if self.behaviour.marks_requests:
                decision.mark_request()

    async def _reply(self, request: _ClientRequest) -> list[Message]:
        answer = await self.model.respond(list(request.messages))
        if answer is None:
            raise InvalidOperation("The inner IChatClient returned a null ChatResponse.")
        return request.asking.reply(answer)

    async def _round(self, request: _ClientRequest, reply: Sequence[Message], calls: Sequence[FunctionCall]) -> Message:
        """Run the calls and extend the input of the model by their results."""
        results = await request.invoking.run(calls)
        request.messages = [results] if self._service_keeps else [*request.messages, *reply, results]
        return results

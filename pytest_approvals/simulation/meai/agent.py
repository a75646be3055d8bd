"""The simulated client as an agent under test: the caller keeps the history and sends all of it with each turn.

A store writes messages as JSON: with history `whole` all of them each time, with `append` each message once when it is
new, so that a flag that is set later never reaches the store. A failed turn adds nothing to the history.

The caller sees only requests that need confirmation; a request that merely waits for another one, as releases from 10.8
on indicate, is approved together with it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES
from pytest_approvals.agent_side.contract.exceptions import ModelDown, Unsupported
from pytest_approvals.agent_side.contract.types import (
    MAIN,
    Decision,
    Finished,
    Item,
    ModelCall,
    Outcome,
    Paused,
    Reply,
    Request,
    ToolSpec,
)
from pytest_approvals.simulation.meai.binding import STATE_KEY, ApprovalBinding, BoundClient
from pytest_approvals.simulation.meai.client import FunctionInvokingClient, FunctionTool, coalesce_updates
from pytest_approvals.simulation.meai.contents import (
    Content,
    FunctionCall,
    FunctionResult,
    Message,
    Text,
    ToolApprovalRequest,
    ToolApprovalResponse,
)
from pytest_approvals.simulation.meai.json_messages import MessageReader, read_json, write_json, write_messages
from pytest_approvals.simulation.meai.releases import BEHAVIOURS, ReleaseBehaviour
from pytest_approvals.simulation.reference.arguments import fit_arguments


@dataclass(frozen=True, slots=True)
class WorldModel:
    """The scripted model, as an inner client.

    Attributes:
        tools: Names of the offered tools.
        message_id: Generates the id of each answer.
    """

    world: World
    tools: Sequence[str]
    message_id: Callable[[], str]

    async def respond(self, messages: Sequence[Message]) -> list[Message]:
        """Return the complete answer."""
        reply = await self.world.model(to_items(messages), tools=self.tools)
        contents = (*_text_contents(reply.say), *map(_to_function_call, reply.calls))
        return [Message(role="assistant", contents=contents, message_id=self.message_id())]

    async def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message]:
        """Yield text as it arrives and calls at the end, as the provider clients do."""
        reply = await self.world.model(to_items(messages), stream=True, tools=self.tools)
        message_id = self.message_id()
        for chunk in reply.chunks:
            if chunk.text:
                yield Message(role="assistant", contents=(Text(text=chunk.text),), message_id=message_id)
        if reply.breaks:
            raise ModelDown(0, reply.how)
        if reply.calls or not _has_text(reply):
            yield Message(role="assistant", contents=tuple(map(_to_function_call, reply.calls)), message_id=message_id)


def to_items(messages: Sequence[Message]) -> list[Item]:
    """Return the input of a provider, without approvals of functions, which no provider knows."""
    return [
        item
        for place, message in enumerate(messages)
        for content in message.contents
        for item in _content_items(content, message.role, place)
    ]


def _content_items(content: Content, role: str, place: int) -> list[Item]:
    match content:
        case Text(text=text) if text:
            return [Item(kind="user" if role == "user" else "say", text=text, message=place)]
        case FunctionCall():
            arguments = dict(content.arguments or {})
            return [Item(kind="call", id=content.call_id, tool=content.name, arguments=arguments, message=place)]
        case FunctionResult():
            return [Item(kind="result", id=content.call_id, text=format_function_result(content.result), message=place)]
        case _:
            return []


def format_function_result(result: Any) -> str:
    """Return a result as text for the model."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _text_contents(text: str | None) -> tuple[Content, ...]:
    return (Text(text=text),) if text else ()


def _has_text(reply: Reply) -> bool:
    return any(chunk.text for chunk in reply.chunks)


def _to_function_call(call: ModelCall) -> FunctionCall:
    arguments = None if isinstance(call.arguments, str) else dict(call.arguments)
    return FunctionCall(call_id=call.id or "", name=call.tool, arguments=arguments)


def to_request(request: ToolApprovalRequest) -> Request:
    """Return a request as the caller sees it."""
    call = request.function
    assert call is not None
    return Request(
        id=request.request_id,
        call_id=call.call_id,
        tool=call.name,
        arguments=dict(call.arguments or {}),
        handle=request,
    )


def to_response(decision: Decision) -> ToolApprovalResponse:
    """Return a decision as the framework accepts it.

    A held request makes its own response, which shares its call; for a rebuilt or tampered request, the response has a
    new call with the contents of that request.
    """
    request = decision.request
    assert request is not None
    approved = decision.verdict == "approve"
    held = request.handle
    if isinstance(held, ToolApprovalRequest):
        return held.response(approved, decision.reason)
    arguments = dict(request.arguments) if not isinstance(request.arguments, str) else None
    call = FunctionCall(call_id=request.call_id or "", name=request.tool, arguments=arguments or None)
    return ToolApprovalResponse(request_id=request.id, approved=approved, tool_call=call, reason=decision.reason)


_NO_REASONING = "TextReasoningContent is not simulated"

MISSING: Mapping[str, str] = {
    "reasoning": _NO_REASONING,
    "reasoning_between_calls": _NO_REASONING,
    "redacted_reasoning": _NO_REASONING,
    "partial_answers": "the client refuses messages with a request that has no response",
    "go_on_without_answer": "the client refuses messages with a request that has no response",
    "simultaneous": "the client has no session; what two requests at a time do to one list is up to the caller",
    "edit": "a response says approved or not, and nothing else",
    "edit_tool": "a response says approved or not, and nothing else",
    "always": "standing decisions are made in a layer of the agent framework that is not simulated",
    "never": "standing decisions are made in a layer of the agent framework that is not simulated",
    "stage": "the client has no state to put a decision in",
    "cancel": "the client has no way to give up a request",
    "hang_up": "a request that is cancelled gives no messages, and the caller's list is all the state there is",
    "malformed_verdict": "ToolApprovalResponseContent.Approved is a bool",
    "malformed_address": "ToolApprovalResponseContent is made of a request id and a call",
    "missing_ids": "FunctionCallContent refuses a call without an id",
    "broken_arguments": "FunctionCallContent holds parsed arguments only",
    "concurrent_tools": "AllowConcurrentInvocation is off by default, and not simulated",
    "asks_again": "a function has no way to ask",
    "nested": "an agent that is a function keeps its requests to itself",
    "nested_parallel": "an agent that is a function keeps its requests to itself",
    "nested_gate": "an agent that is a function keeps its requests to itself",
    "hand_offs": "the client knows one model",
    "hand_off_gate": "the client knows one model",
    "structured_answer": "response formats are not simulated",
    "conditional_approval": "ApprovalRequiredAIFunction gates every call",
    "slow_conditions": "ApprovalRequiredAIFunction gates every call",
    "raising_conditions": "ApprovalRequiredAIFunction gates every call",
    "mcp": "tools of MCP servers are not simulated",
    "hosted_mcp": "a chat completions provider runs no tools",
    "limit_model_replies": "MaximumIterationsPerRequest is not simulated but for its default",
    "limit_tool_calls": "the client counts no calls",
    "trim": "chat reducers are not simulated",
}
"""Capabilities that the client has no API for, or that the simulation leaves out."""


class MeaiAgent(Agent):
    """One conversation with the client.

    Attributes:
        behaviour: Releases that it behaves as.
        history: All messages as objects: which ones share a call object is part of the state.
    """

    behaviour: ClassVar[ReleaseBehaviour] = BEHAVIOURS["10.9"]
    release = behaviour.name
    capabilities = frozenset(CAPABILITIES) - frozenset(MISSING)
    missing = MISSING
    wire_rules = "chat"
    issues = "https://github.com/dotnet/extensions/issues"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.history: list[Message] = []
        self.written = 0
        self.answers = 0

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """Run a turn."""
        sent = [*self.history, *self._new_messages(text, decisions)]
        produced = await (self._streamed(sent) if stream else self._respond(sent))
        self.history = [*sent, *produced]
        requests = [to_request(request) for request in _open_requests(produced) if request.requires_confirmation]
        return (
            Paused(requests=tuple(requests), text=_final_text(produced))
            if requests
            else Finished(output=_final_text(produced))
        )

    async def pending(self) -> Sequence[Request]:
        """Return the open requests that need confirmation."""
        return [to_request(request) for request in self._unanswered() if request.requires_confirmation]

    async def dump(self) -> str:
        """Return the state as text."""
        first = self.written if self.blueprint.history == "append" else 0
        self.written = len(self.history)
        return write_json({"messages": write_messages(self.history[first:]), **self._session()})

    async def load(self, parts: Sequence[str]) -> None:
        """Restore the state from the saved *parts*."""
        documents = [read_json(part) for part in (parts if self.blueprint.history == "append" else parts[-1:])]
        for document in documents:
            self.history += MessageReader().messages(document["messages"])
        self.written = len(self.history)
        self._take_session(documents[-1])

    async def copy_from(self, other: Agent) -> None:
        """Take over a copy of the state of *other*."""
        assert isinstance(other, MeaiAgent)
        document = read_json(write_json({"messages": write_messages(other.history), **other._session()}))
        self.history = MessageReader().messages(document["messages"])
        self._take_session(document)

    async def another_session(self, world: World) -> Agent:
        """Build an agent for another session."""
        return type(self)(world, self.blueprint)

    # --- what a flavour adds ------------------------------------------------------------------------------------------

    def client(self) -> FunctionInvokingClient | BoundClient:
        """Build the client that serves a turn."""
        names = [spec.name for spec in self.blueprint.tools if spec.agent == MAIN]
        return FunctionInvokingClient(
            model=WorldModel(self.world, names, self._next_id),
            behaviour=self.behaviour,
            tools=[self._tool(spec) for spec in self.blueprint.tools if spec.agent == MAIN],
        )

    def _session(self) -> dict[str, Any]:
        return {"answers": self.answers}

    def _take_session(self, document: Mapping[str, Any]) -> None:
        self.answers = document["answers"]

    # --- one turn -----------------------------------------------------------------------------------------------------

    def _new_messages(self, text: str | None, decisions: Sequence[Decision]) -> list[Message]:
        for decision in decisions:
            if decision.verdict not in ("approve", "reject") or decision.request is None:
                raise Unsupported("malformed_verdict" if decision.verdict == "raw" else decision.verdict)
        responses = [to_response(decision) for decision in decisions]
        if responses:
            decided = {response.request_id for response in responses}
            waiting = [request for request in self._unanswered() if not request.requires_confirmation]
            responses += [request.response(approved=True) for request in waiting if request.request_id not in decided]
        messages = [Message(role="user", contents=tuple(responses))] if responses else []
        return [*messages, Message(role="user", contents=(Text(text=text),))] if text is not None else messages

    async def _respond(self, sent: Sequence[Message]) -> list[Message]:
        return await self.client().respond(sent)

    async def _streamed(self, sent: Sequence[Message]) -> list[Message]:
        updates: list[Message] = []
        shown_before = {id(call) for call in _decided_calls(sent)}
        async for update in self.client().stream(sent):
            updates.append(update)
            self._show(update, shown_before)
        self.world.shown("end")
        return coalesce_updates(updates)

    def _show(self, update: Message, shown_before: set[int]) -> None:
        """Report what an update shows; the calls of decided requests are repeated, and not new."""
        for content in update.contents:
            match content:
                case Text(text=text):
                    self.world.shown("text", text=text)
                case FunctionCall() if id(content) not in shown_before:
                    self.world.shown("call", id=content.call_id, tool=content.name)
                case ToolApprovalRequest(function=FunctionCall() as call):
                    self.world.shown("call", id=call.call_id, tool=call.name)
                    self.world.shown("request", id=content.request_id)
                case FunctionResult():
                    self.world.shown("result", id=content.call_id, text=format_function_result(content.result))

    def _tool(self, spec: ToolSpec) -> FunctionTool:
        async def run(call: FunctionCall) -> Any:
            return await self.world.run(spec.name, fit_arguments(spec, call.arguments or {}), call.call_id)

        return FunctionTool(name=spec.name, run=run, gated=spec.approval == "always")

    def _next_id(self) -> str:
        self.answers += 1
        return f"answer-{self.answers}"

    def _unanswered(self) -> list[ToolApprovalRequest]:
        messages = self._since_last_request()
        contents = [content for message in messages for content in message.contents]
        answered = {content.request_id for content in contents if isinstance(content, ToolApprovalResponse)}
        return [request for request in _open_requests(messages) if request.request_id not in answered]

    def _since_last_request(self) -> list[Message]:
        """Return the messages from the last one with requests on; earlier requests are settled or forgotten."""
        asked = [
            place
            for place, message in enumerate(self.history)
            if any(isinstance(content, ToolApprovalRequest) for content in message.contents)
        ]
        return self.history[asked[-1] :] if asked else []


class BoundMeaiAgent(MeaiAgent):
    """The client behind the binding layer of the agent framework.

    Attributes:
        binding: Requests that the session has shown.
    """

    issues = "https://github.com/microsoft/agent-framework/issues"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.binding = ApprovalBinding()

    def client(self) -> BoundClient:
        """Build the client behind the binding layer."""
        inner = super().client()
        assert isinstance(inner, FunctionInvokingClient)
        return BoundClient(inner, self.binding)

    def _session(self) -> dict[str, Any]:
        return {**super()._session(), STATE_KEY: self.binding.to_json()}

    def _take_session(self, document: Mapping[str, Any]) -> None:
        super()._take_session(document)
        self.binding = ApprovalBinding.from_json(document[STATE_KEY])


def _class_name(adapter: type[MeaiAgent], name: str) -> str:
    return f"{adapter.__name__}_{name.replace('.', '_')}"


def _build_release_class(adapter: type[MeaiAgent], behaviour: ReleaseBehaviour) -> type[MeaiAgent]:
    name = _class_name(adapter, behaviour.name)
    attributes = {"behaviour": behaviour, "release": behaviour.name, "releases": ()}
    # The path by which an agent process imports the class.
    location = {"__module__": adapter.__module__, "__qualname__": f"RELEASED.{name}"}
    return type(name, (adapter,), {**attributes, **location, "__doc__": f"Behaves as {behaviour.name}."})


FLAVOURS: dict[str, type[Agent]] = {"": MeaiAgent, "binding": BoundMeaiAgent}
"""The client as it is, and behind the binding layer of the agent framework."""

RELEASED = SimpleNamespace()
"""Adapters for all releases, by class name."""

for _adapter in (MeaiAgent, BoundMeaiAgent):
    _adapter.releases = tuple(_build_release_class(_adapter, behaviour) for behaviour in BEHAVIOURS.values())
    vars(RELEASED).update({release.__name__: release for release in _adapter.releases})


def _open_requests(messages: Sequence[Message]) -> list[ToolApprovalRequest]:
    return [
        content
        for message in messages
        for content in message.contents
        if isinstance(content, ToolApprovalRequest)
        and content.function is not None
        and not content.function.informational_only
    ]


def _decided_calls(messages: Sequence[Message]) -> list[FunctionCall]:
    return [
        content.function
        for message in messages
        for content in message.contents
        if isinstance(content, ToolApprovalRequest | ToolApprovalResponse) and content.function is not None
    ]


def _final_text(produced: Sequence[Message]) -> str | None:
    if not produced:
        return None
    texts = [content.text for content in produced[-1].contents if isinstance(content, Text)]
    return "".join(texts) or None

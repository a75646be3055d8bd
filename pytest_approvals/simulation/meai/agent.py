"""
The simulated client as an agent under test: the caller keeps the history, and sends all of it with each turn.

A store writes a message as JSON: with history `whole` all of them each time, with `append` each message once, when it
is new, so that a flag that is set later never reaches the store. A turn that fails adds nothing to the history.

A person is asked what needs an answer; a request that only waits for another one, as releases from 10.8 on say, is
approved with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from pytest_approvals.agent_side.capabilities import CAPABILITIES
from pytest_approvals.agent_side.contract import Agent, Blueprint, World
from pytest_approvals.agent_side.failures import Unsupported
from pytest_approvals.agent_side.neutral import MAIN, Decision, Finished, Outcome, Paused, Request, ToolSpec
from pytest_approvals.simulation.reference.arguments import fitted

from .behaviours import BEHAVIOURS, Behaviour
from .binding import STATE_KEY, Binding, BoundClient
from .client import FunctionInvokingClient
from .contents import FunctionCall, FunctionResult, Message, Text, ToolApprovalRequest, ToolApprovalResponse
from .invoking import Tool
from .json_text import read_json, write_json
from .reading import Reader
from .updates import coalesced
from .wire import WorldModel, response_to, shown_request, told
from .writing import written_messages

MISSING: Mapping[str, str] = {
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
"""What the client has no API for, or what the simulation leaves out."""


class MeaiAgent(Agent):
    """
    One conversation with the client.

    Attributes:
        behaviour: The releases that it behaves as.
        history: All messages, as objects: what shares a call object with what is part of the state.
    """

    behaviour: ClassVar[Behaviour] = BEHAVIOURS["10.9"]
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
        sent = [*self.history, *self._new_messages(text, decisions)]
        produced = await (self._streamed(sent) if stream else self._respond(sent))
        self.history = [*sent, *produced]
        requests = [shown_request(request) for request in _open(produced) if request.requires_confirmation]
        return Paused(requests=tuple(requests), text=_said(produced)) if requests else Finished(output=_said(produced))

    async def pending(self) -> Sequence[Request]:
        return [shown_request(request) for request in self._unanswered() if request.requires_confirmation]

    async def dump(self) -> str:
        first = self.written if self.blueprint.history == "append" else 0
        self.written = len(self.history)
        return write_json({"messages": written_messages(self.history[first:]), **self._session()})

    async def load(self, parts: Sequence[str]) -> None:
        documents = [read_json(part) for part in (parts if self.blueprint.history == "append" else parts[-1:])]
        for document in documents:
            self.history += Reader().messages(document["messages"])
        self.written = len(self.history)
        self._take_session(documents[-1])

    async def copy_from(self, other: Agent) -> None:
        assert isinstance(other, MeaiAgent)
        document = read_json(write_json({"messages": written_messages(other.history), **other._session()}))
        self.history = Reader().messages(document["messages"])
        self._take_session(document)

    async def another_session(self, world: World) -> Agent:
        return type(self)(world, self.blueprint)

    # --- what a flavour adds ------------------------------------------------------------------------------------------

    def client(self) -> FunctionInvokingClient | BoundClient:
        """Gives the client that serves a turn."""
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
        responses = [response_to(decision) for decision in decisions]
        if responses:
            decided = {response.request_id for response in responses}
            along = [each for each in self._unanswered() if not each.requires_confirmation]
            responses += [each.response(approved=True) for each in along if each.request_id not in decided]
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
        return coalesced(updates)

    def _show(self, update: Message, shown_before: set[int]) -> None:
        """Tells what an update shows; the calls that a request was about come once more, and are not news."""
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
                    self.world.shown("result", id=content.call_id, text=told(content.result))

    def _tool(self, spec: ToolSpec) -> Tool:
        async def run(call: FunctionCall) -> Any:
            return await self.world.run(spec.name, fitted(spec, call.arguments or {}), call.call_id)

        return Tool(name=spec.name, run=run, gated=spec.approval == "always")

    def _next_id(self) -> str:
        self.answers += 1
        return f"answer-{self.answers}"

    def _unanswered(self) -> list[ToolApprovalRequest]:
        messages = self._since_last_request()
        contents = [content for message in messages for content in message.contents]
        answered = {content.request_id for content in contents if isinstance(content, ToolApprovalResponse)}
        return [request for request in _open(messages) if request.request_id not in answered]

    def _since_last_request(self) -> list[Message]:
        """Gives the messages from the last one with requests on; what was asked before is settled or forgotten."""
        asked = [
            place
            for place, message in enumerate(self.history)
            if any(isinstance(content, ToolApprovalRequest) for content in message.contents)
        ]
        return self.history[asked[-1] :] if asked else []


class BoundMeaiAgent(MeaiAgent):
    """
    The client behind the binding layer of the agent framework.

    Attributes:
        binding: What the session has shown.
    """

    issues = "https://github.com/microsoft/agent-framework/issues"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.binding = Binding()

    def client(self) -> BoundClient:
        inner = super().client()
        assert isinstance(inner, FunctionInvokingClient)
        return BoundClient(inner, self.binding)

    def _session(self) -> dict[str, Any]:
        return {**super()._session(), STATE_KEY: self.binding.to_json()}

    def _take_session(self, document: Mapping[str, Any]) -> None:
        super()._take_session(document)
        self.binding = Binding.from_json(document[STATE_KEY])


def as_released(adapter: type[MeaiAgent], name: str) -> type[MeaiAgent]:
    """
    Gives an adapter that behaves as that range of releases; another process finds it among `RELEASED`.

    >>> as_released(MeaiAgent, "10.4").behaviour.marks_requests
    False
    """
    return getattr(RELEASED, _class_name(adapter, name))  # type: ignore[no-any-return]


def _class_name(adapter: type[MeaiAgent], name: str) -> str:
    return f"{adapter.__name__}_{name.replace('.', '_')}"


def _playing(adapter: type[MeaiAgent], behaviour: Behaviour) -> type[MeaiAgent]:
    name = _class_name(adapter, behaviour.name)
    said = {"behaviour": behaviour, "release": behaviour.name, "releases": ()}
    where = {"__module__": adapter.__module__, "__qualname__": f"RELEASED.{name}"}
    return type(name, (adapter,), {**said, **where, "__doc__": f"As {behaviour.name} is."})


FLAVOURS: dict[str, type[Agent]] = {"": MeaiAgent, "binding": BoundMeaiAgent}
"""The client as it is, and behind the binding layer of the agent framework."""

RELEASED = SimpleNamespace()
"""The adapters for all releases, by the names of their classes."""

for _adapter in (MeaiAgent, BoundMeaiAgent):
    _adapter.releases = tuple(_playing(_adapter, behaviour) for behaviour in BEHAVIOURS.values())
    vars(RELEASED).update({each.__name__: each for each in _adapter.releases})


def _open(messages: Sequence[Message]) -> list[ToolApprovalRequest]:
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


def _said(produced: Sequence[Message]) -> str | None:
    if not produced:
        return None
    texts = [content.text for content in produced[-1].contents if isinstance(content, Text)]
    return "".join(texts) or None

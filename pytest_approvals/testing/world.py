"""Fake world for tests of adapters: plays the replies that a test wrote, runs tools, and records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_approvals.agent_side.contract import (
    MAIN,
    ElicitationAnswer,
    Item,
    ModelAddress,
    ModelCall,
    ModelRefused,
    Parameter,
    Reply,
    ScriptExhausted,
    Thought,
    ToolSpec,
)
from pytest_approvals.agent_side.contract.types import needs_approval
from pytest_approvals.errors import AdapterError, UnknownName
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.runner.stream_chunks import split_reply


class FakeWorld:
    """The `World` of one session in a test of an adapter.

    It is strict: a value of an adapter that does not have the type of the contract is an `AdapterError`.

    Args:
        replies: The replies of the model, in order; an exception among them is raised.
        tools: The tools; their conditions are answered from here.
        results: What each tool returns, or an exception that it raises; all others return `ok`.

    Attributes:
        inputs: What the model was sent, each time.
        ran: Every execution of a tool: its name and arguments.
        gates: Every call that the framework's policy asked about: its tool and arguments.
        seen: Everything that a stream showed.
        elicitations: What the caller answers to questions of MCP servers, in order; from then on, `cancel`.
        elicited: What the caller was asked by MCP servers: message, form and address.
        place: The address of its model, for an adapter that reaches it over a protocol.
    """

    def __init__(
        self, replies: Sequence[Reply | Exception], tools: Sequence[ToolSpec], results: Mapping[str, Any] | None = None
    ) -> None:
        self.replies = list(replies)
        self.tools = {tool.name: tool for tool in tools}
        self.results = dict(results or {})
        self.inputs: list[Sequence[Item]] = []
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.gates: list[tuple[str, Any]] = []
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.elicitations: list[ElicitationAnswer] = []
        self.elicited: list[tuple[str, Mapping[str, Any] | None, str | None]] = []
        self.place: ModelAddress | None = None

    async def model(
        self, items: Sequence[Item], *, agent: str = MAIN, stream: bool = False, tools: Sequence[str] = ()
    ) -> Reply:
        """Return the next reply; see `World.model`."""
        _require_type(items, Item, "World.model takes Items", agent)
        self.inputs.append(tuple(items))
        if not self.replies:
            raise ScriptExhausted(agent)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def address(self) -> ModelAddress | None:
        """See `World.address`."""
        return self.place

    async def asked(self, items: Sequence[Item], asked: ParsedRequest) -> Reply:
        """Answer a request to its address; see `endpoint.Model`."""
        if asked.body_errors:
            raise ModelRefused("; ".join(error.text for error in asked.body_errors))
        return await self.model(items, agent=asked.model, stream=asked.stream, tools=asked.tools)

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = MAIN,
        real: Callable[[], Awaitable[Any]] | None = None,
        elicited: ElicitationAnswer | None = None,
    ) -> Any:
        """Run a tool; see `World.run`."""
        _require_type([tool], str, "World.run takes the tool's name first", agent)
        _require_type([arguments], Mapping, "World.run takes the arguments as a mapping", agent)
        _require_type([call_id], str | None, "World.run takes a call id, or None", agent)
        if tool not in self.tools:
            raise AdapterError(agent, str(UnknownName("tool", tool, self.tools)))
        self.ran.append((tool, dict(arguments)))
        result = self.results.get(tool, "ok")
        if isinstance(result, Exception):
            raise result
        return result

    async def elicit(
        self, message: str, *, form: Mapping[str, Any] | None = None, url: str | None = None
    ) -> ElicitationAnswer:
        """Return the next of `elicitations`, and record the question; see `World.elicit`."""
        self.elicited.append((message, form, url))
        return self.elicitations.pop(0) if self.elicitations else ElicitationAnswer(action="cancel")

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """Return whether the tool's condition requires approval; see `World.gate`."""
        asked_before = self.gates.count((tool, arguments))
        self.gates.append((tool, arguments))
        return needs_approval(self.tools[tool].approval, arguments, asked_before)

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """Return the same as `gate`."""
        return self.gate(tool, arguments, call_id, agent=agent)

    def shown(self, what: str, **facts: Any) -> None:
        """Record what a stream showed; see `World.shown`."""
        self.seen.append((what, facts))

    def told(self) -> list[str | None]:
        """Return the results in the latest input of the model."""
        return [item.text for item in self.inputs[-1] if item.kind == "result"]


def _require_type(values: Iterable[object], kind: Any, rule: str, agent: str) -> None:
    for value in values:
        if not isinstance(value, kind):
            raise AdapterError(agent, f"{rule}, not {value!r}")


def reply(say: str | None = None, *calls: ModelCall, thoughts: Sequence[Thought] = ()) -> Reply:
    """Return a reply of the model, with the chunks that it is streamed in."""
    chunks = split_reply(say, calls, "tokens", thoughts)
    return Reply(say=say, calls=calls, thoughts=tuple(thoughts), chunks=chunks)


def thought(text: str | None, thought_id: str = "rs_1", *, before: int | None = None) -> Thought:
    """Return a piece of the model's reasoning; None for one that is shown encrypted only."""
    return Thought(id=thought_id, text=text, signature=f"signed {thought_id}", before=before)


def call(tool: str, call_id: str | None = "c1", **arguments: Any) -> ModelCall:
    """Return a call of the model."""
    return ModelCall(id=call_id, tool=tool, arguments=arguments)


def tool(name: str, approval: Any = "never", **types: str) -> ToolSpec:
    """Return a tool with required parameters of these types."""
    parameters = {parameter: Parameter(type=kind) for parameter, kind in types.items()}
    return ToolSpec(name=name, description=f"The tool {name}.", parameters=parameters, approval=approval)

"""A tiny agent that keeps the contract, for tests of the host; imported by the tests and by agent processes."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract import (
    Blueprint,
    Condition,
    Decision,
    Elicits,
    Finished,
    Item,
    ModelCall,
    Outcome,
    Paused,
    Request,
    ToolRaised,
    ToolSpec,
    Unsupported,
)
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES

ABLE = frozenset({"streaming", "serialize.json", "serialize.copy", "sessions", "stage", "cancel", "trim"})


TASK: ContextVar[str] = ContextVar("TASK")
WORLD: ContextVar[World] = ContextVar("WORLD")
CANCELLED: list[str] = []


class Pending:
    """The toy's own object for a request; it cannot leave its process."""

    def __init__(self, call: dict[str, Any]) -> None:
        self.call = call
        self.lock = asyncio.Lock()


class FrameworkError(Exception):
    """What the toy raises by itself."""


class Toy(Agent):
    """Keeps its whole conversation in one list of plain dictionaries."""

    framework = "pytest"
    packages = ("pytest",)
    issues = "the test suite"
    wire_rules = "chat"
    capabilities = ABLE
    missing = {name: "the toy is small" for name in CAPABILITIES if name not in ABLE}  # noqa: RUF012

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.messages: list[dict[str, Any]] = []
        self.open: list[dict[str, Any]] = []
        self.staged: list[Decision] = []
        self.closed = False

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is not None:
            self.messages.append({"kind": "user", "text": text})
        await self._settle([*self.staged, *decisions])
        self.staged = []
        while not self.open:
            calls, say = await self._ask(stream)
            if not calls:
                return Finished(output=say)
            self.open = [call for call in calls if self._gated(call)]
            await self._run([call for call in calls if call not in self.open])
        requests = tuple(self._request(call) for call in self.open)
        for request in requests if stream else ():
            self.world.shown("request", id=request.id)
        return Paused(requests=requests)

    async def pending(self) -> Sequence[Request]:
        return [self._request(call) for call in self.open]

    async def stage(self, decisions: Sequence[Decision]) -> None:
        self.staged += decisions

    async def cancel(self) -> None:
        self.open = []

    async def trim(self, keep: int) -> None:
        self.messages = self.messages[-keep:]

    async def dump(self) -> str:
        return json.dumps({"messages": self.messages, "open": self.open})

    async def load(self, parts: Sequence[str]) -> None:
        state = json.loads(parts[-1])
        self.messages, self.open = state["messages"], state["open"]

    async def copy_from(self, other: Agent) -> None:
        assert isinstance(other, Toy)
        self.messages, self.open = copy.deepcopy((other.messages, other.open))

    async def another_session(self, world: World) -> Toy:
        return type(self)(world, self.blueprint)

    async def close(self) -> None:
        if self.closed:
            raise FrameworkError("closed twice")
        self.closed = True

    # --- inside ---

    async def _ask(self, stream: bool) -> tuple[list[dict[str, Any]], str | None]:
        items = [Item(message=number, **message) for number, message in enumerate(self.messages)]
        reply = await self.world.model(items, stream=stream, tools=[tool.name for tool in self.blueprint.tools])
        calls = [_written(call) for call in reply.calls]
        if reply.say is not None:
            self.messages.append({"kind": "say", "text": reply.say})
        self.messages += [{"kind": "call", **call} for call in calls]
        return calls, reply.say

    def _gated(self, call: dict[str, Any]) -> bool:
        approval = self._tool(call["tool"]).approval
        if isinstance(approval, Condition):
            return self.world.gate(call["tool"], call["arguments"], call["id"])
        return approval == "always"

    def _tool(self, name: str) -> ToolSpec:
        return next(tool for tool in self.blueprint.tools if tool.name == name)

    async def _settle(self, decisions: Sequence[Decision]) -> None:
        approved = []
        for decision in decisions:
            call = self._call_of(decision)
            self.open.remove(call)
            if decision.verdict == "approve":
                approved.append(call)
            else:
                self._tell(call, f"rejected: {decision.reason}")
        await self._run(approved)

    def _call_of(self, decision: Decision) -> dict[str, Any]:
        request = decision.request
        if request is None:
            raise Unsupported("malformed_address", "the toy takes requests only")
        if request.handle is not None:
            assert isinstance(request.handle, Pending)
            wanted = request.handle.call
        else:
            wanted = next((call for call in self.open if call["id"] == request.id), None)
        if wanted not in self.open:
            raise FrameworkError(f"nothing is pending as {request.id}")
        return wanted

    async def _run(self, calls: list[dict[str, Any]]) -> None:
        ran = (self._run_one(call) for call in calls)
        for call, result in zip(calls, await asyncio.gather(*ran, return_exceptions=True), strict=True):
            if isinstance(result, BaseException) and not isinstance(result, ToolRaised):
                raise result
            self._tell(call, f"failed: {result}" if isinstance(result, ToolRaised) else str(result))

    async def _run_one(self, call: dict[str, Any]) -> Any:
        try:
            return await self.world.run(call["tool"], call["arguments"], call["id"])
        except Elicits as asked:
            answer = await self.world.elicit(asked.message, form=asked.form, url=asked.url)
            elicited = replace(answer, execution=asked.number)
        return await self.world.run(call["tool"], call["arguments"], call["id"], elicited=elicited)

    def _tell(self, call: dict[str, Any], text: str) -> None:
        self.messages.append({"kind": "result", "id": call["id"], "tool": call["tool"], "text": text})

    def _request(self, call: dict[str, Any]) -> Request:
        return Request(
            id=call["id"], call_id=call["id"], tool=call["tool"], arguments=call["arguments"], handle=Pending(call)
        )


class Attached(Toy):
    """Runs a user's own function, given as the attachment, for every call of its tool."""

    async def _run(self, calls: list[dict[str, Any]]) -> None:
        TASK.set("the framework's")
        WORLD.set(self.world)
        await asyncio.gather(*(self._run_own(call) for call in calls))

    async def _run_own(self, call: dict[str, Any]) -> None:
        assert self.blueprint.attachment is not None
        own: Callable[..., Awaitable[Any]] = self.blueprint.attachment.subject
        try:
            result = await self.world.run(
                call["tool"], call["arguments"], call["id"], real=lambda: own(**call["arguments"])
            )
        except SoldOut as error:
            result = error.args
        self._tell(call, repr(result))

    def _tool(self, name: str) -> ToolSpec:
        return ToolSpec(name=name)


def _written(call: ModelCall) -> dict[str, Any]:
    return {"id": call.id, "tool": call.tool, "arguments": call.arguments}


class Ticket:
    """What a user's own tool gives back: nothing that JSON could hold."""

    def __repr__(self) -> str:
        return "<a ticket>"


class SoldOut(Exception):
    """What a user's own tool raises."""


async def own_tool(amount: int) -> Ticket:
    """A user's own tool."""
    if amount == 0:
        raise SoldOut(TASK.get())
    if amount == 99:
        CANCELLED.append("not yet")
        WORLD.get().shown("text", text="it runs")
        try:
            await asyncio.Event().wait()
        finally:
            CANCELLED.append("cancelled")
    return Ticket()


async def what_was_cancelled(amount: int) -> list[str]:
    """Another tool, which tells of the first one."""
    return CANCELLED

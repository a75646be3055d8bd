"""A small recording world, and a bench to drive an agent on: the reference agent is tested without the harness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.exceptions import ConditionRaised
from pytest_approvals.agent_side.contract.types import (
    MAIN,
    Blueprint,
    Chunk,
    Decision,
    ElicitationAnswer,
    HostedResult,
    Item,
    ModelCall,
    Outcome,
    Parameter,
    Reply,
    Request,
    ToolSpec,
    needs_approval,
)
from pytest_approvals.simulation import ReferenceAgent

PATH = {"path": Parameter()}
DELETE = ToolSpec(name="delete", parameters=PATH, approval="always")
READ = ToolSpec(name="read", parameters=PATH)
SEARCH = ToolSpec(name="search", kind="hosted_mcp", server="docs", approval="always")


class World:
    """Plays replies, and records what is asked, run and shown. A reply that is an exception is raised."""

    def __init__(self, replies: Sequence[Any], tools: Sequence[ToolSpec]) -> None:
        self.replies: dict[str, list[Any]] = {MAIN: list(replies)}
        self.tools = {tool.name: tool for tool in tools}
        self.behaviours: dict[str, list[Any]] = {}
        self.inputs: list[Sequence[Item]] = []
        self.asked_models: list[str] = []
        self.ran: list[str] = []
        self.gates: list[tuple[str, Any]] = []
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.gates_may_open = asyncio.Event()

    async def model(
        self, items: Sequence[Item], *, agent: str = MAIN, stream: bool = False, tools: Sequence[str] = ()
    ) -> Reply:
        self.inputs.append(items)
        self.asked_models.append(agent)
        reply = self.replies[agent].pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def run(
        self, tool: str, arguments: Mapping[str, Any], call_id: str | None, *, agent: str = MAIN, **_: Any
    ) -> Any:
        self.ran.append(f"{tool}({', '.join(str(value) for value in arguments.values())})")
        behaviours = self.behaviours.get(tool, [])
        behaviour = behaviours.pop(0) if behaviours else f"{tool} done"
        if isinstance(behaviour, Exception):
            raise behaviour
        return await behaviour() if callable(behaviour) else behaviour

    async def elicit(
        self, message: str, *, form: Mapping[str, Any] | None = None, url: str | None = None
    ) -> ElicitationAnswer:
        return ElicitationAnswer(action="cancel")

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        self.gates.append((tool, arguments))
        approval = self.tools[tool].approval
        if getattr(approval, "raises", None):
            raise ConditionRaised("the policy is down")
        before = sum(1 for asked in self.gates[:-1] if asked == (tool, arguments))
        return needs_approval(approval, arguments, before)

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        await self.gates_may_open.wait()
        return self.gate(tool, arguments, call_id, agent=agent)

    def shown(self, what: str, **facts: Any) -> None:
        self.seen.append((what, facts))

    def told(self, place: int = -1) -> list[str | None]:
        """What the results in one model input say."""
        return [item.text for item in self.inputs[place] if item.kind == "result"]


class Bench:
    """An agent in a small world, driven step by step."""

    def __init__(
        self, *replies: Any, tools: Sequence[ToolSpec] = (DELETE, READ), agent: type = ReferenceAgent, **more: Any
    ) -> None:
        self.world = World(replies, tools)
        self.make = agent
        self.blueprint = Blueprint(tools=tuple(tools), **more)
        self.agent = agent(self.world, self.blueprint)

    def send(self, text: str | None, *decisions: Decision, stream: bool = False) -> Outcome:
        return asyncio.run(self.agent.turn(text, decisions, stream=stream))

    def decide(self, *decisions: Decision, stream: bool = False) -> Outcome:
        return self.send(None, *decisions, stream=stream)

    def pending(self) -> Sequence[Request]:
        return asyncio.run(self.agent.pending())

    def restart(self, **changes: Any) -> None:
        """Saves the state, and goes on with a new agent that loaded it."""
        from dataclasses import replace

        saved = asyncio.run(self.agent.dump())
        self.blueprint = replace(self.blueprint, **changes)
        self.agent = self.make(self.world, self.blueprint)
        asyncio.run(self.agent.load([saved]))


def call(call_id: str | None, tool: str, path: Any = "a", **more: Any) -> ModelCall:
    return ModelCall(id=call_id, tool=tool, arguments=path if isinstance(path, Mapping) else {"path": path}, **more)


def calls(*them: ModelCall, say: str | None = None, **more: Any) -> Reply:
    return Reply(say=say, calls=them, **more)


def say(text: str, **more: Any) -> Reply:
    return Reply(say=text, **more)


def answer(request: Request | str, verdict: str = "approve", **more: Any) -> Decision:
    if isinstance(request, str):
        request = Request(id=request, call_id=None, tool="", arguments={})
    return Decision(request=request, verdict=verdict, **more)


class Kit:
    """What the tests write their stories with."""

    Bench = Bench
    Chunk = Chunk
    HostedResult = HostedResult
    DELETE, READ, SEARCH = DELETE, READ, SEARCH
    call = staticmethod(call)
    calls = staticmethod(calls)
    say = staticmethod(say)
    answer = staticmethod(answer)


@pytest.fixture
def kit() -> type[Kit]:
    return Kit


@pytest.fixture
def paused() -> Callable[..., Bench]:
    """A bench at its first pause: two gated calls and an ungated one."""

    def pause(*replies: Any, **more: Any) -> Bench:
        first = calls(call("c1", "delete", "a"), call("c2", "delete", "b"), call("c3", "read", "c"))
        bench = Bench(first, *(replies or (say("done"),)), **more)
        bench.send("go")
        return bench

    return pause

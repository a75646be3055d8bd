"""A world for tests of the host: plays replies, lets tools do what the test says, remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pytest_approvals.agent_side.contract import (
    Blueprint,
    ConditionRaised,
    Item,
    ModelAddress,
    ModelCall,
    Parameter,
    Reply,
    ScriptExhausted,
    ToolSpec,
)
from pytest_approvals.agent_side.contract.types import Condition, ElicitationAnswer, needs_approval

PAY = ToolSpec(name="pay", parameters={"amount": Parameter(type="integer")}, approval="always")
LOOK = ToolSpec(name="look", parameters={"what": Parameter()})
ASK = ToolSpec(name="ask", parameters={"amount": Parameter()}, approval=Condition(argument="amount", greater_than=10))
BLUEPRINT = Blueprint(tools=(PAY, LOOK, ASK), serialize="json")


def pays(*amounts: int, tool: str = "pay") -> Reply:
    """A reply that calls `pay`, or another tool with an amount, under the ids c1, c2, ..."""
    calls = (ModelCall(id=f"c{n}", tool=tool, arguments={"amount": amount}) for n, amount in enumerate(amounts, 1))
    return Reply(calls=tuple(calls))


def says(text: str) -> Reply:
    """A reply that is only text."""
    return Reply(say=text)


class ToyWorld:
    """
    Records in `log` a line for each thing that happened, in order.

    Arguments:
        replies: What the model says, or raises.
        tools: What tools do, by name; others return `ok`.
    """

    def __init__(self, *replies: Reply | Exception, **tools: Callable[..., Awaitable[Any]]) -> None:
        self.replies = list(replies)
        self.tools = tools
        self.log: list[str] = []
        self.inputs: list[tuple[Item, ...]] = []
        self.asked = 0
        self.something_shown = asyncio.Event()

    async def model(
        self, items: Sequence[Item], *, agent: str = "main", stream: bool = False, tools: Sequence[str] = ()
    ) -> Reply:
        self.log.append(f"model {len(items)}{' streamed' if stream else ''}")
        self.inputs.append(tuple(items))
        if not self.replies:
            raise ScriptExhausted(agent)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def address(self) -> ModelAddress | None:
        return None

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = "main",
        real: Callable[[], Awaitable[Any]] | None = None,
        elicited: ElicitationAnswer | None = None,
    ) -> Any:
        self.log.append(f"start {call_id}")
        try:
            if elicited is not None:
                return f"{elicited.action} {elicited.content} for {elicited.execution}"
            if real is not None and tool not in self.tools:
                return await real()
            return await self.tools[tool](**arguments) if tool in self.tools else "ok"
        except BaseException as error:
            self.log.append(f"{type(error).__name__} {call_id}")
            raise
        finally:
            self.log.append(f"end {call_id}")

    async def elicit(
        self, message: str, *, form: Mapping[str, Any] | None = None, url: str | None = None
    ) -> ElicitationAnswer:
        self.log.append(f"elicit {message}")
        return ElicitationAnswer(action="accept", content={"account": "savings"})

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = "main") -> bool:
        condition = next(spec for spec in BLUEPRINT.tools if spec.name == tool).approval
        if isinstance(condition, Condition) and arguments["amount"] == 13:
            raise ConditionRaised("13 is an unlucky number")
        answer = needs_approval(condition, arguments, self.asked)
        self.asked += 1
        self.record_gate(tool, arguments, call_id, answer=answer)
        return answer

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = "main") -> bool:
        return self.gate(tool, arguments, call_id)

    def record_gate(
        self,
        tool: str,
        arguments: Any,
        call_id: str | None,
        *,
        agent: str = "main",
        answer: bool | None = None,
        raised: str | None = None,
    ) -> None:
        self.log.append(f"gate {call_id}: {raised or answer}")

    def shown(self, what: str, **facts: str) -> None:
        if unknown := facts.keys() - {"id", "tool", "text"}:
            raise TypeError(f"shown() got an unexpected keyword argument {min(unknown)!r}")
        self.something_shown.set()
        self.log.append(f"shown {what} {facts.get('id') or facts.get('text')}")

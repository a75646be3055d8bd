"""
Tools made from tool specs.

Only a body that asks by itself knows of approvals: with `interrupt()`, which starts the body again from its beginning
when the answer is there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.func import task
from langgraph.types import interrupt

from ...contract import AsksAgain, Condition, ToolSpec
from ...current import world
from ...declared import fields_model
from .messages import text_of

Agents = Mapping[str, Any]
"""The graphs of all agents by name, complete by the time that a tool is called."""

_CALL = "tool_call_id"


def made(spec: ToolSpec, agents: Agents, *, asking: bool) -> StructuredTool:
    """
    Gives the tool that *spec* describes.

    Arguments:
        asking: Where the spec is gated, the body asks.
    """
    run = _delegate(spec, agents) if spec.runs else _run(spec)
    return _tool(spec, _asking(spec, run) if asking and spec.approval != "never" else run)


def of_server(spec: ToolSpec, tool: Any, *, asking: bool) -> Any:
    """
    Gives the server's *tool* that *spec* describes.

    Arguments:
        asking: Where the spec is gated, a tool around it asks, as the guide "Human-in-the-loop" has it for any tool.
    """

    async def run(arguments: dict[str, Any], call_id: str) -> Any:
        return await tool.ainvoke({"type": "tool_call", "id": call_id, "name": spec.name, "args": arguments})

    return _tool(spec, _asking(spec, run)) if asking and spec.approval != "never" else tool


Run = Callable[[dict[str, Any], str], Awaitable[Any]]


def _tool(spec: ToolSpec, run: Run) -> StructuredTool:
    async def body(tool_call_id: str, **arguments: Any) -> Any:
        return await run(arguments, tool_call_id)

    schema = fields_model(spec.name, spec.parameters, **{_CALL: Annotated[str, InjectedToolCallId]})
    return StructuredTool(name=spec.name, description=spec.description, coroutine=body, args_schema=schema)


def _run(spec: ToolSpec) -> Run:
    async def run(arguments: dict[str, Any], call_id: str) -> Any:
        return await world().run(spec.name, arguments, call_id, agent=spec.agent)

    return _asking_again(spec, run) if spec.asks_again else run


def _asking_again(spec: ToolSpec, run: Run) -> Run:
    """
    Asks in the middle of the body.

    What stands before the question is a `task`, as the guide "Durable execution" has it, so that it is not done again
    when the body is started again with the answer.
    """

    @task
    async def asks(arguments: dict[str, Any], call_id: str) -> list[Any]:
        try:
            return [await run(arguments, call_id)]
        except AsksAgain:
            return []

    async def asking_again(arguments: dict[str, Any], call_id: str) -> Any:
        while not (done := await asks(arguments, call_id)):
            answer = answer_to(question(spec, arguments, call_id))
            if answer["type"] == "reject":
                return rejected(answer)
            arguments = _edited(answer, arguments)
        return done[0]

    return asking_again


def _delegate(spec: ToolSpec, agents: Agents) -> Run:
    async def run(arguments: dict[str, Any], call_id: str) -> Any:
        done = await agents[str(spec.runs)].ainvoke({"messages": [{"role": "user", "content": arguments["input"]}]})
        return text_of(done["messages"][-1])

    return run


# --- asking -----------------------------------------------------------------------------------------------------------


def _asking(spec: ToolSpec, run: Run) -> Run:
    """Asks as the guide "Human-in-the-loop" has it for tools: approve, edit or reject."""

    async def asking(arguments: dict[str, Any], call_id: str) -> Any:
        if not await _gated(spec, arguments, call_id):
            return await run(arguments, call_id)
        answer = answer_to(question(spec, arguments, call_id))
        if answer["type"] == "reject":
            return rejected(answer)
        return await run(_edited(answer, arguments), call_id)

    return asking


def answer_to(asked: dict[str, Any]) -> dict[str, Any]:
    """Asks until the answer is one, as the guide has it for answers that have to be validated."""
    while True:
        answer = interrupt(asked)
        if isinstance(answer, dict) and answer.get("type") in ("approve", "edit", "reject"):
            return answer


async def _gated(spec: ToolSpec, arguments: dict[str, Any], call_id: str) -> bool:
    if not isinstance(spec.approval, Condition):
        return True
    return await world().gate_slowly(spec.name, arguments, call_id, agent=spec.agent)


def question(spec: ToolSpec, arguments: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    """Gives what a person is asked, in the form in which the middleware asks about one call."""
    return {
        "type": "tool_approval",
        "tool_call_id": call_id,
        "name": spec.name,
        "args": dict(arguments),
        "description": spec.agent,
    }


def _edited(answer: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    return dict(answer["edited_action"]["args"]) if answer["type"] == "edit" else arguments


def rejected(answer: Mapping[str, Any]) -> str:
    """Gives what the model is told of a rejection."""
    reason = answer.get("message")
    return f"The user rejected this call: {reason}" if reason else "The user rejected this call."

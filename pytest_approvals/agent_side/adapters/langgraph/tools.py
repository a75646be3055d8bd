"""Tools made from tool specs.

Only a body that asks by itself knows of approvals: with `interrupt()`, which starts the body again from its beginning
when the answer is there.

Tools of MCP servers that the agent connects to, with LangChain's own client, which is a distribution of its own.

As its documentation has it, the tools are listed before the graph is made, and each call connects anew. A server is not
told the id of a call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import Annotated, Any

from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.func import task
from langgraph.types import interrupt

from ...contract import AsksAgain, Condition, ServerAddress, ToolSpec
from ...kit.context import current_world
from ...kit.tool_schema import build_fields_model
from .messages import text_of

Agents = Mapping[str, Any]
"""The graphs of all agents by name, complete by the time that a tool is called."""

_CALL = "tool_call_id"


def build_tool(spec: ToolSpec, agents: Agents, *, asking: bool) -> StructuredTool:
    """
    Gives the tool that *spec* describes.

    Arguments:
        asking: Where the spec is gated, the body asks.
    """
    run = _delegate_body(spec, agents) if spec.runs else _world_body(spec)
    return _build_structured_tool(spec, _asking_body(spec, run) if asking and spec.approval != "never" else run)


def build_server_tool(spec: ToolSpec, tool: Any, *, asking: bool) -> Any:
    """
    Gives the server's *tool* that *spec* describes.

    Arguments:
        asking: Where the spec is gated, a tool around it asks, as the guide "Human-in-the-loop" has it for any tool.
    """

    async def run(arguments: dict[str, Any], call_id: str) -> Any:
        return await tool.ainvoke({"type": "tool_call", "id": call_id, "name": spec.name, "args": arguments})

    return _build_structured_tool(spec, _asking_body(spec, run)) if asking and spec.approval != "never" else tool


ToolBody = Callable[[dict[str, Any], str], Awaitable[Any]]


def _build_structured_tool(spec: ToolSpec, run: ToolBody) -> StructuredTool:
    async def body(tool_call_id: str, **arguments: Any) -> Any:
        return await run(arguments, tool_call_id)

    schema = build_fields_model(spec.name, spec.parameters, **{_CALL: Annotated[str, InjectedToolCallId]})
    return StructuredTool(name=spec.name, description=spec.description, coroutine=body, args_schema=schema)


def _world_body(spec: ToolSpec) -> ToolBody:
    async def run(arguments: dict[str, Any], call_id: str) -> Any:
        return await current_world().run(spec.name, arguments, call_id, agent=spec.agent)

    return _asking_midway_body(spec, run) if spec.asks_again else run


def _asking_midway_body(spec: ToolSpec, run: ToolBody) -> ToolBody:
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
            answer = ask_until_answered(build_question(spec, arguments, call_id))
            if answer["type"] == "reject":
                return rejection_text(answer)
            arguments = _edited_arguments(answer, arguments)
        return done[0]

    return asking_again


def _delegate_body(spec: ToolSpec, agents: Agents) -> ToolBody:
    async def run(arguments: dict[str, Any], call_id: str) -> Any:
        done = await agents[str(spec.runs)].ainvoke({"messages": [{"role": "user", "content": arguments["input"]}]})
        return text_of(done["messages"][-1])

    return run


# --- asking -----------------------------------------------------------------------------------------------------------


def _asking_body(spec: ToolSpec, run: ToolBody) -> ToolBody:
    """Asks as the guide "Human-in-the-loop" has it for tools: approve, edit or reject."""

    async def asking(arguments: dict[str, Any], call_id: str) -> Any:
        if not await _needs_approval(spec, arguments, call_id):
            return await run(arguments, call_id)
        answer = ask_until_answered(build_question(spec, arguments, call_id))
        if answer["type"] == "reject":
            return rejection_text(answer)
        return await run(_edited_arguments(answer, arguments), call_id)

    return asking


def ask_until_answered(asked: dict[str, Any]) -> dict[str, Any]:
    """Asks until the answer is one, as the guide has it for answers that have to be validated."""
    while True:
        answer = interrupt(asked)
        if isinstance(answer, dict) and answer.get("type") in ("approve", "edit", "reject"):
            return answer


async def _needs_approval(spec: ToolSpec, arguments: dict[str, Any], call_id: str) -> bool:
    if not isinstance(spec.approval, Condition):
        return True
    return await current_world().gate_slowly(spec.name, arguments, call_id, agent=spec.agent)


def build_question(spec: ToolSpec, arguments: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    """Gives what a person is asked, in the form in which the middleware asks about one call."""
    return {
        "type": "tool_approval",
        "tool_call_id": call_id,
        "name": spec.name,
        "args": dict(arguments),
        "description": spec.agent,
    }


def _edited_arguments(answer: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    return dict(answer["edited_action"]["args"]) if answer["type"] == "edit" else arguments


def rejection_text(answer: Mapping[str, Any]) -> str:
    """Gives what the model is told of a rejection."""
    reason = answer.get("message")
    return f"The user rejected this call: {reason}" if reason else "The user rejected this call."


MCP_TIMEOUT = timedelta(minutes=10)
"""How long a tool may take: the harness has a limit of its own."""

ServerTools = Mapping[tuple[str, str], Any]
"""The framework's tools for those that servers offer, by agent and name."""


async def list_server_tools(addresses: Iterable[ServerAddress]) -> ServerTools:
    """Lists the tools of the servers at *addresses*."""
    found: dict[tuple[str, str], Any] = {}
    for address in addresses:
        from langchain_mcp_adapters.client import MultiServerMCPClient

        client = MultiServerMCPClient({address.name: _connection_options(address)})
        found |= {(address.agent, tool.name): tool for tool in await client.get_tools()}
    return found


def _connection_options(address: ServerAddress) -> Any:
    if address.url:
        patience = {"timeout": MCP_TIMEOUT, "sse_read_timeout": MCP_TIMEOUT}
        return {"transport": "streamable_http", "url": address.url, **patience}
    program, *arguments = address.command
    return {"transport": "stdio", "command": program, "args": arguments}

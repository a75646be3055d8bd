"""Tools made from tool specs, and tools of MCP servers.

Only a body that asks itself knows of approvals: it calls `interrupt()`, which runs the body again from its beginning
when the answer is there.

Tools of MCP servers use LangChain's own client, which is a separate distribution. As documented, the tools are listed
before the graph is built, and each call connects anew. A server does not receive the id of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import timedelta
from typing import Annotated, Any

from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.func import task
from langgraph.types import interrupt

from ...contract import AsksAgain, Condition, ServerAddress, ToolSpec
from ...kit.clients import MCP_TIMEOUT, build_elicitation_callback, split_command
from ...kit.context import current_world, run_blocking
from ...kit.tool_schema import build_fields_model
from .messages import text_of
from .metadata import CAN_BE_ASKED

Agents = Mapping[str, Any]
"""The graphs of all agents by name; complete before any tool is called."""

_CALL = "tool_call_id"


def build_tool(spec: ToolSpec, agents: Agents, *, asking: bool) -> StructuredTool:
    """Build the tool that *spec* describes.

    Args:
        spec: The tool.
        agents: The graphs that tools may run.
        asking: If the tool is gated, its body asks.
    """
    run = _delegate_body(spec, agents) if spec.runs else _world_body(spec)
    return _build_structured_tool(spec, _asking_body(spec, run) if asking and spec.approval != "never" else run)


def build_server_tool(spec: ToolSpec, tool: Any, *, asking: bool) -> Any:
    """Build the server's *tool* that *spec* describes.

    Args:
        spec: The tool.
        tool: The framework's tool for it.
        asking: If the tool is gated, a tool around it asks, as the guide "Human-in-the-loop" does for any tool.
    """

    async def run(arguments: dict[str, Any], call_id: str) -> Any:
        return await tool.ainvoke({"type": "tool_call", "id": call_id, "name": spec.name, "args": arguments})

    return _build_structured_tool(spec, _asking_body(spec, run)) if asking and spec.approval != "never" else tool


ToolBody = Callable[[dict[str, Any], str], Coroutine[Any, Any, Any]]
"""Runs a call, from its arguments and its id."""


def _build_structured_tool(spec: ToolSpec, run: ToolBody) -> StructuredTool:
    async def body(tool_call_id: str, **arguments: Any) -> Any:
        return await run(arguments, tool_call_id)

    def blocking_body(tool_call_id: str, **arguments: Any) -> Any:
        return run_blocking(run(arguments, tool_call_id))

    schema = build_fields_model(spec.name, spec.parameters, **{_CALL: Annotated[str, InjectedToolCallId]})
    return StructuredTool(
        name=spec.name, description=spec.description, coroutine=body, func=blocking_body, args_schema=schema
    )


def _world_body(spec: ToolSpec) -> ToolBody:
    async def run(arguments: dict[str, Any], call_id: str) -> Any:
        return await current_world().run(spec.name, arguments, call_id, agent=spec.agent)

    return _asking_midway_body(spec, run) if spec.asks_again else run


def _asking_midway_body(spec: ToolSpec, run: ToolBody) -> ToolBody:
    """Return a body that asks in its middle.

    The part before the question is a `task`, as in the guide "Durable execution", so that it is not executed again when
    the body is run again with the answer.
    """

    @task
    async def asks(arguments: dict[str, Any], call_id: str) -> list[Any]:
        try:
            return [await run(arguments, call_id)]
        except AsksAgain:
            return []

    async def asking_again(arguments: dict[str, Any], call_id: str) -> Any:
        while not (results := await asks(arguments, call_id)):
            answer = ask_until_answered(build_question(spec, arguments, call_id))
            if answer["type"] == "reject":
                return rejection_text(answer)
            arguments = _edited_arguments(answer, arguments)
        return results[0]

    return asking_again


def _delegate_body(spec: ToolSpec, agents: Agents) -> ToolBody:
    async def run(arguments: dict[str, Any], call_id: str) -> Any:
        # Without a configuration, the graph inherits that of the running tool, and with it thread and checkpointer.
        state = await agents[str(spec.runs)].ainvoke({"messages": [{"role": "user", "content": arguments["input"]}]})
        return text_of(state["messages"][-1])

    return run


# --- asking -----------------------------------------------------------------------------------------------------------


def _asking_body(spec: ToolSpec, run: ToolBody) -> ToolBody:
    """Return a body that asks: approve, edit or reject, as in "Human-in-the-loop"."""

    async def asking(arguments: dict[str, Any], call_id: str) -> Any:
        if not await _needs_approval(spec, arguments, call_id):
            return await run(arguments, call_id)
        answer = ask_until_answered(build_question(spec, arguments, call_id))
        if answer["type"] == "reject":
            return rejection_text(answer)
        return await run(_edited_arguments(answer, arguments), call_id)

    return asking


def ask_until_answered(question: dict[str, Any]) -> dict[str, Any]:
    """Ask until the answer is valid, as the guide does for answers that need validation."""
    while True:
        answer = interrupt(question)
        if isinstance(answer, dict) and answer.get("type") in ("approve", "edit", "reject"):
            return answer


async def _needs_approval(spec: ToolSpec, arguments: dict[str, Any], call_id: str) -> bool:
    if not isinstance(spec.approval, Condition):
        return True
    return await current_world().gate_slowly(spec.name, arguments, call_id, agent=spec.agent)


def build_question(spec: ToolSpec, arguments: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    """Build the question in the form in which the middleware asks about one call."""
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
    """Return the result that the model gets for a rejected call."""
    reason = answer.get("message")
    return f"The user rejected this call: {reason}" if reason else "The user rejected this call."


ServerTools = Mapping[tuple[str, str], Any]
"""The framework's tools for those of MCP servers, by agent and name."""


async def list_server_tools(addresses: Iterable[ServerAddress]) -> ServerTools:
    """List the tools of the servers at *addresses*."""
    tools: dict[tuple[str, str], Any] = {}
    for address in addresses:
        from langchain_mcp_adapters.client import MultiServerMCPClient

        client = MultiServerMCPClient({address.name: _connection_options(address)}, **_answering_options())
        tools |= {(address.agent, tool.name): tool for tool in await client.get_tools()}
    return tools


def _answering_options() -> dict[str, Any]:
    if not CAN_BE_ASKED:
        return {}
    from langchain_mcp_adapters.callbacks import Callbacks

    return {"callbacks": Callbacks(on_elicitation=build_elicitation_callback())}


def _connection_options(address: ServerAddress) -> Any:
    if address.url:
        timeout = timedelta(seconds=MCP_TIMEOUT)
        return {"transport": "streamable_http", "url": address.url, "timeout": timeout, "sse_read_timeout": timeout}
    program, arguments = split_command(address)
    return {"transport": "stdio", "command": program, "args": arguments}

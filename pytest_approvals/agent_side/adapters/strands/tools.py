"""Tools made from tool specs with the framework's decorator, and MCP clients.

The decorator validates the arguments of a body. The framework's own MCP client is started and stopped by its agent. It
connects when its agent is created, and blocks until it has. It receives the id of a call, but the server does not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import Parameter as Argument
from typing import Any

from strands import ToolContext, tool

from ...contract import AsksAgain, ServerAddress, ToolSpec, World
from ...kit.clients import MCP_TIMEOUT, build_elicitation_callback, split_command
from ...kit.context import current_world
from ...kit.tool_schema import set_signature, to_signature_parameters
from .gates import INTERRUPT_NAME, accept_answer, must_ask
from .metadata import CAN_BE_ASKED
from .requests import build_question, read_answer

_CONTEXT_PARAMETER = "tool_context"

ToolBody = Callable[[dict[str, Any], ToolContext], Awaitable[Any]]


def build_tool(spec: ToolSpec, *, asking: bool) -> Any:
    """Build the tool that *spec* describes.

    Args:
        spec: The tool.
        asking: If the tool is gated, its body asks.
    """
    run_body = _asking_midway_body(spec, _world_body(spec)) if spec.asks_again else _world_body(spec)
    if asking and spec.approval != "never":
        run_body = _asking_body(spec, run_body)

    async def body(**arguments: Any) -> Any:
        # The decorator passes the context among the model's arguments.
        context = arguments.pop(_CONTEXT_PARAMETER)
        return await run_body(arguments, context)

    body.__name__ = spec.name
    set_signature(
        body,
        *to_signature_parameters(spec.parameters),
        Argument(_CONTEXT_PARAMETER, Argument.KEYWORD_ONLY, annotation=ToolContext),
    )
    return tool(name=spec.name, description=spec.description or spec.name, context=_CONTEXT_PARAMETER)(body)


def _world_body(spec: ToolSpec) -> ToolBody:
    async def run(arguments: dict[str, Any], context: ToolContext) -> Any:
        return await current_world().run(spec.name, arguments, context.tool_use["toolUseId"], agent=spec.agent)

    return run


def _asking_body(spec: ToolSpec, run: ToolBody) -> ToolBody:
    """Return a body that asks at its beginning, as the guide does for tools."""

    async def asking(arguments: dict[str, Any], context: ToolContext) -> Any:
        if not await must_ask(spec, context.agent, context.tool_use):
            return await run(arguments, context)
        response = context.interrupt(INTERRUPT_NAME, reason=build_question(spec, context.tool_use))
        answer = accept_answer(spec, context.agent, response)
        if answer.refusal is not None:
            return answer.refusal
        return await run(arguments if answer.input is None else dict(answer.input), context)

    return asking


def _asking_midway_body(spec: ToolSpec, run: ToolBody) -> ToolBody:
    """Return a body that asks in its middle.

    The body runs again from its beginning when the answer is there. So that the part before the question is not
    executed twice, `agent.state` remembers that it asked, as the guide does for what must survive.
    """

    async def asking_again(arguments: dict[str, Any], context: ToolContext) -> Any:
        asked = f"{context.tool_use['toolUseId']}-asked"
        if not context.agent.state.get(asked):
            try:
                return await run(arguments, context)
            except AsksAgain:
                context.agent.state.set(asked, True)
        # An interrupt's id is made of call and name: under the gate's name, the gate's answer would come back.
        answer = read_answer(context.interrupt("once-more", reason=build_question(spec, context.tool_use)))
        context.agent.state.delete(asked)
        if answer.refusal is not None:
            return answer.refusal
        return await run(arguments if answer.input is None else dict(answer.input), context)

    return asking_again


def build_mcp_client(address: ServerAddress, world: World) -> Any:
    """Build the client of the server at *address*, which has an event loop of its own."""
    from strands.tools.mcp import MCPClient

    answering = {"elicitation_callback": build_elicitation_callback(world)} if CAN_BE_ASKED else {}
    return MCPClient(lambda: _connect(address), startup_timeout=MCP_TIMEOUT, **answering)


def _connect(address: ServerAddress) -> Any:
    from mcp import StdioServerParameters, stdio_client
    from mcp.client import streamable_http

    if not address.url:
        program, arguments = split_command(address)
        return stdio_client(StdioServerParameters(command=program, args=arguments))
    # Releases of the SDK have one of two names for it.
    sdk: Any = streamable_http
    connect = sdk.streamable_http_client if hasattr(sdk, "streamable_http_client") else sdk.streamablehttp_client
    return connect(address.url)

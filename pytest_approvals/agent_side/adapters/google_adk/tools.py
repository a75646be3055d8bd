"""Tools made from tool specs, and toolsets of MCP servers.

Each flavour has its own kind of tool: a function that the framework gates, a function that asks itself, or a subclass
that decides whether it is gated.

The toolset of an MCP server takes one policy for all its tools, so tools with different policies are in toolsets of
their own, as its filters allow. The framework keeps its connections until its runner is closed. A server does not
receive the id of a call.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import Parameter as Argument
from typing import Any

from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.genai import types

from ...contract import AsksAgain, Condition, ServerAddress, ToolSpec
from ...kit.clients import MCP_TIMEOUT, build_elicitation_callback, split_command
from ...kit.context import current_world
from ...kit.tool_schema import set_signature, to_signature_parameters
from .metadata import CAN_BE_ASKED

WAITING_RESULT = {"error": "This tool call requires confirmation, please approve or reject."}

ToolBody = Callable[..., Awaitable[Any]]


# --- what gates -------------------------------------------------------------------------------------------------------


def confirmation_policy(spec: ToolSpec) -> Any:
    """Return the value of `require_confirmation`: a boolean, or a function of the call."""
    if not isinstance(spec.approval, Condition):
        return spec.approval == "always"

    async def asks(tool_context: ToolContext, **arguments: Any) -> bool:
        return await needs_confirmation(spec, arguments, tool_context)

    return asks


async def needs_confirmation(spec: ToolSpec, arguments: Mapping[str, Any], context: Any) -> bool:
    """Return whether a call needs approval."""
    if not isinstance(spec.approval, Condition):
        return spec.approval == "always"
    return await current_world().gate_slowly(spec.name, dict(arguments), context.function_call_id, agent=spec.agent)


# --- the flavours -----------------------------------------------------------------------------------------------------


def build_confirmed_tool(spec: ToolSpec) -> Any:
    """Build a function that the framework gates."""
    return FunctionTool(_build_function(spec, _world_body(spec)), require_confirmation=confirmation_policy(spec))


def build_asking_tool(spec: ToolSpec) -> Any:
    """Build a function that asks itself and reads the payload of the answer."""
    body = _world_body(spec)

    async def ask(tool_context: Any, **arguments: Any) -> Any:
        answer = tool_context.tool_confirmation
        if answer is None and await needs_confirmation(spec, arguments, tool_context):
            return request_confirmation(tool_context, payload={"arguments": arguments})
        return await body(tool_context, **edited_arguments(answer, arguments))

    return FunctionTool(_build_function(spec, ask))


def build_custom_tool(spec: ToolSpec) -> Any:
    """Build a tool of a class of its own, which leaves the gate to the framework."""
    return CustomTool(spec)


class CustomTool(BaseTool):  # type: ignore[misc, unused-ignore]
    """A tool that decides whether it is gated and trusts the framework to apply it."""

    def __init__(self, spec: ToolSpec) -> None:
        super().__init__(name=spec.name, description=spec.description or spec.name)
        self._tool = spec
        self._body = _world_body(spec)

    def _get_declaration(self) -> Any:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters=build_schema(self._tool)
        )

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: Any) -> bool:
        """See `BaseTool.check_require_confirmation`."""
        return await needs_confirmation(self._tool, args, tool_context)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Run the tool; in releases that leave the question to the tool, ask first."""
        if tool_context.tool_confirmation is None and await self._must_ask(args, tool_context):
            return request_confirmation(tool_context)
        return await self._body(tool_context, **{**default_arguments(self._tool), **args})

    async def _must_ask(self, args: dict[str, Any], tool_context: Any) -> bool:
        if is_gated_by_framework():
            return False
        return await self.check_require_confirmation(args, tool_context)


def is_gated_by_framework() -> bool:
    """Return whether the framework gates tools that decide themselves; once each had to."""
    try:
        from google.adk.tools import _confirmation_utils
    except ImportError:
        return False
    return hasattr(_confirmation_utils, "apply_confirmation_gate")


# --- bodies -----------------------------------------------------------------------------------------------------------


def _world_body(spec: ToolSpec) -> ToolBody:
    async def run(tool_context: Any, **arguments: Any) -> Any:
        # The framework reads the answer for the tools that it gates; a body that has asked reads it itself.
        answer = tool_context.tool_confirmation
        if answer is not None and not answer.confirmed:
            return {"error": rejection_text(answer.payload)}
        try:
            return await current_world().run(spec.name, arguments, tool_context.function_call_id, agent=spec.agent)
        except AsksAgain as asked:
            return request_confirmation(tool_context, hint=str(asked))

    async def hand_over(tool_context: Any) -> Any:
        # The framework's own tool does the same, but takes the target as an argument; the scenario's tool has none.
        tool_context.actions.transfer_to_agent = spec.hands_over_to
        return {"result": f"{spec.hands_over_to} takes over."}

    return hand_over if spec.hands_over_to else run


def request_confirmation(context: Any, *, hint: str = "", payload: Any = None) -> dict[str, str]:
    """Ask for a confirmation and end the run: the model gets no result of a waiting call."""
    context.request_confirmation(hint=hint or "Please approve or reject the tool call.", payload=payload)
    context.actions.skip_summarization = True
    return dict(WAITING_RESULT)


def edited_arguments(answer: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the edited arguments, or those of the call."""
    payload = answer.payload if answer is not None else None
    edited = payload.get("arguments") if isinstance(payload, dict) else None
    return dict(edited) if isinstance(edited, dict) else arguments


def rejection_text(payload: Any) -> str:
    """Return the result that the model gets for a rejected call."""
    reason = payload.get("reason") if isinstance(payload, dict) else None
    return f"This tool call is rejected: {reason}" if reason else "This tool call is rejected."


# --- schemas ----------------------------------------------------------------------------------------------------------


def _build_function(spec: ToolSpec, run: ToolBody) -> ToolBody:
    """Build a function with the signature that *spec* describes."""
    defaults = default_arguments(spec)

    async def body(tool_context: Any, **arguments: Any) -> Any:
        return await run(tool_context, **{**defaults, **arguments})

    body.__name__ = body.__qualname__ = spec.name
    body.__doc__ = spec.description or spec.name
    return set_signature(
        body,
        Argument("tool_context", Argument.KEYWORD_ONLY, annotation=ToolContext),
        *to_signature_parameters(spec.parameters),
    )


def default_arguments(spec: ToolSpec) -> dict[str, Any]:
    """Return the defaults of the parameters that a call may leave out."""
    return {name: parameter.default for name, parameter in spec.parameters.items() if not parameter.required}


def build_schema(spec: ToolSpec) -> types.Schema:
    """Build the parameters as a declaration has them."""
    return types.Schema(
        type=types.Type.OBJECT,
        properties={
            name: types.Schema(type=types.Type(parameter.type.upper())) for name, parameter in spec.parameters.items()
        },
        required=[name for name, parameter in spec.parameters.items() if parameter.required],
    )


def build_toolsets(addresses: Iterable[ServerAddress], specs: Iterable[ToolSpec]) -> list[Any]:
    """Build the toolsets of one agent: one for each policy of each of its servers."""
    all_specs = list(specs)
    return [
        _build_toolset(address, group)
        for address in addresses
        for group in _group_by_policy(spec for spec in all_specs if spec.server == address.name)
    ]


def _group_by_policy(specs: Iterable[ToolSpec]) -> Iterable[list[ToolSpec]]:
    groups: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        groups.setdefault(str(spec.approval), []).append(spec)
    return groups.values()


def _build_toolset(address: ServerAddress, specs: list[ToolSpec]) -> Any:
    # By default the framework looks for credentials of its cloud first, on the network too, whatever the server is.
    os.environ.setdefault("GOOGLE_API_USE_CLIENT_CERTIFICATE", "false")
    from google.adk.tools.mcp_tool import McpToolset

    answering = {"elicitation_callback": build_elicitation_callback()} if CAN_BE_ASKED else {}
    return McpToolset(
        connection_params=_connection_params(address),
        tool_filter=[spec.name for spec in specs],
        require_confirmation=confirmation_policy(specs[0]),
        **answering,
    )


def _connection_params(address: ServerAddress) -> Any:
    from google.adk.tools.mcp_tool import StdioConnectionParams, StreamableHTTPConnectionParams
    from mcp import StdioServerParameters

    if address.url:
        return StreamableHTTPConnectionParams(url=address.url, timeout=MCP_TIMEOUT, sse_read_timeout=MCP_TIMEOUT)
    program, arguments = split_command(address)
    return StdioConnectionParams(
        server_params=StdioServerParameters(command=program, args=arguments), timeout=MCP_TIMEOUT
    )

"""Tools made from tool specs, and workbenches of MCP servers.

The bodies of tools run in the world, or run another agent. An MCP server does not receive the id of a call.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any

from autogen_agentchat.messages import BaseAgentEvent
from autogen_agentchat.tools import AgentTool
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool
from pydantic import BaseModel

from ...contract import AsksAgain, ServerAddress, ToolSpec
from ...contract.agent import World
from ...kit.clients import MCP_TIMEOUT, split_command
from ...kit.tool_schema import build_fields_model
from .requests import ApprovalFunction, ToolApprovalRequest, ToolApprovalResult, denial_text

_CALL_ID: ContextVar[str | None] = ContextVar("pytest_approvals_autogen_call_id", default=None)


class ScenarioTool(BaseTool[BaseModel, Any]):
    """Tool whose body runs in the world.

    Args:
        spec: The tool.
        world: The world of the session.
        ask: Called if the body wants a second approval in its middle.
        strict: Declare the tool as strict, which clients want of tools next to a structured answer.
    """

    component_config_schema = BaseModel

    def __init__(self, spec: ToolSpec, world: World, ask: ApprovalFunction, *, strict: bool = False) -> None:
        # Errors tell the model this name, which `FunctionTool` makes in the same way.
        arguments = build_fields_model(f"{spec.name}args", spec.parameters)
        super().__init__(arguments, object, spec.name, spec.description, strict=strict)
        self._spec = spec
        self._world = world
        self._ask = ask

    async def run_json(
        self, args: Mapping[str, Any], cancellation_token: CancellationToken, call_id: str | None = None
    ) -> Any:
        """See `BaseTool.run_json`; a tool may know the id of its call, which its body does not receive."""
        reset_token = _CALL_ID.set(call_id)
        try:
            return await super().run_json(args, cancellation_token)
        finally:
            _CALL_ID.reset(reset_token)

    async def run(self, args: BaseModel, cancellation_token: CancellationToken) -> Any:
        """See `BaseTool.run`."""
        arguments = args.model_dump()
        while True:
            try:
                return await self._body(arguments)
            except AsksAgain:
                result = await self._asked_again(arguments)
            if not result.approved:
                return denial_text(result)
            arguments = arguments if result.arguments is None else result.arguments

    def _body(self, arguments: dict[str, Any]) -> Awaitable[Any]:
        return self._world.run(self._spec.name, arguments, _CALL_ID.get(), agent=self._spec.agent)

    async def _asked_again(self, arguments: dict[str, Any]) -> ToolApprovalResult:
        request = ToolApprovalRequest(
            agent=self._spec.agent, tool=self._spec.name, arguments=arguments, call_id=_CALL_ID.get()
        )
        # A body has no way to show an event.
        return await self._ask(request, _ignore_event)


def _ignore_event(_: BaseAgentEvent) -> None:
    pass


class _Input(BaseModel):
    input: str


class Delegate(AgentTool):
    """The framework's tool that runs an agent, with the scenario's name and parameter."""

    def __init__(self, agent: Any, spec: ToolSpec) -> None:
        # The constructor takes the name and the description from the agent, and the parameter is called `task`.
        super().__init__(agent, return_value_as_last_message=True)
        self._runs = agent
        self._name = spec.name
        self._description = spec.description
        self._args_type: Any = _Input

    async def run(self, args: Any, cancellation_token: CancellationToken) -> Any:
        """See `AgentTool.run`."""
        return await self._runs.run(task=args.input, cancellation_token=cancellation_token)

    async def run_stream(self, args: Any, cancellation_token: CancellationToken) -> AsyncGenerator[Any, None]:
        """See `AgentTool.run_stream`."""
        async for event in self._runs.run_stream(task=args.input, cancellation_token=cancellation_token):
            yield event


Emit = Callable[[BaseAgentEvent], None]


FindEarlierRequest = Callable[[ToolApprovalRequest], ToolApprovalRequest | None]
"""Returns the request about the same call that was open when the state was saved."""


def build_approval_function(
    spec: ToolSpec, world: World, ask: ApprovalFunction, find_earlier_request: FindEarlierRequest
) -> ApprovalFunction:
    """Build the approval function of a tool.

    It asks the user, or asks if the tool's condition requires it. Neither a condition nor a tool that is free withdraws
    what the user was asked: a body that has asked in its middle is not entered anew before that is answered.
    """
    if spec.approval == "always":
        return ask

    async def conditional(request: ToolApprovalRequest, emit: Emit) -> ToolApprovalResult:
        if find_earlier_request(request) or (
            spec.approval != "never"
            and await world.gate_slowly(spec.name, request.arguments, request.call_id, agent=spec.agent)
        ):
            return await ask(request, emit)
        return ToolApprovalResult(approved=True)

    return conditional


class McpConnection:
    """The framework's workbench for one MCP server, and whether it is connected."""

    def __init__(self, address: ServerAddress) -> None:
        from autogen_ext.tools.mcp import McpWorkbench

        self.workbench = McpWorkbench(_server_parameters(address))
        self._connected = False

    async def start(self) -> None:
        """Connect the workbench, once."""
        if not self._connected:
            self._connected = True
            await self.workbench.start()

    async def stop(self) -> None:
        """Disconnect the workbench."""
        if self._connected:
            self._connected = False
            await self.workbench.stop()


def _server_parameters(address: ServerAddress) -> Any:
    from autogen_ext.tools.mcp import StdioServerParams, StreamableHttpServerParams

    if address.url:
        return StreamableHttpServerParams(url=address.url, timeout=MCP_TIMEOUT, sse_read_timeout=MCP_TIMEOUT)
    program, arguments = split_command(address)
    return StdioServerParams(command=program, args=arguments, read_timeout_seconds=MCP_TIMEOUT)

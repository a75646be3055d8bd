"""Tools made from tool specs: their bodies run in the world, or run another agent.

Tools of MCP servers that the agent connects to, with the framework's own workbench.

A server is not told the id of a call.
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
from ...kit.tool_schema import build_fields_model
from .requests import ApprovalFunction, ToolApprovalRequest, ToolApprovalResult, denial_text

_CALL_ID: ContextVar[str | None] = ContextVar("pytest_approvals_autogen_call_id", default=None)


class ScenarioTool(BaseTool[BaseModel, Any]):
    """
    A tool whose body runs in the world.

    Arguments:
        ask: Is asked where the body wants a second approval in its middle.
        strict: Says so to the model, which clients want of tools beside a structured answer.
    """

    component_config_schema = BaseModel

    def __init__(self, spec: ToolSpec, world: World, ask: ApprovalFunction, *, strict: bool = False) -> None:
        super().__init__(
            build_fields_model(spec.name, spec.parameters), object, spec.name, spec.description, strict=strict
        )
        self._spec = spec
        self._world = world
        self._ask = ask

    async def run_json(
        self, args: Mapping[str, Any], cancellation_token: CancellationToken, call_id: str | None = None
    ) -> Any:
        """See `BaseTool.run_json`; a tool may know the id of its call, which its body is not told."""
        token = _CALL_ID.set(call_id)
        try:
            return await super().run_json(args, cancellation_token)
        finally:
            _CALL_ID.reset(token)

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
        # A body is given no way to show an event.
        return await self._ask(request, _ignore_event)


def _ignore_event(_: BaseAgentEvent) -> None:
    pass


class _Input(BaseModel):
    input: str


class Delegate(AgentTool):
    """The framework's tool that runs an agent, with the name and the parameter that a scenario gives it."""

    def __init__(self, agent: Any, spec: ToolSpec) -> None:
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
"""Gives what a person was asked about a call before the state was saved."""


def build_approval_function(
    spec: ToolSpec, world: World, ask: ApprovalFunction, asked: FindEarlierRequest
) -> ApprovalFunction | None:
    """
    Gives the approval function of a tool: none, one that asks a person, or one that asks where its policy says so.

    A policy does not take back what a person was asked.
    """
    if spec.approval == "never":
        return None
    if spec.approval == "always":
        return ask

    async def conditional(request: ToolApprovalRequest, emit: Emit) -> ToolApprovalResult:
        if asked(request) or await world.gate_slowly(spec.name, request.arguments, request.call_id, agent=spec.agent):
            return await ask(request, emit)
        return ToolApprovalResult(approved=True)

    return conditional


MCP_TIMEOUT = 600.0
"""Seconds that a connection or a tool may take: the harness has a limit of its own."""


class McpConnection:
    """The framework's workbench for one server, and whether it is connected."""

    def __init__(self, address: ServerAddress) -> None:
        from autogen_ext.tools.mcp import McpWorkbench

        self.workbench = McpWorkbench(_server_parameters(address))
        self._connected = False

    async def start(self) -> None:
        """Lets the workbench connect, once."""
        if not self._connected:
            self._connected = True
            await self.workbench.start()

    async def stop(self) -> None:
        """Lets the workbench go."""
        if self._connected:
            self._connected = False
            await self.workbench.stop()


def _server_parameters(address: ServerAddress) -> Any:
    from autogen_ext.tools.mcp import StdioServerParams, StreamableHttpServerParams

    if address.url:
        return StreamableHttpServerParams(url=address.url, timeout=MCP_TIMEOUT, sse_read_timeout=MCP_TIMEOUT)
    program, *arguments = address.command
    return StdioServerParams(command=program, args=arguments, read_timeout_seconds=MCP_TIMEOUT)

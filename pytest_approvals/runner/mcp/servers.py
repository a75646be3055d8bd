"""MCP servers made from Python functions, for either major release of the SDK.

Every agent object has servers of its own, at addresses that its blueprint names; what they execute is executed in its
worlds. They run in this process, whatever process and language the agent is in, so an adapter only connects.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from pytest_approvals.agent_side.contract.exceptions import Elicits
from pytest_approvals.agent_side.contract.types import ElicitationAnswer, Parameter, ServerAddress, ToolSpec
from pytest_approvals.runner.mcp.arguments import find_argument_errors
from pytest_approvals.runner.mcp.host import get_mcp_host

if TYPE_CHECKING:
    from typing import Self

    from pytest_approvals.scenario.model import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerManner:
    """What a server says about a tool, and how it answers calls of it.

    Attributes:
        annotations: `readOnlyHint`, `destructiveHint`, ...
        structured_only: An object is sent as structured content, and not as text beside it.
        misfits_are_errors: Arguments that do not fit are answered with an error of the protocol, and not with a result.
    """

    annotations: Mapping[str, bool] = field(default_factory=dict)
    structured_only: bool = False
    misfits_are_errors: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """One tool of a server.

    Attributes:
        manner: What its server says about it, and how it answers.
        run: Executes a call, given its arguments; what it raises is reported to the client as a failure of the tool. It
            is awaited in the event loop of the servers' thread.
        resume: Goes on with an execution that raised `Elicits`, given the arguments and the client's answer; None if it
            never does.
    """

    name: str
    run: Callable[[Mapping[str, Any]], Awaitable[Any]]
    resume: Callable[[Mapping[str, Any], ElicitationAnswer], Awaitable[Any]] | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    description: str = ""
    manner: ServerManner = ServerManner()

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": {name: _parameter_schema(parameter) for name, parameter in self.parameters.items()},
            "required": [name for name, parameter in self.parameters.items() if parameter.required],
        }


def _parameter_schema(parameter: Parameter) -> dict[str, Any]:
    if parameter.required:
        return {"type": parameter.type}
    return {"type": parameter.type, "default": parameter.default}


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAddress:
    """Address of a server; a client takes either of the two forms.

    Attributes:
        url: For streamable HTTP.
        command: For stdio: the program to start, and its arguments.
    """

    url: str
    command: tuple[str, ...]


def build_manner(tool: Tool) -> ServerManner:
    """Return how a server is to answer calls of a scenario's tool."""
    return ServerManner(
        annotations=tool.annotations,
        structured_only=tool.structured_only,
        misfits_are_errors=tool.misfits_are_errors,
    )


class McpServers:
    """Servers that belong together, such as those of one run; they end together."""

    def __init__(self) -> None:
        self._keys: list[str] = []

    def open(self, name: str, tools: Iterable[McpTool]) -> McpAddress:
        """Serve *tools* as the server called *name*.

        Raises:
            UsageError: The MCP SDK is not installed.
        """
        host = get_mcp_host()
        key = host.add(build_sdk_server(name, tuple(tools)))
        self._keys.append(key)
        # -I: the client's folder and PYTHON* variables must not change what the bridge imports.
        bridge = Path(__file__).with_name("stdio_bridge.py")
        return McpAddress(
            url=f"http://127.0.0.1:{host.http_port}/{key}/mcp",
            command=(sys.executable, "-I", str(bridge), "--connect", f"127.0.0.1:{host.stdio_port}/{key}"),
        )

    def close(self) -> None:
        """End all servers and the connections to them; calls that still run are cancelled."""
        while self._keys:
            get_mcp_host().remove(self._keys.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def build_sdk_server(name: str, tools: Sequence[McpTool]) -> Any:
    """Return the SDK's server called *name*, which offers *tools*."""
    from mcp import types
    from mcp.server.lowlevel import Server

    by_name = {tool.name: tool for tool in tools}

    async def list_tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(_tool_to_dict(tool)) for tool in tools])

    async def call_tool(context: Any, params: Any) -> Any:
        answer = _parse_input_response(params)
        try:
            return await _answer_call(by_name, params, answer)
        except Elicits as question:
            # Since the specification of 2026-07-28 a server does not send requests: it answers the call with its
            # question, and the client repeats the call with the answer.
            if _has_no_requests(context):
                return _build_input_request(question)
            answer = await _ask_client(context, question)
        return await _answer_call(by_name, params, answer)

    # mcp 2 takes handlers as arguments; mcp 1 has decorators, which validate input, so its handlers are set directly.
    if not hasattr(Server, "list_tools"):
        return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)
    server: Any = Server(name)
    result: Any = getattr(types, "ServerResult")  # noqa: B009 - the later release has no such name

    async def answer_list(_: Any) -> Any:
        return result(await list_tools())

    async def answer_call(request: Any) -> Any:
        return result(await call_tool(server.request_context, request.params))

    server.request_handlers[types.ListToolsRequest] = answer_list
    server.request_handlers[types.CallToolRequest] = answer_call
    return server


def _tool_to_dict(tool: McpTool) -> dict[str, Any]:
    annotations = {"annotations": dict(tool.manner.annotations)} if tool.manner.annotations else {}
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.schema, **annotations}


async def _answer_call(tools: Mapping[str, McpTool], params: Any, answer: ElicitationAnswer | None) -> Any:
    from mcp import types

    result = await _call_tool(tools, params.name, params.arguments or {}, answer)
    return types.CallToolResult.model_validate(result)


async def _call_tool(
    tools: Mapping[str, McpTool], name: str, arguments: Mapping[str, Any], answer: ElicitationAnswer | None = None
) -> dict[str, Any]:
    """Execute a call, or go on with it; a failure is a result too, which is how servers report it to the model.

    Arguments that do not fit the schema are such a failure, as the specification of 2025-11-25 says, and run nothing.
    Earlier ones did not say it, so that servers answer with an error of the protocol, too.

    Raises:
        Elicits: The tool asks the caller, and goes on with an *answer*.
        Exception: The SDK's error that is answered as one of the protocol.
    """
    if name not in tools:
        return _text_result(f"Unknown tool: {name}", failed=True)
    error = next(find_argument_errors(arguments, tools[name].parameters), None)
    if error is not None and tools[name].manner.misfits_are_errors:
        raise _build_protocol_error(INVALID_PARAMS, f"Input validation error: {error}")
    if error is not None:
        return _text_result(f"Input validation error: {error}", failed=True)
    try:
        resume = tools[name].resume
        value = await (tools[name].run(arguments) if answer is None or resume is None else resume(arguments, answer))
    except Elicits:
        raise
    except Exception as error:
        return _text_result(str(error), failed=True)
    result = _text_result(value if isinstance(value, str) else json.dumps(value), failed=False)
    if not isinstance(value, Mapping):
        return result
    # An object is structured content, whose JSON is the text for clients that do not read it.
    content = [] if tools[name].manner.structured_only else result["content"]
    return {**result, "content": content, "structuredContent": dict(value)}


INVALID_PARAMS = -32602
"""The code of JSON-RPC for parameters that are not valid."""


def _build_protocol_error(code: int, message: str) -> Exception:
    from mcp import types
    from mcp.shared import exceptions

    # mcp 2 takes the fields of an error, mcp 1 the error.
    if hasattr(exceptions, "MCPError"):
        made: Exception = exceptions.MCPError(code, message)
        return made
    error: Any = getattr(exceptions, "McpError")  # noqa: B009 - the later release has no such name
    built: Exception = error(types.ErrorData(code=code, message=message))
    return built


def _text_result(text: str, *, failed: bool) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": failed}


# --- what a server asks the caller ----------------------------------------------------------------------------------
#
# Until the specification of 2025-11-25 the server sends the client a request in the middle of a call. Since that of
# 2026-07-28 it answers the call with `input_required`, and the client repeats the call with the answer.

_KEY = "question"
"""The server's own name of the one question in a result."""


def _has_no_requests(context: Any) -> bool:
    """Return whether the protocol of a connection has no requests of servers."""
    try:
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    except ImportError:
        return False
    return getattr(context, "protocol_version", "") in MODERN_PROTOCOL_VERSIONS


async def _ask_client(context: Any, question: Elicits) -> ElicitationAnswer:
    """Send a question to the client in the middle of a call, and return the answer."""
    session, call = context.session, context.request_id
    try:
        if question.url is None:
            result = await session.elicit_form(question.message, question.form or {}, call)
        else:
            result = await session.elicit_url(question.message, question.url, f"e{question.number}", call)
    except Exception as error:
        return ElicitationAnswer(action="refuse", error=str(error), execution=question.number)
    return ElicitationAnswer(action=result.action, content=result.content, execution=question.number)


def _build_input_request(question: Elicits) -> Any:
    """Return the result of a call that asks the client."""
    from mcp import types

    if question.url is None:
        asked: dict[str, Any] = {"mode": "form", "requestedSchema": question.form}
    else:
        asked = {"mode": "url", "url": question.url}
    request = {"method": "elicitation/create", "params": {"message": question.message, **asked}}
    written = {"inputRequests": {_KEY: request}, "requestState": str(question.number)}
    result: Any = getattr(types, "InputRequiredResult")  # noqa: B009 - the earlier release has no such name
    return result.model_validate(written)


def _parse_input_response(params: Any) -> ElicitationAnswer | None:
    """Return the answer with which a client repeats a call; None if the call is a new one."""
    state, responses = getattr(params, "request_state", None), getattr(params, "input_responses", None)
    if state is None or not state.isdigit():
        return None
    result = (responses or {}).get(_KEY)
    if result is None:
        return ElicitationAnswer(action="refuse", error="the call was repeated without an answer", execution=int(state))
    return ElicitationAnswer(action=result.action, content=result.content, execution=int(state))


# --- the servers of a run ---------------------------------------------------------------------------------------------


class ExecuteCall(Protocol):
    """Executes calls in the world of their caller."""

    def __call__(
        self, spec: ToolSpec, arguments: Mapping[str, Any], elicited: ElicitationAnswer | None = None
    ) -> Coroutine[Any, Any, Any]:
        """Execute a call of a tool, or go on with it once it has the answer that it elicited."""


class RunMcpServers:
    """Servers of the tools of kind `mcp` of one run, for all its agent objects.

    Calls are executed in the event loop in which it is made.

    Args:
        transports: The transport of each server, by name; `http` unless it is `stdio`.
        manners: What servers say about tools, and how they answer, by agent, server and name of the tool.
    """

    def __init__(
        self,
        transports: Mapping[str, str] | None = None,
        manners: Mapping[tuple[str, str | None, str], ServerManner] | None = None,
    ) -> None:
        self._servers = McpServers()
        self._manners = dict(manners or {})
        self._transports = transports or {}
        self._loop = asyncio.get_running_loop()

    def open_servers(self, specs: Iterable[ToolSpec], execute: ExecuteCall) -> tuple[ServerAddress, ...]:
        """Serve the tools of an agent object, and return the address of each of its servers.

        Raises:
            UsageError: The MCP SDK is not installed.
        """
        by_server: dict[tuple[str, str], list[ToolSpec]] = {}
        for spec in specs:
            if spec.kind == "mcp":
                by_server.setdefault((spec.agent, spec.server or "server"), []).append(spec)
        return tuple(self._open_server(agent, name, several, execute) for (agent, name), several in by_server.items())

    def annotate(self, key: tuple[str, str | None, str], annotations: Mapping[str, bool]) -> None:
        """Say this about a tool on the servers that are opened from now on."""
        self._manners[key] = replace(self._manners.get(key, ServerManner()), annotations=annotations)

    def close(self) -> None:
        """End all servers."""
        self._servers.close()

    def _open_server(self, agent: str, name: str, specs: Iterable[ToolSpec], execute: ExecuteCall) -> ServerAddress:
        opened = self._servers.open(name, [self._build_tool(spec, execute) for spec in specs])
        if self._transports.get(name) == "stdio":
            return ServerAddress(name=name, agent=agent, command=opened.command)
        return ServerAddress(name=name, agent=agent, url=opened.url)

    def _build_tool(self, spec: ToolSpec, execute: ExecuteCall) -> McpTool:
        async def execute_in_run(arguments: Mapping[str, Any], elicited: ElicitationAnswer | None = None) -> Any:
            # Servers have a thread of their own, but worlds belong to the event loop of their run.
            executing = execute(spec, arguments) if elicited is None else execute(spec, arguments, elicited)
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(executing, self._loop))

        return McpTool(
            name=spec.name,
            run=execute_in_run,
            resume=execute_in_run,
            parameters=spec.parameters,
            description=spec.description,
            manner=self._manners.get((spec.agent, spec.server, spec.name), ServerManner()),
        )

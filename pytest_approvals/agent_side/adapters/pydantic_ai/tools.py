"""Tools built from tool specs: their bodies, gates and schemas, tools of MCP servers, and tools that run agents.

Ungated tools and those that always wait are plain function tools (`requires_approval`); those that wait on a condition
are in a toolset of their own with `approval_required(predicate)`. In the flavour `raised` the body asks instead, by
raising `ApprovalRequired` unless `ctx.tool_call_approved`.

Agents that run inside a tool follow the framework's recipe for delegation with approvals, as it has no nested approvals
of its own: a delegating tool runs the inner agent; if that pauses, the tool raises `ApprovalRequired` with the inner
requests and the inner history as metadata, which surface with the outer call's request. On resume the tool finds the
answers, again with that history, in `ctx.tool_call_metadata`. So nothing is kept outside of what the caller keeps: the
requests and, handed back, the results.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from inspect import Parameter as Argument
from typing import Any

from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, RunContext, Tool, ToolOutput
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from ...contract import (
    AsksAgain,
    Condition,
    Parameter,
    ServerAddress,
    ToolSpec,
    needs_approval_by_annotations,
)
from ...kit.clients import MCP_TIMEOUT, answer_elicitation, split_command
from ...kit.context import current_world
from ...kit.tool_schema import (
    HashableParameters,
    build_fields_model,
    set_signature,
    to_signature_parameters,
)
from .messages import ANSWER_TOOL, list_renamed_tools
from .state import REQUESTS_ADAPTER, RESULTS_ADAPTER

Body = Callable[..., Coroutine[Any, Any, Any]]


def build_function_schema(spec: ToolSpec, body: Body) -> Any:
    """Return the framework's schema of the tool: made once for equal parameters, with this tool's own *body*."""
    return replace(_build_schema(spec.name, spec.description, HashableParameters(spec.parameters)), function=body)


def build_answer_type(fields: Mapping[str, Parameter]) -> Any:
    """Return the type of a structured answer with *fields*, as a user would have written it."""
    return ToolOutput(build_fields_model("Answer", fields), name=ANSWER_TOOL)


@lru_cache(maxsize=1024)
def _build_schema(name: str, description: str, fields: HashableParameters) -> Any:
    async def body(ctx: RunContext[None], **arguments: Any) -> Any:
        raise NotImplementedError

    # The name must not clash with a parameter of the tool that is called `ctx`.
    context = Argument("ctx_", Argument.POSITIONAL_ONLY, annotation=RunContext[None])
    set_signature(body, context, *to_signature_parameters(fields.parameters))
    return Tool(body, takes_ctx=True, name=name, description=description).function_schema


DELEGATED_KEY = "delegated"
"""The key in the metadata of a call that runs an agent, below which its requests and history are kept."""


def build_delegate_body(agents: Mapping[str, Agent[None, Any]], name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return the body of a tool that runs the agent called *name*, one of *agents* by the time it is called."""

    async def body(ctx: RunContext[None], **arguments: str) -> Any:
        paused = (ctx.tool_call_metadata or {}).get(DELEGATED_KEY) if ctx.tool_call_approved else None
        options = {"user_prompt": arguments["input"]} if paused is None else _build_resume_options(paused)
        result = await agents[name].run(**options)
        if isinstance(result.output, DeferredToolRequests):
            raise ApprovalRequired(metadata={DELEGATED_KEY: _write_paused_agent(name, result)})
        return result.output

    return body


def _write_paused_agent(name: str, result: Any) -> dict[str, Any]:
    """Return what the inner agent waits for, as JSON data: it must survive when the requests are stored."""
    return {
        "agent": name,
        "requests": REQUESTS_ADAPTER.dump_python(result.output, mode="json"),
        "history": ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json"),
    }


def _build_resume_options(paused: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "message_history": ModelMessagesTypeAdapter.validate_python(paused["history"]),
        "deferred_tool_results": read_inner_results(paused),
    }


def read_inner_results(paused: Mapping[str, Any]) -> DeferredToolResults:
    """Return the answers to the inner requests; they are JSON data after they were staged and stored."""
    results = paused["results"]
    return results if isinstance(results, DeferredToolResults) else RESULTS_ADAPTER.validate_python(results)


def build_toolsets(
    specs: Sequence[ToolSpec], agents: Mapping[str, Agent[None, Any]], *, raised: bool
) -> list[AbstractToolset[None]]:
    """Return the toolsets of one agent's functions: the plain ones, and those that wait on a condition."""
    own = [spec for spec in specs if spec.kind == "function"]
    conditional = [spec for spec in own if isinstance(spec.approval, Condition) and not raised]
    plain = [spec for spec in own if spec not in conditional]
    toolsets: list[AbstractToolset[None]] = [
        FunctionToolset([_build_tool(spec, agents, raised=raised) for spec in plain])
    ]
    if conditional:
        gated = FunctionToolset([_build_tool(spec, agents, raised=False) for spec in conditional])
        toolsets.append(gated.approval_required(_build_policy(conditional)))
    return toolsets


def build_mcp_toolsets(
    specs: Sequence[ToolSpec], addresses: Sequence[ServerAddress], *, with_ids: bool
) -> list[AbstractToolset[None]]:
    """Return the toolsets of one agent's MCP servers, with the tools renamed that share a name."""
    if not addresses:
        return []
    toolsets = {
        address.name: _build_mcp_toolset(
            address, [spec for spec in specs if spec.server == address.name], with_id=with_ids
        )
        for address in addresses
    }
    names = {(tool, server): name for name, tool, server in list_renamed_tools(specs)}
    return [
        # Outside of the gate, whose policy knows the tools by the names that the server gives them.
        toolset.renamed({names[key]: key[0] for key in names if key[1] == server})
        for server, toolset in toolsets.items()
    ]


def _build_policy(specs: Sequence[ToolSpec]) -> Callable[[RunContext[None], Any, dict[str, Any]], bool]:
    by_name = {spec.name: spec for spec in specs}

    def needs_approval(ctx: RunContext[None], definition: Any, arguments: dict[str, Any]) -> bool:
        spec = by_name[definition.name]
        if spec.by_annotations:
            return needs_approval_by_annotations((definition.metadata or {}).get("annotations"))
        if not isinstance(spec.approval, Condition):
            return spec.approval == "always"
        return current_world().gate(spec.name, arguments, ctx.tool_call_id, agent=spec.agent)

    return needs_approval


def _build_tool(spec: ToolSpec, agents: Mapping[str, Agent[None, Any]], *, raised: bool) -> Tool[None]:
    body = build_delegate_body(agents, spec.runs) if spec.runs else _build_body(spec)
    if raised and spec.approval != "never":
        body = _build_asking_body(spec, body)
    return Tool(
        body,
        takes_ctx=True,
        name=spec.name,
        description=spec.description,
        requires_approval=spec.approval == "always" and not raised,
        function_schema=build_function_schema(spec, body),
    )


def _build_body(spec: ToolSpec) -> Body:
    async def body(ctx: RunContext[None], **arguments: Any) -> Any:
        try:
            return await current_world().run(spec.name, arguments, ctx.tool_call_id, agent=spec.agent)
        except AsksAgain as asked:
            raise ApprovalRequired from asked

    return body


def _build_asking_body(spec: ToolSpec, inner: Body) -> Body:
    async def body(ctx: RunContext[None], **arguments: Any) -> Any:
        if not ctx.tool_call_approved and await _needs_approval(spec, ctx, arguments):
            raise ApprovalRequired
        return await inner(ctx, **arguments)

    return body


async def _needs_approval(spec: ToolSpec, ctx: RunContext[None], arguments: dict[str, Any]) -> bool:
    if spec.approval == "always":
        return True
    return await current_world().gate_slowly(spec.name, arguments, ctx.tool_call_id, agent=spec.agent)


# --- MCP servers ------------------------------------------------------------------------------------------------------


def _build_mcp_toolset(address: ServerAddress, specs: Sequence[ToolSpec], *, with_id: bool) -> Any:
    """Return the toolset of the server at *address*, which offers the tools *specs*, with their gates.

    The framework connects for the time of a run. A server is not told the id of a call.
    """
    from pydantic_ai.mcp import MCPToolset

    # With a handler, a toolset warns on each connection of the newest protocol that it is never called, though it is.
    handler: Any = _answer_elicitation if any(spec.elicits for spec in specs) else None
    # By the id, the steps of a workflow are told apart.
    options: dict[str, Any] = {"id": address.name} if with_id else {}
    toolset: Any = MCPToolset(
        address.url or _build_transport(address), read_timeout=MCP_TIMEOUT, elicitation_handler=handler, **options
    )
    return toolset.approval_required(_build_policy(specs))


async def _answer_elicitation(message: str, response_type: Any, params: Any, context: Any) -> Any:
    from fastmcp.client.elicitation import ElicitResult

    asked = await answer_elicitation(current_world(), params)
    content = None if asked.content is None else dict(asked.content)
    return ElicitResult.model_validate({"action": asked.action, "content": content})


def _build_transport(address: ServerAddress) -> Any:
    from fastmcp.client.transports import StdioTransport

    program, arguments = split_command(address)
    # By default the process of the server outlives the connection.
    return StdioTransport(program, arguments, keep_alive=False)

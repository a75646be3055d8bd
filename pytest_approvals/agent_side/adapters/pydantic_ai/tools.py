"""
Tools and agents made from a blueprint.

Ungated tools and those that always wait are plain function tools (`requires_approval`); those that wait on a condition
stand in a toolset of their own with `approval_required(predicate)`. In the flavour `raised` the body asks instead, by
raising `ApprovalRequired` unless `ctx.tool_call_approved`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, RunContext, Tool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from pytest_approvals.agent_side.contract import MAIN, AsksAgain, Blueprint, Condition, ServerAddress, ToolSpec

from .model import RUNNING, scripted
from .naming import renamed
from .nested import delegate
from .reached import reached
from .schemas import Body, answer_type, schema_for


def build(blueprint: Blueprint, *, raised: bool = False, capabilities: Sequence[Any] = ()) -> Agent[None, Any]:
    """
    Gives the main agent, which knows the others through its tools.

    Arguments:
        raised: The bodies of gated tools ask, not their definitions.
        capabilities: What the main agent has besides.
    """
    specs, answer, model = blueprint.tools, blueprint.answer, blueprint.model
    agents: dict[str, Agent[None, Any]] = {}
    for name in {
        MAIN: None,
        **{spec.agent: None for spec in specs},
        **{spec.runs: None for spec in specs if spec.runs},
    }:
        own = [spec for spec in specs if spec.agent == name]
        extra: dict[str, Any] = {"capabilities": list(capabilities)} if capabilities and name == MAIN else {}
        agents[name] = Agent(
            reached(name, model) if model is not None else scripted(name, renamed(own)),
            name=name,
            output_type=[answer_type(answer) if answer and name == MAIN else str, DeferredToolRequests],
            toolsets=[
                *_toolsets(own, agents, raised=raised),
                *_servers(own, [one for one in blueprint.servers if one.agent == name]),
            ],
            **extra,
        )
    return agents[MAIN]


def _toolsets(
    specs: Sequence[ToolSpec], agents: Mapping[str, Agent[None, Any]], *, raised: bool
) -> list[AbstractToolset[None]]:
    own = [spec for spec in specs if spec.kind == "function"]
    conditional = [spec for spec in own if isinstance(spec.approval, Condition) and not raised]
    plain = [spec for spec in own if spec not in conditional]
    toolsets: list[AbstractToolset[None]] = [FunctionToolset([_tool(spec, agents, raised=raised) for spec in plain])]
    if conditional:
        gated = FunctionToolset([_tool(spec, agents, raised=False) for spec in conditional])
        toolsets.append(gated.approval_required(_policy(conditional)))
    return toolsets


def _servers(specs: Sequence[ToolSpec], addresses: Sequence[ServerAddress]) -> list[AbstractToolset[None]]:
    if not addresses:
        return []
    from .servers import toolset

    made = {one.name: toolset(one, _policy([spec for spec in specs if spec.server == one.name])) for one in addresses}
    names = {(tool, server): name for name, tool, server in renamed(specs)}
    return [one.renamed({names[key]: key[0] for key in names if key[1] == server}) for server, one in made.items()]


def _policy(specs: Sequence[ToolSpec]) -> Callable[[RunContext[None], Any, dict[str, Any]], bool]:
    by_name = {spec.name: spec for spec in specs}

    def needs_approval(ctx: RunContext[None], definition: Any, arguments: dict[str, Any]) -> bool:
        spec = by_name[definition.name]
        if not isinstance(spec.approval, Condition):
            return spec.approval == "always"
        return RUNNING.get().gate(spec.name, arguments, ctx.tool_call_id, agent=spec.agent)

    return needs_approval


def _tool(spec: ToolSpec, agents: Mapping[str, Agent[None, Any]], *, raised: bool) -> Tool[None]:
    body = delegate(agents, spec.runs) if spec.runs else _run(spec)
    if raised and spec.approval != "never":
        body = _asking(spec, body)
    return Tool(
        body,
        takes_ctx=True,
        name=spec.name,
        description=spec.description,
        requires_approval=spec.approval == "always" and not raised,
        function_schema=schema_for(spec, body),
    )


def _run(spec: ToolSpec) -> Body:
    async def body(ctx: RunContext[None], **arguments: Any) -> Any:
        try:
            return await RUNNING.get().run(spec.name, arguments, ctx.tool_call_id, agent=spec.agent)
        except AsksAgain as asked:
            raise ApprovalRequired from asked

    return body


def _asking(spec: ToolSpec, inner: Body) -> Body:
    async def body(ctx: RunContext[None], **arguments: Any) -> Any:
        if not ctx.tool_call_approved and await _gated(spec, ctx, arguments):
            raise ApprovalRequired
        return await inner(ctx, **arguments)

    return body


async def _gated(spec: ToolSpec, ctx: RunContext[None], arguments: dict[str, Any]) -> bool:
    if spec.approval == "always":
        return True
    return await RUNNING.get().gate_slowly(spec.name, arguments, ctx.tool_call_id, agent=spec.agent)

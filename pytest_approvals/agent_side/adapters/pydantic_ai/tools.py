"""
Tools and agents made from a blueprint.

Ungated tools and those that always wait are plain function tools (`requires_approval`); those that wait on a condition
stand in a toolset of their own with `approval_required(predicate)`. In the flavour `raised` the body asks instead, by
raising `ApprovalRequired` unless `ctx.tool_call_approved`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from inspect import Parameter, Signature
from typing import Any

from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, RunContext, Tool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from pytest_approvals.agent_side.contract import MAIN, AsksAgain, Condition, ToolSpec

from .model import RUNNING, scripted
from .nested import delegate

Body = Callable[..., Coroutine[Any, Any, Any]]

TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
    "null": None,
}


def build(specs: Sequence[ToolSpec], *, raised: bool = False, capabilities: Sequence[Any] = ()) -> Agent[None, Any]:
    """
    Gives the main agent, which knows the others through its tools.

    Arguments:
        raised: The bodies of gated tools ask, not their definitions.
        capabilities: What the main agent has besides.
    """
    agents: dict[str, Agent[None, Any]] = {}
    for name in {
        MAIN: None,
        **{spec.agent: None for spec in specs},
        **{spec.runs: None for spec in specs if spec.runs},
    }:
        own = [spec for spec in specs if spec.agent == name]
        extra: dict[str, Any] = {"capabilities": list(capabilities)} if capabilities and name == MAIN else {}
        agents[name] = Agent(
            scripted(name),
            name=name,
            output_type=[str, DeferredToolRequests],
            toolsets=_toolsets(own, agents, raised=raised),
            **extra,
        )
    return agents[MAIN]


def _toolsets(
    specs: Sequence[ToolSpec], agents: Mapping[str, Agent[None, Any]], *, raised: bool
) -> list[AbstractToolset[None]]:
    conditional = [spec for spec in specs if isinstance(spec.approval, Condition) and not raised]
    plain = [spec for spec in specs if spec not in conditional]
    toolsets: list[AbstractToolset[None]] = [FunctionToolset([_tool(spec, agents, raised=raised) for spec in plain])]
    if conditional:
        gated = FunctionToolset([_tool(spec, agents, raised=False) for spec in conditional])
        toolsets.append(gated.approval_required(_policy({spec.name: spec for spec in conditional})))
    return toolsets


def _policy(specs: Mapping[str, ToolSpec]) -> Callable[[RunContext[None], Any, dict[str, Any]], bool]:
    def needs_approval(ctx: RunContext[None], definition: Any, arguments: dict[str, Any]) -> bool:
        spec = specs[definition.name]
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
        function_schema=_schema_for(spec, body),
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


# --- schemas ----------------------------------------------------------------------------------------------------------


def _schema_for(spec: ToolSpec, body: Body) -> Any:
    """Gives the framework's schema of the tool: made once for equal parameters, with this tool's own *body*."""
    parameters = tuple(
        (name, parameter.type, parameter.required, json.dumps(parameter.default))
        for name, parameter in spec.parameters.items()
    )
    return replace(_schema(spec.name, spec.description, parameters), function=body)


@lru_cache(maxsize=1024)
def _schema(name: str, description: str, parameters: tuple[tuple[str, str, bool, str], ...]) -> Any:
    async def body(ctx: RunContext[None], **arguments: Any) -> Any:
        raise NotImplementedError

    context = Parameter("ctx_", Parameter.POSITIONAL_ONLY, annotation=RunContext[None])
    body.__signature__ = Signature([context, *(_parameter(*each) for each in parameters)])  # type: ignore[attr-defined]
    body.__annotations__ = {"ctx_": RunContext[None], **{each[0]: TYPES.get(each[1], Any) for each in parameters}}
    return Tool(body, takes_ctx=True, name=name, description=description).function_schema


def _parameter(name: str, kind: str, required: bool, default: str) -> Parameter:
    value = Parameter.empty if required else json.loads(default)
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=TYPES.get(kind, Any), default=value)

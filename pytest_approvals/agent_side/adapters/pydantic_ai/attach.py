"""
A person's own agent: probes around its tools, and the scripted model in its place.

Nothing of the agent is changed; the framework's own `override` puts both in for the time of a run. The probes stand
around the innermost toolsets, inside of everything that gates, filters or renames, so that only the entering of a
tool's body counts as an execution. A body that raises `ApprovalRequired` asks; a stub stands for the whole body, with
a gate that is written into it.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pydantic_ai import ApprovalRequired, RunContext, RunUsage
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.toolsets import AbstractToolset, ApprovalRequiredToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from pytest_approvals.agent_side.contract import MAIN, AsksAgain, Attachment, Parameter, ToolSpec

from .model import CURRENT_WORLD, build_scripted_model

_CALLED_NAME: ContextVar[str] = ContextVar("name under which the model called the tool")


def resolve_agent(subject: Any) -> AbstractAgent[Any, Any]:
    """Gives the person's agent: the object itself, or what their factory makes with the scripted model."""
    agent: AbstractAgent[Any, Any] = (
        subject if isinstance(subject, AbstractAgent) else subject(build_scripted_model(MAIN))
    )
    return agent


class AgentProbes:
    """The probes around the tools of one agent."""

    def __init__(self, agent: AbstractAgent[Any, Any], attachment: Attachment) -> None:
        self._agent = agent
        self._deps = attachment.run_options.get("deps")
        self._toolsets = list(agent.toolsets)
        self._probed = [_probe_toolset(toolset, attachment.stubs) for toolset in self._toolsets]

    @contextmanager
    def around(self) -> Iterator[None]:
        """Within, the agent runs with the scripted model and through the probes."""
        with self._agent.override(model=build_scripted_model(MAIN), toolsets=self._probed, tools=[]):
            yield

    def specs(self) -> tuple[ToolSpec, ...]:
        """
        The tools that the agent has, with `always` for those that the framework marks as waiting for approval.

        A policy of the person's own, in a predicate or in a body, cannot be read; such tools stand here as ungated.
        What only a running toolset can tell (that of an MCP server, say) is left out.
        """
        context = RunContext(deps=self._deps, model=build_scripted_model(MAIN), usage=RunUsage())
        found = {}
        for toolset in filter(_lists_without_connecting, self._toolsets):
            for name, tool in (_run_without_waiting(toolset.get_tools(context)) or {}).items():
                found[name] = _to_spec(name, tool, gated=_is_always_gated(toolset))
        return tuple(found.values())


# --- probes -----------------------------------------------------------------------------------------------------------


@dataclass
class _NameProbe(WrapperToolset[Any]):
    """Keeps the name under which the model called a tool, which renaming toolsets hide from those inside."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        token = _CALLED_NAME.set(name)
        try:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        finally:
            _CALLED_NAME.reset(token)


@dataclass
class _BodyProbe(WrapperToolset[Any]):
    """Runs the bodies of its tools through the world."""

    stubs: frozenset[str]

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        asked: list[ApprovalRequired] = []

        async def real() -> Any:
            try:
                return await self.wrapped.call_tool(name, tool_args, ctx, tool)
            except ApprovalRequired as required:
                asked.append(required)
                raise AsksAgain from required

        called = _CALLED_NAME.get()
        try:
            return await CURRENT_WORLD.get().run(
                called, tool_args, ctx.tool_call_id, real=None if called in self.stubs else real
            )
        except AsksAgain as again:
            raise (asked[0] if asked else ApprovalRequired()) from again


def _probe_toolset(toolset: AbstractToolset[Any], stubs: frozenset[str]) -> AbstractToolset[Any]:
    return _NameProbe(toolset.visit_and_replace(lambda inner: _BodyProbe(inner, stubs)))


# --- what the agent has -----------------------------------------------------------------------------------------------


def _lists_without_connecting(toolset: AbstractToolset[Any]) -> bool:
    """Whether nothing has to be connected for the toolset to list its tools."""
    inner: list[AbstractToolset[Any]] = []
    toolset.apply(inner.append)
    return all(type(leaf).__aenter__ is AbstractToolset.__aenter__ for leaf in inner)


def _run_without_waiting(answer: Coroutine[Any, Any, Any]) -> Any:
    """Gives the answer of a coroutine that does not wait for anything; None for one that does."""
    try:
        answer.send(None)
    except StopIteration as end:
        return end.value
    answer.close()
    return None


def _is_always_gated(toolset: AbstractToolset[Any]) -> bool:
    while isinstance(toolset, WrapperToolset):
        if isinstance(toolset, ApprovalRequiredToolset) and _gates_every_call(toolset):
            return True
        toolset = toolset.wrapped
    return False


def _gates_every_call(toolset: ApprovalRequiredToolset[Any]) -> bool:
    """Its policy is the framework's own default, which says yes to every call."""
    return toolset.approval_required_func.__module__.partition(".")[0] == "pydantic_ai"


def _to_spec(name: str, tool: ToolsetTool[Any], *, gated: bool) -> ToolSpec:
    definition = tool.tool_def
    schema = definition.parameters_json_schema
    return ToolSpec(
        name=name,
        description=definition.description or "",
        parameters=_to_parameters(schema.get("properties", {}), schema.get("required", ())),
        approval="always" if gated or definition.kind == "unapproved" else "never",
    )


def _to_parameters(properties: dict[str, Any], required: Sequence[str]) -> dict[str, Parameter]:
    return {
        name: Parameter(type=_to_type(schema), required=name in required, default=schema.get("default"))
        for name, schema in properties.items()
    }


def _to_type(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "object")
    return kind if isinstance(kind, str) else kind[0]

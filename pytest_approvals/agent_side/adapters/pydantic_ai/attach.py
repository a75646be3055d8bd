"""A user's own agent, with probes around its tools and the scripted model in place of its own.

Nothing of the agent is changed; the framework's own `override` puts both in for the time of a run. The probes wrap the
innermost toolsets, inside of everything that gates, filters or renames, so that only entering a tool's body counts as
an execution. A body that raises `ApprovalRequired` asks; a stub replaces the whole body, including a gate inside it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, cast

from pydantic_ai import ApprovalRequired, CallDeferred, RunContext, RunUsage, toolsets
from pydantic_ai.agent import AbstractAgent, Agent
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset, ApprovalRequiredToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import to_jsonable_python

from ...contract import MAIN, AsksAgain, Attachment, ToolSpec
from ...kit.context import current_world
from ...kit.probes import Undo, patch_shared
from ...kit.tool_schema import describe_arguments, read_parameters, show_place
from .messages import read_arguments
from .model import MODEL_NAME, build_scripted_model

_CALLED_NAME: ContextVar[str] = ContextVar("name under which the model called the tool")


def resolve_agent(subject: Any) -> AbstractAgent[Any, Any]:
    """Return the user's agent: the object itself, or what their factory makes with the scripted model."""
    agent: AbstractAgent[Any, Any] = (
        subject if isinstance(subject, AbstractAgent) else subject(build_scripted_model(MAIN))
    )
    return agent


class AgentProbes:
    """Probes around the tools of one agent."""

    def __init__(self, agent: AbstractAgent[Any, Any], attachment: Attachment) -> None:
        self._agent = agent
        self._attachment = attachment
        self._deps = attachment.run_options.get("deps")
        self._toolsets = list(agent.toolsets)
        self._probed = [_probe_toolset(toolset, attachment) for toolset in self._toolsets]

    @contextmanager
    def use(self) -> Iterator[None]:
        """Let the agent run with the scripted model and through the probes inside the block."""
        # The toolsets include the agent's own function tools: `tools=[]` keeps them from being there twice.
        undo = _probe_inner_agents(self._attachment)
        try:
            with self._agent.override(model=build_scripted_model(MAIN), toolsets=self._probed, tools=[]):
                yield
        finally:
            undo()

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the agent's tools, with `always` for those that the framework marks as waiting for approval.

        A policy of the user's own, in a predicate, a body or a handler, cannot be read: its tools are listed ungated.
        Tools that only a running toolset can list (that of an MCP server, for example) are left out.
        """
        context = RunContext(deps=self._deps, model=build_scripted_model(MAIN), usage=RunUsage())
        specs = {}
        # What a handler of the application approves within the run, nobody else is asked about.
        answers_itself = _has_handler(self._agent)
        for toolset in filter(_lists_without_connecting, self._toolsets):
            for name, tool in (_run_without_waiting(toolset.get_tools(context)) or {}).items():
                gated = _is_always_gated(toolset) or tool.tool_def.kind == "unapproved"
                specs[name] = _to_spec(name, tool, gated=gated and not answers_itself, guarded=answers_itself)
        return tuple(specs.values())

    def edits_history(self) -> bool:
        """Return whether a capability of the user's may change what the model is told of earlier turns."""
        return any(map(_may_edit, _list_capabilities(self._agent)))


# --- agents inside tools ----------------------------------------------------------------------------------------------

_IN_BODY: ContextVar[Attachment | None] = ContextVar("user agent in the body of whose tool this is", default=None)


def _probe_inner_agents(attachment: Attachment) -> Undo:
    """Let agents that are run in the bodies of tools ask the scripted model, through probes around their tools.

    Nothing leads from an agent to those that its tools run, so the one method that all runs go through is replaced.
    """
    return patch_shared(Agent, lambda: {"iter": _build_probed_iter(Agent.iter)}, place=setattr)


def _build_probed_iter(original: Callable[..., Any]) -> Callable[..., Any]:
    @asynccontextmanager
    async def probed(agent: Agent[Any, Any], *positional: Any, **named: Any) -> AsyncIterator[Any]:
        attachment = _IN_BODY.get()
        if attachment is None or not _asks_script(agent, named.get("model"), attachment):
            async with original(agent, *positional, **named) as run:
                yield run
            return
        toolsets = [_probe_toolset(toolset, attachment, agent.name or "agent") for toolset in agent.toolsets]
        # What the body has entered ends with it: the tools of the inner agent are entered anew.
        token = _IN_BODY.set(None)
        try:
            model = build_scripted_model(agent.name or "agent")
            with agent.override(model=model, toolsets=toolsets, tools=[]):
                async with original(agent, *positional, **named) as run:
                    yield run
        finally:
            _IN_BODY.reset(token)

    return probed


def _asks_script(agent: Agent[Any, Any], model: Any, attachment: Attachment) -> bool:
    """Return whether an agent in a body takes its replies from the script, and not from a test model of its own."""
    chosen = model or agent.model
    is_own_test_model = isinstance(chosen, (TestModel, FunctionModel)) and chosen.model_name != MODEL_NAME
    return agent.name in attachment.scripted or not is_own_test_model


# --- probes -----------------------------------------------------------------------------------------------------------


@dataclass
class _NameProbe(WrapperToolset[Any]):
    """Outer probe: keeps the name under which the model called a tool, which renaming toolsets hide inside."""

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
    """Inner probe: runs the bodies of its tools through the world."""

    attachment: Attachment
    agent: str = MAIN

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        asked: list[ApprovalRequired | CallDeferred] = []

        async def real() -> Any:
            token = _IN_BODY.set(self.attachment)
            try:
                return await self.wrapped.call_tool(name, tool_args, ctx, tool)
            except (ApprovalRequired, CallDeferred) as required:
                asked.append(required)
                raise AsksAgain from required
            finally:
                _IN_BODY.reset(token)

        # A stub and the world go by the name that the model used, not by the one that this toolset has for the tool.
        called = _CALLED_NAME.get()
        is_stub = called in self.attachment.stubs
        try:
            return await current_world().run(
                called,
                _describe(tool, tool_args, ctx),
                ctx.tool_call_id,
                agent=self.agent,
                real=None if is_stub else real,
            )
        except AsksAgain as again:
            # The exception of the body may hold metadata, which the answer brings back.
            raise (asked[0] if asked else ApprovalRequired()) from again


def _describe(tool: ToolsetTool[Any], arguments: dict[str, Any], context: RunContext[Any]) -> dict[str, Any]:
    """Return the arguments of a body as the model wrote them: its fields, if a model is the only one.

    The framework also takes the one argument by its name, which the schema does not say.
    """
    described: dict[str, Any] = to_jsonable_python(describe_arguments(arguments), fallback=repr)
    only = getattr(getattr(getattr(tool, "call_func", None), "__self__", None), "single_arg_name", None)
    fields = described.get(only) if only is not None and len(described) == 1 else None
    return fields if isinstance(fields, dict) and not _is_named(str(only), context) else described


def _is_named(only: str, context: RunContext[Any]) -> bool:
    """Return whether the model wrote the one argument of its call by name."""
    parts: Iterator[Any] = (part for message in reversed(context.messages) for part in message.parts)
    calls = (part for part in parts if part.part_kind == "tool-call" and part.tool_call_id == context.tool_call_id)
    written = next(map(read_arguments, calls), None)
    return isinstance(written, dict) and list(written) == [only]


def _probe_toolset(toolset: AbstractToolset[Any], attachment: Attachment, agent: str = MAIN) -> AbstractToolset[Any]:
    return _NameProbe(_probe_leaves(toolset, attachment, agent))


def _probe_leaves(toolset: AbstractToolset[Any], attachment: Attachment, agent: str) -> AbstractToolset[Any]:
    def probe(inner: AbstractToolset[Any]) -> AbstractToolset[Any]:
        # Not all releases have them.
        if not isinstance(inner, getattr(toolsets, "DynamicToolset", ())):
            return _BodyProbe(inner, attachment, agent)
        # What its function gives has gates and new names inside of it, too.
        probed: Any = copy(inner)
        probed.toolset_func = _probe_given(probed.toolset_func, attachment, agent)
        return cast("AbstractToolset[Any]", probed)

    return toolset.visit_and_replace(probe)


def _probe_given(function: Callable[..., Any], attachment: Attachment, agent: str) -> Callable[..., Any]:
    """Return a function of the user that gives a toolset, with probes around its tools."""
    probed: dict[int, tuple[Any, AbstractToolset[Any]]] = {}

    async def give(context: RunContext[Any]) -> AbstractToolset[Any] | None:
        given = function(context)
        given = await given if isawaitable(given) else given
        if given is None:
            return None
        # The framework goes on with the same one if it is given again.
        if id(given) not in probed:
            probed.clear()
            probed[id(given)] = given, _probe_leaves(given, attachment, agent)
        return probed[id(given)][1]

    return give


# --- what the agent has -----------------------------------------------------------------------------------------------


def _lists_without_connecting(toolset: AbstractToolset[Any]) -> bool:
    """Return whether the toolset lists its tools without connecting to anything."""
    inner: list[AbstractToolset[Any]] = []
    toolset.apply(inner.append)
    # `__aenter__` is where the framework lets a toolset connect; no attribute says that one does.
    return all(type(leaf).__aenter__ is AbstractToolset.__aenter__ for leaf in inner)


def _run_without_waiting(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that does not wait for anything; None for one that does."""
    try:
        # Tools are listed outside of `async`; a coroutine that waits for nothing ends with its first step.
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    return None


def _is_always_gated(toolset: AbstractToolset[Any]) -> bool:
    while isinstance(toolset, WrapperToolset):
        if isinstance(toolset, ApprovalRequiredToolset) and _gates_every_call(toolset):
            return True
        toolset = toolset.wrapped
    return False


def _has_handler(agent: AbstractAgent[Any, Any]) -> bool:
    """Return whether the agent has a capability that answers deferred calls, such as `HandleDeferredToolCalls`."""
    return any(map(_answers_calls, _list_capabilities(agent)))


def _list_capabilities(agent: AbstractAgent[Any, Any]) -> list[Any]:
    root = getattr(agent, "_root_capability", None)
    found: list[Any] = []
    if root is not None:
        root.apply(found.append)
    return found


_MODEL_HOOKS = ("before_run", "wrap_run", "before_node_run", "before_model_request", "wrap_model_request")


def _may_edit(capability: Any) -> bool:
    from pydantic_ai.capabilities import AbstractCapability, Hooks, ProcessHistory

    if isinstance(capability, Hooks):
        return any(capability._get(name) for name in _MODEL_HOOKS)
    is_own = not type(capability).__module__.startswith("pydantic_ai.")
    return isinstance(capability, ProcessHistory) or (
        is_own and any(_overrides(capability, name, AbstractCapability) for name in _MODEL_HOOKS)
    )


def _overrides(capability: Any, name: str, base: type[Any]) -> bool:
    return getattr(type(capability), name, None) is not getattr(base, name, None)


def _answers_calls(capability: Any) -> bool:
    from pydantic_ai.capabilities import AbstractCapability, Hooks

    method = "handle_deferred_tool_calls"
    if isinstance(capability, Hooks):
        return bool(capability._get(method))
    return _overrides(capability, method, AbstractCapability)


def _gates_every_call(toolset: ApprovalRequiredToolset[Any]) -> bool:
    # Without a policy of the user's own the toolset has the framework's default, which gates every call.
    return toolset.approval_required_func.__module__.partition(".")[0] == "pydantic_ai"


def _to_spec(name: str, tool: ToolsetTool[Any], *, gated: bool, guarded: bool) -> ToolSpec:
    definition = tool.tool_def
    return ToolSpec(
        name=name,
        description=definition.description or "",
        parameters=read_parameters(definition.parameters_json_schema),
        approval="always" if gated else "never",
        # A validator of the user's own refuses calls by what it raises.
        guarded=guarded or getattr(tool, "args_validator_func", None) is not None,
        # The method of a function's schema; tools of a toolset of the user's own have none.
        place=show_place(getattr(getattr(getattr(tool, "call_func", None), "__self__", None), "function", None)),
    )

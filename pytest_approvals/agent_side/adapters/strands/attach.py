"""Attached agents: the scripted model in place of their own, probes around their tools.

An agent holds its model and its tools in attributes. Both are replaced there, also in the agents that its tools run,
and restored when the last session is closed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from copy import copy
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

from pydantic_core import to_jsonable_python
from strands import Agent
from strands.tools.decorator import DecoratedFunctionTool
from strands.types.interrupt import InterruptException
from strands.types.tools import AgentTool

from ...contract import MAIN, Attachment, ToolSpec, Unsupported, WaitsForAnswer
from ...kit.context import current_world
from ...kit.probes import Undo, undo_all
from ...kit.tool_schema import read_effects, read_parameters, show_place
from .agents import AgentGraph
from .model import ScriptedModel


def attach_agents(attachment: Attachment) -> AgentGraph:
    """Build the agent graph of an attached agent, or of those that its factory builds."""
    subject = attachment.subject
    if isinstance(subject, Agent):
        undo = list(_probe_agent(subject, MAIN, attachment))

        def build_main(manager: Any) -> Any:
            _refuse_manager(manager)
            return subject

        return AgentGraph(
            build_main=build_main,
            tools=tuple(_to_specs(subject)),
            options=attachment.run_options,
            release=undo_all(undo),
        )

    def build_from_factory(manager: Any) -> Any:
        _refuse_manager(manager)
        agent = subject(ScriptedModel())
        # Nobody else has this agent, so its probes stay: the functions that undo them are dropped.
        for _ in _probe_agent(agent, MAIN, attachment):
            pass
        return agent

    return AgentGraph(
        build_main=build_from_factory, tools=tuple(_to_specs(subject(ScriptedModel()))), options=attachment.run_options
    )


def _refuse_manager(manager: Any) -> None:
    if manager is not None:
        raise Unsupported("attach", "an agent gets its session manager on construction; give yours one, or use `json`")


# --- finding ----------------------------------------------------------------------------------------------------------


def _to_specs(agent: Any, name: str = MAIN) -> Iterator[ToolSpec]:
    for tool in agent.tool_registry.registry.values():
        inner = getattr(tool, "agent", None)
        if isinstance(inner, Agent):
            yield from _to_specs(inner, tool.tool_name)
        yield ToolSpec(
            name=tool.tool_name,
            description=tool.tool_spec["description"],
            parameters=read_parameters(tool.tool_spec["inputSchema"].get("json")),
            approval="always" if _is_always_asked(agent, tool.tool_name) else "never",
            agent=name,
            runs=tool.tool_name if isinstance(inner, Agent) else None,
            # Tools of MCP servers hold what the server says of them.
            effects=read_effects(getattr(getattr(tool, "mcp_tool", None), "annotations", None)),
            place=show_place(getattr(tool, "_tool_func", type(tool))),
        )


def _is_always_asked(agent: Any, tool: str) -> bool:
    """Return whether the SDK's own intervention asks about the tool.

    Which tools the user's own gate asks about is unknown.
    """
    registry = getattr(agent, "_intervention_registry", None)
    for handler in getattr(registry, "handlers", ()):
        # `HumanInTheLoop` has its settings in private attributes only; a handler without them is another one.
        allowed = getattr(handler, "_allowed_tools", None)
        if allowed is not None and getattr(handler, "_classifier", None) is None:
            return f"!{tool}" in allowed or ("*" not in allowed and tool not in allowed)
    return False


# --- probing ----------------------------------------------------------------------------------------------------------


def _probe_agent(agent: Any, name: str, attachment: Attachment) -> Iterator[Undo]:
    model, tools = agent.model, agent.tool_registry.registry
    before = dict(tools)

    def undo() -> None:
        agent.model = model
        tools.update(before)

    agent.model = ScriptedModel(name)
    yield undo
    for tool in before.values():
        # The tools of `Agent.as_tool` have it.
        inner = getattr(tool, "agent", None)
        if isinstance(inner, Agent) and tool.tool_name not in attachment.stubs:
            yield from _probe_agent(inner, tool.tool_name, attachment)
        else:
            tools[tool.tool_name] = _ProbedTool(tool, name, stub=tool.tool_name in attachment.stubs)


class _ProbedTool(AgentTool):
    """Replacement of a tool that runs it in the world; a stub never runs it."""

    def __init__(self, tool: Any, agent: str, *, stub: bool) -> None:
        super().__init__()
        self._tool = tool
        self._agent = agent
        self._stub = stub

    def __getattr__(self, name: str) -> Any:
        # All other attributes that the framework reads are those of the user's tool.
        # Without `__dict__` this method would call itself forever on an object that is not initialized yet.
        return getattr(self.__dict__["_tool"], name)

    @property
    def tool_name(self) -> str:
        """See `AgentTool.tool_name`."""
        return str(self._tool.tool_name)

    @property
    def tool_spec(self) -> Any:
        """See `AgentTool.tool_spec`."""
        return self._tool.tool_spec

    @property
    def tool_type(self) -> str:
        """See `AgentTool.tool_type`."""
        return str(self._tool.tool_type)

    async def stream(self, tool_use: Any, invocation_state: Any, **options: Any) -> Any:
        """Run the tool in the world; if it asks, the world records the question, not a result."""
        if isinstance(self._tool, DecoratedFunctionTool) and not self._stub:
            async for event in self._probe_body(tool_use["toolUseId"]).stream(tool_use, invocation_state, **options):
                yield event
            return
        # The world returns a value and no events, so the events of the tool are passed on after it.
        events: list[Any] = []

        async def real() -> Any:
            events.extend([event async for event in self._tool.stream(tool_use, invocation_state, **options)])
            if events and _is_question(events[-1]):
                raise WaitsForAnswer("the body asks")
            return _event_text(events[-1]) if events else None

        real_body = None if self._stub else real
        try:
            value = await current_world().run(
                self.tool_name, tool_use["input"], tool_use["toolUseId"], agent=self._agent, real=real_body
            )
        except WaitsForAnswer:
            value = None
        for event in events:
            yield event
        if not events:
            yield _wrap_result(tool_use["toolUseId"], value)

    def _probe_body(self, call_id: str) -> Any:
        """Return a copy of a function's tool whose body the world runs for one call, with validated arguments."""
        tool = self._tool
        body: Any = tool._tool_func
        declared = tool.tool_spec["inputSchema"]["json"].get("properties", {})

        @wraps(body)
        async def run(**kwargs: Any) -> Any:
            questions: list[InterruptException] = []

            async def real() -> Any:
                try:
                    return await _run_body(body, kwargs)
                except InterruptException as question:
                    questions.append(question)
                    raise WaitsForAnswer("the body asks") from question

            # The framework adds what a signature asks for, such as its context.
            declared_arguments = {name: value for name, value in kwargs.items() if name in declared}
            arguments = to_jsonable_python(declared_arguments, fallback=repr)
            try:
                return await current_world().run(self.tool_name, arguments, call_id, agent=self._agent, real=real)
            except WaitsForAnswer:
                raise questions[-1] from None

        probed = copy(tool)
        probed._tool_func = run
        return probed


async def _run_body(body: Any, arguments: dict[str, Any]) -> Any:
    """Run a user's function as the framework does; the last value of a generator is its result."""
    if isasyncgenfunction(body):
        result: Any = None
        async for value in body(**arguments):
            result = value
        return result
    return await (body(**arguments) if iscoroutinefunction(body) else asyncio.to_thread(body, **arguments))


def _is_question(event: Any) -> bool:
    return isinstance(event, dict) and "tool_interrupt_event" in event


def _event_text(event: Any) -> str:
    result = event.get("tool_result", event) if isinstance(event, dict) else {}
    return "".join(str(block.get("text", block.get("json", ""))) for block in result.get("content", ()))


def _wrap_result(id: str, value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return {"toolUseId": id, "status": "success", "content": [{"text": text}]}

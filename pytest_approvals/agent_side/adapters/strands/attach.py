"""
A person's own agent: the scripted model in place of its own, and probes around its tools.

An agent holds its model and its tools in attributes. Both are replaced there, also on the agents that its tools run,
and put back when the last session lets go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from strands import Agent
from strands.types.tools import AgentTool

from ...contract import MAIN, AsksAgain, Attachment, Parameter, ToolSpec, Unsupported
from ...current import world
from .crew import Crew
from .model import ScriptedModel

Undo = Callable[[], None]


def attached_crew(attachment: Attachment) -> Crew:
    """Makes a crew of the agent that a person hands over, or of those that their factory makes."""
    subject = attachment.subject
    if isinstance(subject, Agent):
        undo = list(_probed(subject, MAIN, attachment))

        def main(manager: Any) -> Any:
            _no_manager(manager)
            return subject

        return Crew(main=main, tools=tuple(_specs(subject)), options=attachment.run_options, release=_all(undo))

    def made(manager: Any) -> Any:
        _no_manager(manager)
        agent = subject(ScriptedModel())
        for _ in _probed(agent, MAIN, attachment):
            pass
        return agent

    return Crew(main=made, tools=tuple(_specs(subject(ScriptedModel()))), options=attachment.run_options)


def _no_manager(manager: Any) -> None:
    if manager is not None:
        raise Unsupported("attach", "an agent gets its session manager where it is made; give yours one, or use `json`")


def _all(undo: list[Undo]) -> Undo:
    def release() -> None:
        for one in reversed(undo):
            one()

    return release


# --- finding ----------------------------------------------------------------------------------------------------------


def _specs(agent: Any) -> Iterator[ToolSpec]:
    for tool in agent.tool_registry.registry.values():
        schema = tool.tool_spec["inputSchema"].get("json", {})
        required = schema.get("required", ())
        yield ToolSpec(
            name=tool.tool_name,
            description=tool.tool_spec["description"],
            parameters={
                name: Parameter(
                    type=str(one.get("type", "object")), required=name in required, default=one.get("default")
                )
                for name, one in schema.get("properties", {}).items()
            },
            approval="always" if _always_asked(agent, tool.tool_name) else "never",
        )


def _always_asked(agent: Any, tool: str) -> bool:
    """Says whether the SDK's own intervention asks about the tool; what a person's own gate asks about nobody knows."""
    registry = getattr(agent, "_intervention_registry", None)
    for handler in getattr(registry, "handlers", ()):
        allowed = getattr(handler, "_allowed_tools", None)
        if allowed is not None and getattr(handler, "_classifier", None) is None:
            return f"!{tool}" in allowed or ("*" not in allowed and tool not in allowed)
    return False


# --- probing ----------------------------------------------------------------------------------------------------------


def _probed(agent: Any, name: str, attachment: Attachment) -> Iterator[Undo]:
    model, tools = agent.model, agent.tool_registry.registry
    before = dict(tools)

    def undo() -> None:
        agent.model = model
        tools.update(before)

    agent.model = ScriptedModel(name)
    yield undo
    for tool in before.values():
        inner = getattr(tool, "agent", None)
        if isinstance(inner, Agent) and tool.tool_name not in attachment.stubs:
            yield from _probed(inner, tool.tool_name, attachment)
        else:
            tools[tool.tool_name] = _Probe(tool, name, stub=tool.tool_name in attachment.stubs)


class _Probe(AgentTool):
    """Stands in the place of a tool; a stub never runs it."""

    def __init__(self, tool: Any, agent: str, *, stub: bool) -> None:
        super().__init__()
        self._tool = tool
        self._agent = agent
        self._stub = stub

    def __getattr__(self, name: str) -> Any:
        # Whatever else the framework asks a tool about, it asks the person's own.
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
        """Runs the tool in the world; a question that it asks is told, and not its result."""
        told: list[Any] = []

        async def real() -> Any:
            told.extend([event async for event in self._tool.stream(tool_use, invocation_state, **options)])
            if told and _asks(told[-1]):
                raise AsksAgain("the body asks")
            return _text(told[-1]) if told else None

        given = None if self._stub else real
        try:
            value = await world().run(
                self.tool_name, tool_use["input"], tool_use["toolUseId"], agent=self._agent, real=given
            )
        except AsksAgain:
            value = None
        for event in told:
            yield event
        if not told:
            yield _wrapped(tool_use["toolUseId"], value)


def _asks(event: Any) -> bool:
    return isinstance(event, dict) and "tool_interrupt_event" in event


def _text(event: Any) -> str:
    result = event.get("tool_result", event) if isinstance(event, dict) else {}
    return "".join(str(block.get("text", block.get("json", ""))) for block in result.get("content", ()))


def _wrapped(id: str, value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return {"toolUseId": id, "status": "success", "content": [{"text": text}]}

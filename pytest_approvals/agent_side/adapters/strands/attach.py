"""Attached agents: the scripted model in place of their own, probes around their tools.

An agent holds its model and its tools in attributes. Both are replaced there, also in the agents that are its tools or
that their bodies run, and restored when the last session is closed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from copy import copy
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

from pydantic_core import to_jsonable_python
from strands import Agent, hooks
from strands.agent.conversation_manager import NullConversationManager, SlidingWindowConversationManager
from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent
from strands.tools.decorator import DecoratedFunctionTool
from strands.types.interrupt import InterruptException
from strands.types.tools import AgentTool

from ...contract import MAIN, Attachment, ToolSpec, Unsupported, WaitsForAnswer
from ...kit.context import block_turn, body_owner, run_in_turn, use_body
from ...kit.probes import Undo, patch_shared, undo_all
from ...kit.tool_schema import describe_arguments, read_effects, read_parameters, show_place
from .agents import AgentGraph
from .model import ScriptedModel


def attach_agents(attachment: Attachment) -> AgentGraph:
    """Build the agent graph of an attached agent, or of those that its factory builds."""
    subject = attachment.subject
    probes = _Probes(attachment)
    if isinstance(subject, Agent):
        specs = tuple(_to_specs(subject, scripted=attachment.scripted))
        edits = _edits_history(subject)
        probes.probe(subject, MAIN)

        def build_main(manager: Any) -> Any:
            _refuse_manager(manager)
            return subject

    else:
        first = subject(ScriptedModel())
        specs = tuple(_to_specs(first, scripted=attachment.scripted))
        edits = _edits_history(first)

        def build_main(manager: Any) -> Any:
            _refuse_manager(manager)
            agent = subject(ScriptedModel())
            probes.probe(agent, MAIN)
            return agent

    return AgentGraph(
        build_main=build_main,
        tools=specs,
        options=attachment.run_options,
        earlier_turns=0 if edits else None,
        release=undo_all(probes.undos),
    )


def _refuse_manager(manager: Any) -> None:
    if manager is not None:
        raise Unsupported("attach", "an agent gets its session manager on construction; give yours one, or use `json`")


# --- finding ----------------------------------------------------------------------------------------------------------


def _script_name(tool: Any, scripted: Collection[str]) -> str:
    """Return the name by which the agent of a tool is scripted: that of the tool, or its own if a script has that."""
    own: str = tool.agent.name
    name: str = tool.tool_name
    return own if own in scripted and name not in scripted else name


def _to_specs(agent: Any, name: str = MAIN, *, scripted: Collection[str]) -> Iterator[ToolSpec]:
    is_guarded = _has_own_hook(agent, AfterToolCallEvent)
    is_screened = any(_has_own_hook(agent, event) for event in _BEFORE_TOOLS) or bool(_interventions(agent))
    for tool in agent.tool_registry.registry.values():
        inner = getattr(tool, "agent", None)
        if isinstance(inner, Agent):
            yield from _to_specs(inner, _script_name(tool, scripted), scripted=scripted)
        yield ToolSpec(
            name=tool.tool_name,
            description=tool.tool_spec["description"],
            parameters=read_parameters(tool.tool_spec["inputSchema"].get("json")),
            approval="always" if _is_always_asked(agent, tool.tool_name) else "never",
            agent=name,
            runs=_script_name(tool, scripted) if isinstance(inner, Agent) else None,
            guarded=is_guarded,
            screened=is_screened,
            # Tools of MCP servers hold what the server says of them.
            effects=read_effects(getattr(getattr(tool, "mcp_tool", None), "annotations", None)),
            place=show_place(getattr(tool, "_tool_func", type(tool))),
        )


_BEFORE_TOOLS = [BeforeToolCallEvent, *([hooks.BeforeToolsEvent] if hasattr(hooks, "BeforeToolsEvent") else [])]
"""Events whose hooks may refuse calls; older releases have one of them."""


_ABOUT_MESSAGES = [
    kind
    for name in ("BeforeInvocationEvent", "BeforeModelCallEvent", "AfterModelCallEvent", "MessageAddedEvent")
    if (kind := getattr(hooks, name, None)) is not None
]
"""Events whose hooks may change the messages."""

_DEFAULT_WINDOW = 40


def _edits_history(agent: Any) -> bool:
    """Return whether the user's own settings or code may change what the model is told of earlier turns."""
    manager = agent.conversation_manager
    keeps = isinstance(manager, NullConversationManager) or (
        type(manager) is SlidingWindowConversationManager and manager.window_size >= _DEFAULT_WINDOW
    )
    return not keeps or any(_has_own_hook(agent, event) for event in _ABOUT_MESSAGES)


def _has_own_hook(agent: Any, event: type[Any]) -> bool:
    """Return whether a hook of the user's, or of a plugin that the user has chosen, is told of an event."""
    entries = getattr(agent.hooks, "_registered_callbacks", {}).get(event, ())
    modules = [str(getattr(getattr(entry, "callback", entry), "__module__", "")) for entry in entries]
    return any(not module.startswith("strands.") or module.startswith("strands.vended_") for module in modules)


def _interventions(agent: Any) -> Sequence[Any]:
    return getattr(getattr(agent, "_intervention_registry", None), "handlers", ())


def _is_always_asked(agent: Any, tool: str) -> bool:
    """Return whether the SDK's own intervention asks about the tool.

    Which tools the user's own gate asks about is unknown.
    """
    for handler in _interventions(agent):
        # `HumanInTheLoop` has its settings in private attributes only; a handler without them is another one.
        allowed = getattr(handler, "_allowed_tools", None)
        # With some settings it asks about some calls only, or by itself.
        chooses = any(getattr(handler, name, None) for name in ("_classifier", "_enable_trust", "_ask"))
        if allowed is not None and not chooses:
            return f"!{tool}" in allowed or ("*" not in allowed and tool not in allowed)
    return False


# --- probing ----------------------------------------------------------------------------------------------------------


class _Probes:
    """What is put into an attached agent, and into the agents that its tools run.

    Attributes:
        undos: The functions that take it out again.
    """

    def __init__(self, attachment: Attachment) -> None:
        self.undos: list[Undo] = [_watch_bodies()]
        self._stubs = attachment.stubs
        self._scripted = attachment.scripted
        # The references keep the agents alive, and so their ids from being given to others.
        self._probed: dict[int, Any] = {}

    def probe_in_body(self, agent: Any) -> None:
        """Probe an agent that the body of a tool runs."""
        self.probe(agent, agent.name)

    def probe(self, agent: Any, name: str) -> None:
        """Give an agent the scripted model of *name* and probes around its tools, once."""
        if id(agent) in self._probed:
            return
        self._probed[id(agent)] = agent
        registry = agent.tool_registry
        for tool in registry.registry.values():
            if (inner := self._find_inner(tool)) is not None:
                self.probe(inner, _script_name(tool, self._scripted))
        self.undos.append(patch_shared(agent, lambda: {"model": ScriptedModel(name)}))
        self.undos.append(
            patch_shared(
                registry,
                lambda: {"registry": {key: self._probe_tool(tool, name) for key, tool in registry.registry.items()}},
            )
        )

    def _find_inner(self, tool: Any) -> Any:
        """Return the agent that a tool of `Agent.as_tool` runs; None for other tools, and for stubs."""
        inner = getattr(tool, "agent", None)
        return inner if isinstance(inner, Agent) and tool.tool_name not in self._stubs else None

    def _probe_tool(self, tool: Any, agent: str) -> Any:
        if self._find_inner(tool) is not None:
            return tool
        return _ProbedTool(tool, agent, self, stub=tool.tool_name in self._stubs)


def _watch_bodies() -> Undo:
    """Probe the agents that are run in the bodies of tools.

    Nothing leads from an agent to those that its tools run, so the method that all runs go through is replaced, and the
    one that blocks.
    """
    stream, call = Agent.stream_async, Agent.__call__

    @wraps(stream)
    async def stream_async(agent: Any, *prompt: Any, **options: Any) -> AsyncIterator[Any]:
        probes = body_owner()
        if isinstance(probes, _Probes):
            probes.probe_in_body(agent)
        async for event in stream(agent, *prompt, **options):
            yield event

    @wraps(call)
    def call_and_block(agent: Any, *prompt: Any, **options: Any) -> Any:
        with block_turn():
            return call(agent, *prompt, **options)

    return patch_shared(Agent, lambda: {"stream_async": stream_async, "__call__": call_and_block}, place=setattr)


class ToolError(Exception):
    """A tool returned that it failed, in place of an exception."""


class _ProbedTool(AgentTool):
    """Replacement of a tool that runs it in the world; a stub never runs it."""

    def __init__(self, tool: Any, agent: str, probes: _Probes, *, stub: bool) -> None:
        super().__init__()
        self._probes = probes
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
            async for event in self._probe_body(tool_use).stream(tool_use, invocation_state, **options):
                yield event
            return
        # The world returns a value and no events, so the events of the tool are passed on after it.
        events: list[Any] = []

        async def real() -> Any:
            with use_body(self._probes):
                events.extend([event async for event in self._tool.stream(tool_use, invocation_state, **options)])
            if events and _is_question(events[-1]):
                raise WaitsForAnswer("the body asks")
            return _event_text(events[-1]) if events else None

        real_body = None if self._stub else real
        try:
            value = await run_in_turn(
                self.tool_name, tool_use["input"], tool_use["toolUseId"], agent=self._agent, real=real_body
            )
        except WaitsForAnswer:
            value = None
        for event in events:
            yield event
        if not events:
            yield _wrap_result(tool_use["toolUseId"], value)

    def _probe_body(self, tool_use: Any) -> Any:
        """Return a copy of a function's tool whose body the world runs for one call, with validated arguments."""
        tool = self._tool
        body: Any = tool._tool_func
        declared = tool.tool_spec["inputSchema"]["json"].get("properties", {})

        @wraps(body)
        async def run(**kwargs: Any) -> Any:
            questions: list[InterruptException] = []
            results: list[Any] = []

            async def real() -> Any:
                try:
                    with use_body(self._probes):
                        results.append(await _run_body(body, kwargs))
                except InterruptException as question:
                    questions.append(question)
                    raise WaitsForAnswer("the body asks") from question
                # A body may return blocks of content, of which the model is told the texts.
                is_content = isinstance(results[0], dict) and {"status", "content"} <= results[0].keys()
                if is_content and results[0]["status"] == "error":
                    raise ToolError(_event_text(results[0]))
                return _event_text(results[0]) if is_content else results[0]

            # The framework adds what a signature asks for, such as its context.
            declared_arguments = {name: value for name, value in kwargs.items() if name in declared}
            arguments = to_jsonable_python(describe_arguments(declared_arguments), fallback=repr)
            written = tool_use["input"]
            for name in arguments.keys() & written.keys():
                arguments[name] = _leave_out_defaults(arguments[name], written[name])
            try:
                await run_in_turn(self.tool_name, arguments, tool_use["toolUseId"], agent=self._agent, real=real)
                return results[0]
            except ToolError:
                return results[0]
            except WaitsForAnswer:
                raise questions[-1] from None

        probed = copy(tool)
        probed._tool_func = run
        return probed


def _leave_out_defaults(value: Any, written: Any) -> Any:
    """Return a value without the defaults that the framework put into the objects that the model wrote."""
    if isinstance(value, dict) and isinstance(written, dict):
        return {name: _leave_out_defaults(one, written[name]) for name, one in value.items() if name in written}
    if isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        return [_leave_out_defaults(*pair) for pair in zip(value, written, strict=True)]
    return value


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

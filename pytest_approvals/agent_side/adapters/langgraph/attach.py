"""
A person's own agent: probes in its tools, and the scripted model behind its own.

A compiled graph holds its model and its middleware in the closures of its nodes, and offers no way to put others in
their place. So the objects themselves are found there and get probes, which are taken out again when the last session
lets go; whatever is bound to the model, and whatever wraps the tools, stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from ...contract import MAIN, Attachment, Parameter, ToolSpec, Unsupported
from ...kit.context import current_world
from .agents import AgentGraph
from .model import ScriptedModel, complete_reply, stream_reply

Undo = Callable[[], None]


def attach_agents(attachment: Attachment) -> AgentGraph:
    """Makes a crew of the graph that a person hands over, or that their factory makes of the scripted model."""
    subject = attachment.subject
    graph = subject if hasattr(subject, "ainvoke") else subject(ScriptedModel())
    held = list(_find_held_objects(graph))
    models = [one for one in held if isinstance(one, BaseChatModel)]
    if not models:
        raise Unsupported("attach", "the graph shows no chat model; hand over a factory that takes one")
    tools = _find_tools(graph)
    gates = [one for one in held if isinstance(getattr(one, "interrupt_on", None), dict)]
    probes = [_probe_model(one) for one in models if not isinstance(one, ScriptedModel)]
    probes += [_probe_tool(tool, stub=name in attachment.stubs) for name, tool in tools.items()]

    def release() -> None:
        for undo in reversed(probes):
            undo()

    async def main(saver: Any) -> Any:
        return graph.copy({"checkpointer": saver})

    return AgentGraph(
        main=main,
        tools=tuple(_to_spec(tool, gates) for tool in tools.values()),
        options=dict(attachment.run_options),
        saver=graph.checkpointer or None,
        release=release,
    )


# --- finding ----------------------------------------------------------------------------------------------------------


def _find_held_objects(graph: Any) -> Iterator[Any]:
    """Gives the models and middleware that the nodes of *graph* hold, each once."""
    seen: set[int] = set()
    for node in graph.nodes.values():
        bound = node.bound
        for function in (getattr(bound, "func", None), getattr(bound, "afunc", None)):
            yield from _find_in_closure(function, seen)


def _find_in_closure(value: Any, seen: set[int]) -> Iterator[Any]:
    if value is None or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, BaseChatModel) or hasattr(value, "interrupt_on"):
        yield value
    elif isinstance(value, partial):
        yield from _find_in_closure(value.func, seen)
    elif hasattr(value, "__self__"):
        yield from _find_in_closure(value.__self__, seen)
    elif isinstance(getattr(value, "bound", None), BaseChatModel):
        yield from _find_in_closure(value.bound, seen)
    else:
        for cell in getattr(value, "__closure__", None) or ():
            yield from _find_in_closure(_cell_contents(cell), seen)


def _cell_contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # The cell of a name that was never given a value.
        return None


def _find_tools(graph: Any) -> dict[str, BaseTool]:
    found: dict[str, BaseTool] = {}
    for node in graph.nodes.values():
        found |= getattr(node.bound, "tools_by_name", {})
    return found


def _to_spec(tool: BaseTool, gates: list[Any]) -> ToolSpec:
    schema: Any = tool.tool_call_schema
    described: dict[str, Any] = schema if isinstance(schema, dict) else schema.model_json_schema()
    required = described.get("required", ())
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters={
            name: Parameter(type=_type(one), required=name in required, default=one.get("default"))
            for name, one in described.get("properties", {}).items()
        },
        approval="always" if any(_always_asks(gate, tool.name) for gate in gates) else "never",
    )


def _always_asks(gate: Any, tool: str) -> bool:
    # What a person's own policy will say is not known before it is asked.
    policy = gate.interrupt_on.get(tool)
    return bool(policy) and not policy.get("when")


def _type(schema: dict[str, Any]) -> str:
    if isinstance(schema.get("type"), str):
        return str(schema["type"])
    choices = [one.get("type") for one in schema.get("anyOf", ()) if one.get("type") not in (None, "null")]
    return str(choices[0]) if choices else "object"


# --- probing ----------------------------------------------------------------------------------------------------------


def _probe_model(model: BaseChatModel) -> Undo:
    """Lets the world answer for *model*; what a person bound to it is bound still."""

    async def generate(messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        return await complete_reply(messages, MAIN, _offered_names(options))

    async def stream(messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        async for chunk in stream_reply(messages, MAIN, _offered_names(options)):
            yield chunk

    return _insert_probe(model, _agenerate=generate, _astream=stream)


def _offered_names(options: dict[str, Any]) -> list[str]:
    described = (one.get("function", one) for one in options.get("tools", ()) if isinstance(one, dict))
    return [str(one.get("name", "")) for one in described]


def _probe_tool(tool: BaseTool, *, stub: bool) -> Undo:
    """Lets the world run the body of *tool*, with the arguments that the framework made of the call."""
    blocks = getattr(tool, "coroutine", _NO_ATTRIBUTE) is None
    body = _wrap_blocking(tool._run) if blocks else tool._arun

    # The framework hands over what the signature asks for.
    @wraps(body)
    async def run(*given: Any, **named: Any) -> Any:
        async def real() -> Any:
            return await body(*given, **named)

        arguments, call_id = _read_arguments(tool, named)
        return await current_world().run(tool.name, arguments, call_id, real=None if stub else real)

    # A tool that has no coroutine is not asked for one.
    return _insert_probe(tool, _arun=run, coroutine=run) if blocks else _insert_probe(tool, _arun=run)


_NO_ATTRIBUTE = object()


def _wrap_blocking(body: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Runs a body that blocks as the framework does."""

    @wraps(body)
    async def run(*given: Any, run_manager: Any = None, **named: Any) -> Any:
        if run_manager is not None:
            named["run_manager"] = run_manager.get_sync()
        return await asyncio.to_thread(body, *given, **named)

    return run


def _read_arguments(tool: BaseTool, named: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Gives what the model had to say about the call, and the call's id where the body is told it."""
    from pydantic_core import to_jsonable_python

    injected = [value for value in named.values() if hasattr(value, "tool_call_id")]
    call_id = named.get("tool_call_id") or next((one.tool_call_id for one in injected), None)
    shown = {name: value for name, value in named.items() if name in tool.args}
    return to_jsonable_python(shown, fallback=repr), call_id


@dataclass(slots=True)
class _Probe:
    """The probes in one object, and what was there before; shared by all sessions that use the object."""

    owner: Any
    before: dict[str, Any]
    users: int = 0


_PROBES: dict[int, _Probe] = {}


def _insert_probe(owner: Any, **methods: Any) -> Undo:
    """Lays *methods* over those of one object, which pydantic would not let anybody do."""
    probe = _PROBES.get(id(owner))
    if probe is None:
        before = {name: vars(owner)[name] for name in methods if name in vars(owner)}
        probe = _PROBES[id(owner)] = _Probe(owner, before)
        for name, method in methods.items():
            object.__setattr__(owner, name, method)
    probe.users += 1

    def undo() -> None:
        probe.users -= 1
        if probe.users == 0:
            _remove_probe(probe, methods)

    return undo


def _remove_probe(probe: _Probe, names: Iterable[str]) -> None:
    del _PROBES[id(probe.owner)]
    for name in names:
        if name in probe.before:
            object.__setattr__(probe.owner, name, probe.before[name])
        else:
            object.__delattr__(probe.owner, name)

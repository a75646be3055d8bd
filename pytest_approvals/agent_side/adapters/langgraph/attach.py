"""Attached agents: probes in their tools, the scripted model in place of their own.

A compiled graph holds its model and its middleware in the closures of its nodes and has no API to replace them. So the
objects themselves are found there and probed until the last session is closed. Whatever is bound to the model, and
whatever wraps the tools, stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.errors import GraphInterrupt

from ...contract import MAIN, Attachment, ToolSpec, Unsupported, WaitsForAnswer
from ...kit.context import current_world, run_blocking
from ...kit.probes import Undo, patch_shared, undo_all
from ...kit.tool_schema import read_effects, read_parameters, show_place
from .agents import AgentGraph
from .model import ScriptedModel, complete_reply, list_chunks, stream_reply


def attach_agents(attachment: Attachment) -> AgentGraph:
    """Build the agent graph of an attached graph, or of the one its factory builds."""
    subject = attachment.subject
    graph = subject if hasattr(subject, "ainvoke") else subject(ScriptedModel())
    candidates = list(_find_held_objects(graph))
    models = [candidate for candidate in candidates if isinstance(candidate, BaseChatModel)]
    if not models:
        raise Unsupported("attach", "the graph shows no chat model; hand over a factory that takes one")
    tools = _find_tools(graph)
    gates = [candidate for candidate in candidates if isinstance(getattr(candidate, "interrupt_on", None), dict)]
    probes = [_probe_model(candidate) for candidate in models if not isinstance(candidate, ScriptedModel)]
    probes += [_probe_tool(tool, stub=name in attachment.stubs) for name, tool in tools.items()]

    async def build_main(saver: Any) -> Any:
        return graph.copy({"checkpointer": saver})

    return AgentGraph(
        build_main=build_main,
        tools=tuple(_to_spec(tool, gates) for tool in tools.values()),
        options={name: value for name, value in attachment.run_options.items() if name != "config"},
        config=dict(attachment.run_options.get("config") or {}),
        saver=graph.checkpointer or None,
        release=undo_all(probes),
    )


# --- finding ----------------------------------------------------------------------------------------------------------


def _find_held_objects(graph: Any) -> Iterator[Any]:
    """Yield the models and middleware that the nodes of *graph* hold, each once."""
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
        # The cell is of a name that has no value yet.
        return None


def _find_tools(graph: Any) -> dict[str, BaseTool]:
    tools: dict[str, BaseTool] = {}
    for node in graph.nodes.values():
        tools |= getattr(node.bound, "tools_by_name", {})
    return tools


def _to_spec(tool: BaseTool, gates: list[Any]) -> ToolSpec:
    schema: Any = tool.tool_call_schema
    json_schema: dict[str, Any] = schema if isinstance(schema, dict) else schema.model_json_schema()
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=read_parameters(json_schema),
        approval="always" if any(_always_asks(gate, tool.name) for gate in gates) else "never",
        # Tools of MCP servers carry their annotations in the metadata.
        effects=read_effects(tool.metadata),
        place=show_place(getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)),
    )


def _always_asks(gate: Any, tool: str) -> bool:
    # The result of the user's own policy is not known before it is called.
    policy = gate.interrupt_on.get(tool)
    return bool(policy) and not policy.get("when")


# --- probing ----------------------------------------------------------------------------------------------------------


def _probe_model(model: BaseChatModel) -> Undo:
    """Let the world answer for *model*; what is bound to the model stays bound."""

    async def generate(messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        return await complete_reply(messages, MAIN, _offered_names(options))

    async def stream(messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        async for chunk in stream_reply(messages, MAIN, _offered_names(options)):
            yield chunk

    def generate_blocking(messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        return run_blocking(complete_reply(messages, MAIN, _offered_names(options)))

    def stream_blocking(messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        yield from run_blocking(list_chunks(messages, MAIN, _offered_names(options)))

    replaced = {"_agenerate": generate, "_astream": stream, "_generate": generate_blocking, "_stream": stream_blocking}
    return patch_shared(model, lambda: replaced)


def _offered_names(options: dict[str, Any]) -> list[str]:
    functions = (tool.get("function", tool) for tool in options.get("tools", ()) if isinstance(tool, dict))
    return [str(tool.get("name", "")) for tool in functions]


def _probe_tool(tool: BaseTool, *, stub: bool) -> Undo:
    """Let the world run the body of *tool*, with the arguments the framework made."""

    def build() -> dict[str, Any]:
        blocks = getattr(tool, "coroutine", _NO_ATTRIBUTE) is None
        body = _wrap_blocking(tool._run) if blocks else tool._arun

        # The framework passes the arguments that the signature asks for.
        @wraps(body)
        async def run(*args: Any, **kwargs: Any) -> Any:
            questions: list[GraphInterrupt] = []

            async def real() -> Any:
                try:
                    return await body(*args, **kwargs)
                except GraphInterrupt as question:
                    questions.append(question)
                    raise WaitsForAnswer("the body asks") from question

            arguments, call_id = _read_arguments(tool, kwargs)
            try:
                return await current_world().run(tool.name, arguments, call_id, real=None if stub else real)
            except WaitsForAnswer:
                raise questions[-1] from None

        arun = tool.arun

        @wraps(arun)
        async def arun_noting_id(*args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
            token = _CALL_ID.set(tool_call_id)
            try:
                return await arun(*args, tool_call_id=tool_call_id, **kwargs)
            finally:
                _CALL_ID.reset(token)

        # The framework only awaits tools that have a coroutine.
        coroutine = {"coroutine": run} if blocks else {}
        return {"arun": arun_noting_id, "_arun": run, **coroutine}

    return patch_shared(tool, build)


_CALL_ID: ContextVar[str | None] = ContextVar("call_id", default=None)
"""The id of the call that a tool runs for, which its body need not take."""

_NO_ATTRIBUTE = object()


def _wrap_blocking(body: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Run a blocking body in a thread, as the framework does."""

    @wraps(body)
    async def run(*args: Any, run_manager: Any = None, **kwargs: Any) -> Any:
        if run_manager is not None:
            kwargs["run_manager"] = run_manager.get_sync()
        return await asyncio.to_thread(body, *args, **kwargs)

    return run


def _read_arguments(tool: BaseTool, kwargs: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the model's arguments, and the call's id."""
    from pydantic_core import to_jsonable_python

    shown = {name: value for name, value in kwargs.items() if name in tool.args}
    return to_jsonable_python(shown, fallback=repr), _CALL_ID.get()

"""Attached agents: probes in their tools, the scripted model in place of their own.

A compiled graph holds its model and its middleware in the closures of its nodes and has no API to replace them. So the
objects themselves are found there and probed until the last session is closed. Whatever is bound to the model, and
whatever wraps the tools, stays as it is.

Graphs that nodes and bodies of tools run are found in the same way. Nothing leads to those that a body makes only when
it runs; the two methods that all runs go through are therefore replaced, and probe a graph when it is run inside
another one. One model or tool may serve several agents, so the probes ask which graph runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.errors import GraphInterrupt
from langgraph.pregel import Pregel

from ...contract import MAIN, Attachment, ToolSpec, Unsupported, WaitsForAnswer
from ...kit.context import current_world, run_blocking, run_in_own_thread
from ...kit.probes import Undo, patch_shared, undo_all
from ...kit.tool_schema import describe_arguments, read_effects, read_parameters, show_place
from .agents import AgentGraph
from .middleware import edits_history, find_owners, is_of_user, must_block, read_cell
from .model import RUNNING_AGENT, ScriptedModel, complete_reply, list_chunks, stream_reply


def attach_agents(attachment: Attachment) -> AgentGraph:
    """Build the agent graph of an attached graph, or of the one its factory builds."""
    probes = _GraphProbes(attachment)
    try:
        return _attach_probed(attachment, probes)
    except BaseException:
        probes.release()
        raise


def _attach_probed(attachment: Attachment, probes: _GraphProbes) -> AgentGraph:
    subject = attachment.subject
    is_factory = not hasattr(subject, "ainvoke")
    graph = subject(ScriptedModel(on_bind=probes.probe_tools)) if is_factory else subject
    if not isinstance(graph, Pregel):
        raise Unsupported("attach", f"{type(graph).__name__} is no compiled graph, as `create_agent` returns one")
    if "messages" not in graph.channels:
        why = "the state of the graph has no `messages`, with which a run begins"
        raise Unsupported("attach", f"{why}; run it in a node of a graph that has them")
    graphs = list(_walk_graphs(graph, MAIN, set()))
    models = [model for inner, _ in graphs for model in _find_models(inner)]
    # A node of the factory's graph may take the model from anywhere.
    if not models and not is_factory:
        raise Unsupported("attach", "the graph shows no chat model; hand over a factory that takes one")
    for inner, label in graphs:
        probes.probe_graph(inner, label, _find_models(inner), _find_tools(inner).values())
    specs = {(spec.agent, spec.name): spec for inner, label in graphs for spec in _read_specs(inner, label)}
    known = {spec.name for spec in specs.values()}
    # Nodes may run tools that only the model is told of.
    bound = (_to_spec(tool, [], MAIN) for tool in probes.bound if tool.name not in known)

    config = attachment.run_options.get("config") or {}
    if not isinstance(config, Mapping):
        raise Unsupported("attach", f"config in run_options is {config!r}; expected a mapping")

    async def build_main(saver: Any) -> Any:
        return graph.copy({"checkpointer": saver})

    return AgentGraph(
        build_main=build_main,
        tools=(*specs.values(), *bound),
        options={name: value for name, value in attachment.run_options.items() if name != "config"},
        config=dict(config),
        saver=graph.checkpointer or None,
        blocking=attachment.sync or must_block(graph),
        earlier_turns=0 if edits_history(graph) else None,
        probing=probes.use,
        release=probes.release,
    )


# --- finding ----------------------------------------------------------------------------------------------------------


def _walk_graphs(graph: Any, label: str, seen: set[int]) -> Iterator[tuple[Any, str]]:
    """Yield *graph* and the graphs that can be found in it, each with the harness's name of its agent."""
    if id(graph) in seen:
        return
    seen.add(id(graph))
    yield graph, label
    for name, node in graph.nodes.items():
        for inner in (*(getattr(node, "subgraphs", None) or ()), *_find_graphs(_list_functions(node.bound))):
            if isinstance(inner, Pregel):
                yield from _walk_graphs(inner, _name_agent(inner, name), seen)
    for tool in _find_tools(graph).values():
        for inner in _find_graphs(_list_functions(tool)):
            yield from _walk_graphs(inner, _name_agent(inner), seen)


def _list_functions(owner: Any) -> list[Any]:
    """Return the functions of a node or of a tool."""
    names = ("func", "afunc", "coroutine")
    return [function for name in names if (function := getattr(owner, name, None)) is not None]


def _find_graphs(functions: Iterable[Any]) -> Iterator[Any]:
    """Yield the graphs that functions name, in their closures or in their modules."""
    for function in functions:
        code = getattr(function, "__code__", None)
        cells = [read_cell(cell) for cell in getattr(function, "__closure__", None) or ()]
        named = getattr(function, "__globals__", {}) if code is not None else {}
        cells += [named.get(name) for name in code.co_names] if code is not None else []
        yield from (cell for cell in cells if isinstance(cell, Pregel))


def _find_models(graph: Any) -> list[BaseChatModel]:
    return [held for held in _find_held_objects(graph) if isinstance(held, BaseChatModel)]


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
            yield from _find_in_closure(read_cell(cell), seen)


def _find_tools(graph: Any) -> dict[str, BaseTool]:
    tools: dict[str, BaseTool] = {}
    for node in graph.nodes.values():
        tools |= getattr(node.bound, "tools_by_name", {})
    return tools


def _read_specs(graph: Any, agent: str) -> Iterator[ToolSpec]:
    gates = [held for held in _find_held_objects(graph) if isinstance(getattr(held, "interrupt_on", None), dict)]
    wrappers = [getattr(node.bound, "_awrap_tool_call", None) for node in graph.nodes.values()]
    is_guarded = any(is_of_user(owner) for wrapper in wrappers for owner in find_owners(wrapper, set()))
    for tool in _find_tools(graph).values():
        yield _to_spec(tool, gates, agent, guarded=is_guarded)


def _to_spec(tool: BaseTool, gates: list[Any], agent: str, *, guarded: bool = False) -> ToolSpec:
    schema: Any = tool.tool_call_schema
    json_schema: dict[str, Any] = schema if isinstance(schema, dict) else schema.model_json_schema()
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=read_parameters(json_schema),
        approval="always" if any(_always_asks(gate, tool.name) for gate in gates) else "never",
        agent=agent,
        # Tools of MCP servers carry their annotations in the metadata.
        effects=read_effects(tool.metadata),
        place=show_place(getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)),
        guarded=guarded,
    )


def _always_asks(gate: Any, tool: str) -> bool:
    # The result of the user's own policy is not known before it is called.
    policy = gate.interrupt_on.get(tool)
    return bool(policy) and not policy.get("when")


_DEFAULT_NAME = "LangGraph"
"""The name of a graph that was compiled without one."""


def _name_agent(graph: Any, node: str = "agent") -> str:
    """Return the harness's name of the agent inside another one: the graph's own name, or else that of its node."""
    return str(graph.name if graph.name != _DEFAULT_NAME else node)


# --- probes -----------------------------------------------------------------------------------------------------------


class _GraphProbes:
    """Probes in all graphs of one attachment.

    Attributes:
        bound: The tools that models of the factory were told of.
    """

    def __init__(self, attachment: Attachment) -> None:
        self.bound: list[BaseTool] = []
        self._attachment = attachment
        self._names: dict[int, str] = {}
        # The values keep the objects alive, and so their ids from being given to others.
        self._probed: dict[int, object] = {}
        self._undos: list[Undo] = [
            patch_shared(
                Pregel,
                lambda: {"stream": _wrap_stream(Pregel.stream), "astream": _wrap_astream(Pregel.astream)},
                place=setattr,
            )
        ]

    def probe_graph(self, graph: Any, agent: str, models: Iterable[BaseChatModel], tools: Iterable[BaseTool]) -> None:
        """Put probes into the *models* and *tools* of one graph, whose agent is called *agent*."""
        if id(graph) in self._names:
            return
        self._names[id(graph)] = agent
        self._keep(graph)
        own = [model for model in models if not isinstance(model, ScriptedModel)]
        if agent != MAIN and not self._asks_script(agent, own):
            return
        for model in own:
            if self._keep(model):
                self._undos.append(_probe_model(model))
        self.probe_tools(tools, bound=False)

    def probe_tools(self, tools: Iterable[Any], *, bound: bool = True) -> None:
        """Put probes into tools, which a model of the factory is told of if they are *bound* to it."""
        for tool in tools:
            if isinstance(tool, BaseTool) and self._keep(tool):
                self._undos.append(_probe_tool(tool, stub=tool.name in self._attachment.stubs))
                self.bound += [tool] if bound else []

    def release(self) -> None:
        """Take all probes out."""
        undo_all(self._undos)()
        self._undos = []

    @contextmanager
    def use(self) -> Iterator[None]:
        """Let graphs that run inside the block ask the scripted model."""
        token = _PROBES.set(self)
        try:
            yield
        finally:
            _PROBES.reset(token)

    def name_running(self, graph: Any) -> str:
        """Return the name of the agent whose graph begins to run, and probe it if it was not found before."""
        if RUNNING_AGENT.get() is None:
            return MAIN
        if id(graph) not in self._names:
            self.probe_graph(graph, _name_agent(graph), _find_models(graph), _find_tools(graph).values())
        return self._names[id(graph)]

    def _keep(self, value: object) -> bool:
        """Return whether *value* is new."""
        is_new = id(value) not in self._probed
        self._probed[id(value)] = value
        return is_new

    def _asks_script(self, agent: str, models: Iterable[BaseChatModel]) -> bool:
        """Return whether an inner agent takes its replies from the script, and not from a test model of its own."""
        is_fake = any(type(model).__module__.startswith("langchain_core.language_models.fake") for model in models)
        return agent in self._attachment.scripted or not is_fake


_PROBES: ContextVar[_GraphProbes | None] = ContextVar("probes of the attached graph that runs", default=None)


# --- runs -------------------------------------------------------------------------------------------------------------


def _wrap_stream(original: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @wraps(original)
    def stream(graph: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        probes = _PROBES.get()
        chunks = original(graph, *args, **kwargs)
        return chunks if probes is None else _run_named(chunks, probes.name_running(graph))

    return stream


def _run_named(chunks: Iterator[Any], agent: str) -> Iterator[Any]:
    # Who takes the chunks runs in between, in the same context.
    while True:
        token = RUNNING_AGENT.set(agent)
        try:
            chunk = next(chunks)
        except StopIteration:
            return
        finally:
            RUNNING_AGENT.reset(token)
        yield chunk


def _wrap_astream(original: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    @wraps(original)
    def astream(graph: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        probes = _PROBES.get()
        chunks = original(graph, *args, **kwargs)
        return chunks if probes is None else _arun_named(chunks, probes.name_running(graph))

    return astream


async def _arun_named(chunks: Any, agent: str) -> AsyncIterator[Any]:
    try:
        while True:
            token = RUNNING_AGENT.set(agent)
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            finally:
                RUNNING_AGENT.reset(token)
            yield chunk
    finally:
        await chunks.aclose()


# --- models -----------------------------------------------------------------------------------------------------------


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


# --- tools ------------------------------------------------------------------------------------------------------------


def _probe_tool(tool: BaseTool, *, stub: bool) -> Undo:
    """Let the world run the body of *tool*, with the arguments the framework made."""

    def build() -> dict[str, Any]:
        blocks = getattr(tool, "coroutine", _NO_ATTRIBUTE) is None
        body, blocking_body = tool._arun, tool._run
        awaited = _wrap_blocking(blocking_body) if blocks else body

        # The framework passes the arguments that the signature asks for.
        @wraps(awaited)
        async def run(*args: Any, **kwargs: Any) -> Any:
            # Either body of a class may call the other one, as that of LangChain's own class does.
            if _IN_BODY.get() is tool:
                return await awaited(*args, **kwargs)
            return await _run_body(tool, kwargs, None if stub else partial(awaited, *args, **kwargs))

        @wraps(blocking_body)
        def run_blockingly(*args: Any, **kwargs: Any) -> Any:
            if _IN_BODY.get() is tool:
                return blocking_body(*args, **kwargs)
            # The body of a tool that is run in a thread may wait for others that are.
            in_thread = partial(run_in_own_thread, partial(blocking_body, *args, **kwargs))
            return run_blocking(_run_body(tool, kwargs, None if stub else in_thread))

        begin, abegin = tool.run, tool.arun

        @wraps(abegin)
        async def arun_noting_id(*args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
            with _noting_id(tool_call_id):
                return await abegin(*args, tool_call_id=tool_call_id, **kwargs)

        @wraps(begin)
        def run_noting_id(*args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
            with _noting_id(tool_call_id):
                return begin(*args, tool_call_id=tool_call_id, **kwargs)

        # The framework only awaits tools that have a coroutine.
        coroutine = {"coroutine": run} if blocks else {}
        return {"arun": arun_noting_id, "run": run_noting_id, "_arun": run, "_run": run_blockingly, **coroutine}

    return patch_shared(tool, build)


async def _run_body(tool: BaseTool, kwargs: dict[str, Any], body: Callable[[], Awaitable[Any]] | None) -> Any:
    """Run a body in the world; None for a stub. What it asks is asked outside."""
    questions: list[GraphInterrupt] = []
    # The artifact beside the content is for the application, and told to nobody.
    has_artifact, artifact = tool.response_format == "content_and_artifact" and body is None, None

    async def real() -> Any:
        nonlocal artifact, has_artifact
        assert body is not None
        token = _IN_BODY.set(tool)
        try:
            value = await body()
            if tool.response_format != "content_and_artifact" or not isinstance(value, tuple) or len(value) != 2:
                return value
            content, artifact = value
            has_artifact = True
            return content
        except GraphInterrupt as question:
            questions.append(question)
            raise WaitsForAnswer("the body asks") from question
        finally:
            _IN_BODY.reset(token)

    arguments, call_id = _read_arguments(tool, kwargs)
    agent = RUNNING_AGENT.get() or MAIN
    try:
        result = await current_world().run(
            tool.name, arguments, call_id, agent=agent, real=None if body is None else real
        )
        return (result, artifact) if has_artifact else result
    except WaitsForAnswer:
        raise questions[-1] from None


_CALL_ID: ContextVar[str | None] = ContextVar("call_id", default=None)
"""The id of the call that a tool runs for, which its body need not take."""

_IN_BODY: ContextVar[BaseTool | None] = ContextVar("tool whose body runs", default=None)

_NO_ATTRIBUTE = object()


@contextmanager
def _noting_id(call_id: str | None) -> Iterator[None]:
    token, outer = _CALL_ID.set(call_id), _IN_BODY.set(None)
    try:
        yield
    finally:
        _IN_BODY.reset(outer)
        _CALL_ID.reset(token)


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
    return to_jsonable_python(describe_arguments(shown), fallback=repr), _CALL_ID.get()

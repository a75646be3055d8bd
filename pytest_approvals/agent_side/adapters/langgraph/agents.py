"""Agent graphs of a session: `create_agent` for each agent of a blueprint.

The flavour decides how calls are gated. Agents that hand the conversation over share a graph around their graphs, as in
the guide "Handoffs": a tool gives a `Command` to the outer graph, which continues at the other agent and keeps the
active agent in its state. A custom graph has one `ToolNode` that runs all calls of a reply, as in LangGraph's guides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import Command

from ...contract import (
    MAIN,
    Blueprint,
    Condition,
    ContractError,
    Limits,
    ModelDown,
    Parameter,
    ToolSpec,
    needs_approval_by_annotations,
)
from ...kit.context import current_world
from ...kit.probes import SharedAgents
from .model import ScriptedModel, build_provider_model, build_response_format
from .tools import ServerTools, build_server_tool, build_tool, list_server_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph(SharedAgents):
    """Agent graphs of a session.

    Attributes:
        build_main: Builds the graph that the caller talks to, on a checkpointer; lists the tools of MCP servers first.
        tools: The tools of all agents.
        options: Keyword arguments for the graph's run calls.
        config: What a user's `config` adds to that of the thread.
        saver: The checkpointer of an attached graph.
        inner: Whether a stream's consumer also wants the events of graphs inside the main one.
        blocking: Whether an attached graph is run by `invoke` and `stream`.
        earlier_turns: How many earlier messages an attached graph lets its model see for sure; None for all.
        probing: Makes the context in which turns of an attached graph run.
    """

    build_main: Callable[[Any], Awaitable[Any]]
    tools: tuple[ToolSpec, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    saver: Any = None
    inner: bool = False
    blocking: bool = False
    earlier_turns: int | None = None
    probing: Callable[[], AbstractContextManager[None]] = nullcontext


GateFactory = Callable[[Sequence[ToolSpec], str], Sequence[Any]]
"""Builds the middleware that gates an agent's tools, with the configuration of this name."""

GATE_CONFIGURATIONS: Mapping[str, dict[str, Any]] = {
    "": {"allowed_decisions": ["approve", "edit", "reject"]},
    "misspelt": {"allowed_decision": ["approve", "edit", "reject"]},
    "empty": {"allowed_decisions": []},
}
"""Allowed decisions of a gate, by the option `gate`: the right ones, and mistakes that users make."""

MISNAMED = "misnamed"
"""The option `gate` for a right configuration of tools that do not exist."""


def build_agents(blueprint: Blueprint, gate: GateFactory | None, *, own: bool = False) -> AgentGraph:
    """Build the graphs that *blueprint* describes.

    Args:
        blueprint: What the agents are.
        gate: Builds the middleware that gates tools; with None the tools ask themselves.
        own: Build custom graphs around a `ToolNode`.
    """
    names = _agent_names(blueprint.tools)
    configuration = str(blueprint.options.get("gate", ""))
    team = team_members(blueprint.tools)
    graph_names = {name: blueprint.names.get(name, name) for name in names}

    async def build_main(saver: Any) -> Any:
        agents: dict[str, Any] = {}
        server_tools = await list_server_tools(blueprint.servers)
        for name in names:
            specs = [_decide_by_annotations(spec, server_tools) for spec in blueprint.tools if spec.agent == name]
            tools = [_build_agent_tool(spec, agents, server_tools, graph_names, asking=gate is None) for spec in specs]
            # The main graph keeps the thread; a graph that a tool runs inherits its checkpointer, unless it must not.
            inherited = False if blueprint.options.get("sub_agents") == "stateless" else None
            answer = blueprint.answer if name == MAIN else {}
            checkpointer = saver if name == MAIN and not team else inherited
            model = (
                build_provider_model(name, blueprint.model, reasoning=blueprint.reasoning)
                if blueprint.model
                else ScriptedModel(agent=name)
            )
            if own:
                agents[name] = build_tool_node_graph(graph_names[name], model, tools, checkpointer)
                continue
            middleware = [*_limit_middleware(blueprint.limits), *(gate(specs, configuration) if gate else ())]
            agents[name] = _build_agent(graph_names[name], model, tools, middleware, checkpointer, answer)
        members = {graph_names[name]: agents[name] for name in team}
        return build_team_graph(members, saver) if team else agents[MAIN]

    return AgentGraph(build_main=build_main, tools=blueprint.tools, inner=bool(team))


def _decide_by_annotations(spec: ToolSpec, server_tools: ServerTools) -> ToolSpec:
    """Return a tool with the gate that the application decides on when it has listed the tools of the servers."""
    if not spec.by_annotations:
        return spec
    annotations = server_tools[spec.agent, spec.name].metadata
    return replace(spec, approval="always" if needs_approval_by_annotations(annotations) else "never")


def _build_agent_tool(
    spec: ToolSpec,
    agents: Mapping[str, Any],
    server_tools: ServerTools,
    graph_names: Mapping[str, str],
    *,
    asking: bool,
) -> Any:
    if spec.hands_over_to:
        return build_handoff_tool(spec, graph_names[spec.hands_over_to])
    if spec.kind == "mcp":
        return build_server_tool(spec, server_tools[spec.agent, spec.name], asking=asking)
    return build_tool(spec, agents, asking=asking)


def _build_agent(
    name: str, model: Any, tools: list[Any], middleware: list[Any], saver: Any, answer: Mapping[str, Parameter]
) -> Any:
    try:
        from langchain.agents import create_agent
    except ImportError:
        # Before LangChain 1.0 this was LangGraph's own; it has no middleware, and needs none if tools ask.
        from langgraph.prebuilt import create_react_agent

        return create_react_agent(model, tools, checkpointer=saver, name=name)
    form = build_response_format(answer) if answer else None
    return create_agent(model, tools, middleware=middleware, checkpointer=saver, name=name, response_format=form)


def _agent_names(specs: Iterable[ToolSpec]) -> list[str]:
    names = [MAIN]
    for spec in specs:
        names += [
            name for name in (spec.agent, spec.runs, spec.hands_over_to) if name is not None and name not in names
        ]
    return names


# --- middleware -------------------------------------------------------------------------------------------------------


def batched_gate(specs: Sequence[ToolSpec], configuration: str) -> list[Any]:
    """Ask once for all gated calls of a reply."""
    return _build_gate(specs, configuration)


def per_call_gate(specs: Sequence[ToolSpec], configuration: str) -> list[Any]:
    """Ask for each gated call."""
    return _build_gate(specs, configuration, interrupt_mode="per_call")


def retry_gate(specs: Sequence[ToolSpec], configuration: str) -> list[Any]:
    """Ask for each gated call, inside a `ToolRetryMiddleware`.

    A tool's exception that a scenario stages is not retried, because a retry is a second run of the tool. A sub-agent
    whose model fails is retried at once.
    """
    from langchain.agents.middleware import ToolRetryMiddleware

    retry: Any = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False, retry_on=_is_transient)
    return [retry, *per_call_gate(specs, configuration)]


def _is_transient(error: Exception) -> bool:
    return isinstance(error, ModelDown) or not isinstance(error, ContractError)


def _build_gate(specs: Sequence[ToolSpec], configuration: str, **options: Any) -> list[Any]:
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    policies = {
        _gated_name(spec, configuration): _gate_policy(spec, configuration)
        for spec in specs
        if spec.approval != "never"
    }
    return [HumanInTheLoopMiddleware(policies, **options)]


def _gated_name(spec: ToolSpec, configuration: str) -> str:
    return f"{spec.name}s" if configuration == MISNAMED else spec.name


def _gate_policy(spec: ToolSpec, configuration: str) -> Any:
    # The description is the only text of a request other than the call; requests of sub-agents are told apart by it.
    policy: dict[str, Any] = {
        **GATE_CONFIGURATIONS.get(configuration, GATE_CONFIGURATIONS[""]),
        "description": spec.agent,
    }
    if isinstance(spec.approval, Condition):
        policy["when"] = _gate_condition(spec)
    return policy


def _gate_condition(spec: ToolSpec) -> Callable[[Any], bool]:
    def when(request: Any) -> bool:
        call = request.tool_call
        return current_world().gate(spec.name, call["args"], call["id"], agent=spec.agent)

    return when


def _limit_middleware(limits: Limits) -> list[Any]:
    if limits.model_replies is None and limits.tool_calls is None:
        return []
    from langchain.agents.middleware import ModelCallLimitMiddleware, ToolCallLimitMiddleware

    middleware: list[Any] = []
    if limits.model_replies is not None:
        middleware.append(ModelCallLimitMiddleware(run_limit=limits.model_replies, exit_behavior="error"))
    if limits.tool_calls is not None:
        middleware.append(ToolCallLimitMiddleware(run_limit=limits.tool_calls, exit_behavior="error"))
    return middleware


# --- other graphs -----------------------------------------------------------------------------------------------------


class TeamState(MessagesState):
    """State of the outer graph: the messages, the agent that has the conversation, and the answer of the main one."""

    active: str
    structured_response: Any


def team_members(specs: Iterable[ToolSpec]) -> list[str]:
    """Return the agents that share the conversation; none if no tool hands it over."""
    handoffs = [spec for spec in specs if spec.hands_over_to]
    return list(dict.fromkeys([MAIN, *(str(spec.hands_over_to) for spec in handoffs)])) if handoffs else []


def build_team_graph(members: Mapping[str, Any], saver: Any) -> Any:
    """Build the graph around *members*, the first of which begins; a run begins at the active one."""
    graph = StateGraph(TeamState)
    for name, agent in members.items():
        graph.add_node(name, agent)
    first = next(iter(members))

    def active_agent(state: TeamState) -> str:
        return str(state.get("active") or first)

    # With `from __future__ import annotations` the framework would see texts.
    active_agent.__annotations__ = {"state": TeamState, "return": str}
    graph.add_conditional_edges(START, active_agent, list(members))
    return graph.compile(checkpointer=saver)


def build_handoff_tool(spec: ToolSpec, target: str) -> StructuredTool:
    """Build the tool that hands over the conversation with all its messages, to the node *target*."""

    def hand_over(
        state: Annotated[dict[str, Any], InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Any:
        message = ToolMessage(f"Transferred to {target}.", name=spec.name, tool_call_id=tool_call_id)
        update = {"active": target, "messages": [*state["messages"], message]}
        return Command(goto=target, graph=Command.PARENT, update=update)

    # With `from __future__ import annotations` the framework would see texts.
    hand_over.__annotations__ = {
        "state": Annotated[dict[str, Any], InjectedState],
        "tool_call_id": Annotated[str, InjectedToolCallId],
    }
    return StructuredTool.from_function(hand_over, name=spec.name, description=spec.description)


def build_tool_node_graph(name: str, model: Any, tools: Sequence[Any], checkpointer: Any) -> Any:
    """Build the custom graph of the agent called *name*."""
    bound_model = model.bind_tools(tools)

    async def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound_model.ainvoke(state["messages"])]}

    def ask_blocking(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound_model.invoke(state["messages"])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", RunnableLambda(ask_blocking, afunc=ask))
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=checkpointer, name=name)

"""Agents that hand the conversation over to each other: a graph around their graphs.

It is what the guide "Handoffs" has for agents that are graphs of their own: a tool gives a `Command` to the graph
around its own one, which goes on at the other agent and keeps in its state who has the conversation.

A graph of one's own around a `ToolNode`, as the guides of LangGraph have it: one node runs all calls of a reply.

The graphs that a session runs: `create_agent` for each agent of a blueprint, gated in the flavour's way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import Command

from ...contract import MAIN, Blueprint, Condition, ContractError, Limits, ModelDown, Parameter, ToolSpec
from ...kit.context import current_world
from .model import ScriptedModel, build_provider_model, build_response_format
from .tools import ServerTools, build_server_tool, build_tool, list_server_tools


class TeamState(MessagesState):
    """The state of the graph around: the messages, and the agent that has the conversation."""

    active: str


def team_members(specs: Iterable[ToolSpec]) -> list[str]:
    """Gives the agents that share the conversation; none where nobody hands it over."""
    handing = [spec for spec in specs if spec.hands_over_to]
    return list(dict.fromkeys([MAIN, *(str(spec.hands_over_to) for spec in handing)])) if handing else []


def build_team_graph(agents: Mapping[str, Any], names: list[str], saver: Any) -> Any:
    """Gives the graph around those of *names*, which begins each run at the agent that has the conversation."""
    graph = StateGraph(TeamState)
    for name in names:
        graph.add_node(name, agents[name])
    graph.add_conditional_edges(START, _active_agent, names)
    return graph.compile(checkpointer=saver)


def _active_agent(state: Mapping[str, Any]) -> str:
    return str(state.get("active") or MAIN)


def build_handoff_tool(spec: ToolSpec) -> StructuredTool:
    """Gives the tool that hands over, with all that was said."""

    def hand_over(
        state: Annotated[dict[str, Any], InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Any:
        target = str(spec.hands_over_to)
        told = ToolMessage(f"Transferred to {target}.", name=spec.name, tool_call_id=tool_call_id)
        update = {"active": target, "messages": [*state["messages"], told]}
        return Command(goto=target, graph=Command.PARENT, update=update)

    # The annotations are looked up in this module, where they are texts.
    hand_over.__annotations__ = {
        "state": Annotated[dict[str, Any], InjectedState],
        "tool_call_id": Annotated[str, InjectedToolCallId],
    }
    return StructuredTool.from_function(hand_over, name=spec.name, description=spec.description)


def build_tool_node_graph(name: str, model: Any, tools: Sequence[Any], checkpointer: Any) -> Any:
    """Gives the graph of the agent called *name*."""
    offering = model.bind_tools(tools)

    async def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await offering.ainvoke(state["messages"])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=checkpointer, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph:
    """
    The graphs of a session.

    Attributes:
        main: Gives the graph that the caller talks to, on a checkpointer; it lists the tools of servers first.
        options: Keyword arguments for the graph's run calls.
        saver: The checkpointer that a person's own graph has.
        inner: What a consumer of the stream wants to see happens in graphs inside of the main one.
        release: Undoes what was done to a person's own graph.
        sessions: The driven sessions that use the crew, by identity.
    """

    main: Callable[[Any], Awaitable[Any]]
    tools: tuple[ToolSpec, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    saver: Any = None
    inner: bool = False
    release: Callable[[], None] = lambda: None
    sessions: set[int] = field(default_factory=set)

    def let_go(self, session: object) -> None:
        """Takes *session* from those that use the crew, and releases the graph when it was the last one."""
        if id(session) in self.sessions:
            self.sessions.discard(id(session))
            if not self.sessions:
                self.release()


GateFactory = Callable[[Sequence[ToolSpec], str], Sequence[Any]]
"""Gives the middleware that gates an agent's tools, configured rightly or as one of `GATE_CONFIGURATIONS` says."""

GATE_CONFIGURATIONS: Mapping[str, dict[str, Any]] = {
    "": {"allowed_decisions": ["approve", "edit", "reject"]},
    "misspelt": {"allowed_decision": ["approve", "edit", "reject"]},
    "empty": {"allowed_decisions": []},
}
"""What a gate's configuration says of decisions, by the option `gate`."""

MISNAMED = "misnamed"
"""The option `gate` where the configuration says the right things of tools that do not exist."""


def build_agents(blueprint: Blueprint, gate: GateFactory | None, *, own: bool = False) -> AgentGraph:
    """
    Makes the graphs that *blueprint* describes.

    Arguments:
        gate: None lets the tools ask from within.
        own: The agents are graphs of one's own around a `ToolNode`.
    """
    names = _agent_names(blueprint.tools)
    written = str(blueprint.options.get("gate", ""))
    team = team_members(blueprint.tools)

    async def main(saver: Any) -> Any:
        agents: dict[str, Any] = {}
        served = await list_server_tools(blueprint.servers)
        for name in names:
            specs = [spec for spec in blueprint.tools if spec.agent == name]
            tools = [_build_agent_tool(spec, agents, served, asking=gate is None) for spec in specs]
            # The main graph keeps the thread; a graph that a tool runs inherits its checkpointer, unless it must not.
            inherited = False if blueprint.options.get("sub_agents") == "stateless" else None
            answer = blueprint.answer if name == MAIN else {}
            kept = saver if name == MAIN and not team else inherited
            model = build_provider_model(name, blueprint.model) if blueprint.model else ScriptedModel(agent=name)
            if own:
                agents[name] = build_tool_node_graph(name, model, tools, kept)
                continue
            middleware = [*_limit_middleware(blueprint.limits), *(gate(specs, written) if gate else ())]
            agents[name] = _build_agent(name, model, tools, middleware, kept, answer)
        return build_team_graph(agents, team, saver) if team else agents[MAIN]

    return AgentGraph(main=main, tools=blueprint.tools, inner=bool(team))


def _build_agent_tool(spec: ToolSpec, agents: Mapping[str, Any], served: ServerTools, *, asking: bool) -> Any:
    if spec.hands_over_to:
        return build_handoff_tool(spec)
    if spec.kind == "mcp":
        return build_server_tool(spec, served[spec.agent, spec.name], asking=asking)
    return build_tool(spec, agents, asking=asking)


def _build_agent(
    name: str, model: Any, tools: list[Any], middleware: list[Any], saver: Any, answer: Mapping[str, Parameter]
) -> Any:
    try:
        from langchain.agents import create_agent
    except ImportError:
        # Before LangChain 1.0 this was LangGraph's own; it has no middleware, and needs none where tools ask.
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


def batched_gate(specs: Sequence[ToolSpec], written: str) -> list[Any]:
    """Asks once for all gated calls of a reply."""
    return _build_gate(specs, written)


def per_call_gate(specs: Sequence[ToolSpec], written: str) -> list[Any]:
    """Asks for each gated call."""
    return _build_gate(specs, written, interrupt_mode="per_call")


def retry_gate(specs: Sequence[ToolSpec], written: str) -> list[Any]:
    """
    Asks for each gated call, inside of a `ToolRetryMiddleware`.

    What a scenario lets a tool raise is not retried, because a second run of the tool is what a retry is for. A
    sub-agent whose model fails goes on at once.
    """
    from langchain.agents.middleware import ToolRetryMiddleware

    retry: Any = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False, retry_on=_is_transient)
    return [retry, *per_call_gate(specs, written)]


def _is_transient(error: Exception) -> bool:
    return isinstance(error, ModelDown) or not isinstance(error, ContractError)


def _build_gate(specs: Sequence[ToolSpec], written: str, **options: Any) -> list[Any]:
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    gated = {_gated_name(spec, written): _gate_policy(spec, written) for spec in specs if spec.approval != "never"}
    return [HumanInTheLoopMiddleware(gated, **options)]


def _gated_name(spec: ToolSpec, written: str) -> str:
    return f"{spec.name}s" if written == MISNAMED else spec.name


def _gate_policy(spec: ToolSpec, written: str) -> Any:
    # The description is what a request has to tell a person more than the call; here, who makes it.
    policy: dict[str, Any] = {**GATE_CONFIGURATIONS.get(written, GATE_CONFIGURATIONS[""]), "description": spec.agent}
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

"""The graphs that a session runs: `create_agent` for each agent of a blueprint, gated in the flavour's way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...contract import MAIN, Blueprint, Condition, ContractError, Limits, ModelDown, Parameter, ToolSpec
from ...current import world
from .model import ScriptedModel
from .own import own_graph
from .reached import reached
from .servers import Offered, offered
from .structured import response_format
from .team import around, handing_over, members
from .tools import made, of_server


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
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


Gate = Callable[[Sequence[ToolSpec], str], Sequence[Any]]
"""Gives the middleware that gates an agent's tools, configured rightly or as one of `MISTAKES` says."""

MISTAKES: Mapping[str, dict[str, Any]] = {
    "": {"allowed_decisions": ["approve", "edit", "reject"]},
    "misspelt": {"allowed_decision": ["approve", "edit", "reject"]},
    "empty": {"allowed_decisions": []},
}
"""What a gate's configuration says of decisions, by the option `gate`."""

MISNAMED = "misnamed"
"""The option `gate` where the configuration says the right things of tools that do not exist."""


def made_crew(blueprint: Blueprint, gate: Gate | None, *, own: bool = False) -> Crew:
    """
    Makes the graphs that *blueprint* describes.

    Arguments:
        gate: None lets the tools ask from within.
        own: The agents are graphs of one's own around a `ToolNode`.
    """
    names = _names(blueprint.tools)
    written = str(blueprint.options.get("gate", ""))
    team = members(blueprint.tools)

    async def main(saver: Any) -> Any:
        agents: dict[str, Any] = {}
        served = await offered(blueprint.servers)
        for name in names:
            specs = [spec for spec in blueprint.tools if spec.agent == name]
            tools = [_tool(spec, agents, served, asking=gate is None) for spec in specs]
            # The main graph keeps the thread; a graph that a tool runs inherits its checkpointer, unless it must not.
            inherited = False if blueprint.options.get("sub_agents") == "stateless" else None
            answer = blueprint.answer if name == MAIN else {}
            kept = saver if name == MAIN and not team else inherited
            model = reached(name, blueprint.model) if blueprint.model else ScriptedModel(agent=name)
            if own:
                agents[name] = own_graph(name, model, tools, kept)
                continue
            middleware = [*_limits(blueprint.limits), *(gate(specs, written) if gate else ())]
            agents[name] = _agent(name, model, tools, middleware, kept, answer)
        return around(agents, team, saver) if team else agents[MAIN]

    return Crew(main=main, tools=blueprint.tools, inner=bool(team))


def _tool(spec: ToolSpec, agents: Mapping[str, Any], served: Offered, *, asking: bool) -> Any:
    if spec.hands_over_to:
        return handing_over(spec)
    if spec.kind == "mcp":
        return of_server(spec, served[spec.agent, spec.name], asking=asking)
    return made(spec, agents, asking=asking)


def _agent(
    name: str, model: Any, tools: list[Any], middleware: list[Any], saver: Any, answer: Mapping[str, Parameter]
) -> Any:
    try:
        from langchain.agents import create_agent
    except ImportError:
        # Before LangChain 1.0 this was LangGraph's own; it has no middleware, and needs none where tools ask.
        from langgraph.prebuilt import create_react_agent

        return create_react_agent(model, tools, checkpointer=saver, name=name)
    form = response_format(answer) if answer else None
    return create_agent(model, tools, middleware=middleware, checkpointer=saver, name=name, response_format=form)


def _names(specs: Iterable[ToolSpec]) -> list[str]:
    names = [MAIN]
    for spec in specs:
        names += [
            name for name in (spec.agent, spec.runs, spec.hands_over_to) if name is not None and name not in names
        ]
    return names


# --- middleware -------------------------------------------------------------------------------------------------------


def batched(specs: Sequence[ToolSpec], written: str) -> list[Any]:
    """Asks once for all gated calls of a reply."""
    return _gate(specs, written)


def per_call(specs: Sequence[ToolSpec], written: str) -> list[Any]:
    """Asks for each gated call."""
    return _gate(specs, written, interrupt_mode="per_call")


def retried(specs: Sequence[ToolSpec], written: str) -> list[Any]:
    """
    Asks for each gated call, inside of a `ToolRetryMiddleware`.

    What a scenario lets a tool raise is not retried, because a second run of the tool is what a retry is for. A
    sub-agent whose model fails goes on at once.
    """
    from langchain.agents.middleware import ToolRetryMiddleware

    retry: Any = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False, retry_on=_transient)
    return [retry, *per_call(specs, written)]


def _transient(error: Exception) -> bool:
    return isinstance(error, ModelDown) or not isinstance(error, ContractError)


def _gate(specs: Sequence[ToolSpec], written: str, **options: Any) -> list[Any]:
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    gated = {_named(spec, written): _policy(spec, written) for spec in specs if spec.approval != "never"}
    return [HumanInTheLoopMiddleware(gated, **options)]


def _named(spec: ToolSpec, written: str) -> str:
    return f"{spec.name}s" if written == MISNAMED else spec.name


def _policy(spec: ToolSpec, written: str) -> Any:
    # The description is what a request has to tell a person more than the call; here, who makes it.
    policy: dict[str, Any] = {**MISTAKES.get(written, MISTAKES[""]), "description": spec.agent}
    if isinstance(spec.approval, Condition):
        policy["when"] = _when(spec)
    return policy


def _when(spec: ToolSpec) -> Callable[[Any], bool]:
    def when(request: Any) -> bool:
        call = request.tool_call
        return world().gate(spec.name, call["args"], call["id"], agent=spec.agent)

    return when


def _limits(limits: Limits) -> list[Any]:
    if limits.model_replies is None and limits.tool_calls is None:
        return []
    from langchain.agents.middleware import ModelCallLimitMiddleware, ToolCallLimitMiddleware

    middleware: list[Any] = []
    if limits.model_replies is not None:
        middleware.append(ModelCallLimitMiddleware(run_limit=limits.model_replies, exit_behavior="error"))
    if limits.tool_calls is not None:
        middleware.append(ToolCallLimitMiddleware(run_limit=limits.tool_calls, exit_behavior="error"))
    return middleware

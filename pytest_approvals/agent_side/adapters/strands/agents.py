"""The agents of a blueprint: what all sessions share, and what makes the agent of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from strands import Agent

from ...contract import MAIN, Blueprint, ToolSpec
from ...kit.tool_schema import build_fields_model
from .gates import ApprovalHook, build_handler, build_human_in_the_loop, build_middleware
from .messages import ANSWER
from .metadata import CAN_GIVE_UP
from .model import ScriptedModel, build_provider_model
from .tools import build_mcp_client, build_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """
    How an agent's tools are gated.

    Attributes:
        options: Gives keyword arguments for the agent.
        around: Gives a handler of the stage in which tools run; None where the gate needs none.
        asking: The bodies of gated tools ask.
    """

    options: Callable[[Sequence[ToolSpec]], dict[str, Any]] = lambda specs: {}
    around: Callable[[Sequence[ToolSpec]], Any] | None = None
    asking: bool = False


def _sequential_options(specs: Sequence[ToolSpec]) -> dict[str, Any]:
    from strands.tools.executors import SequentialToolExecutor

    return {"hooks": [ApprovalHook(specs)], "tool_executor": SequentialToolExecutor()}


def _hook_for_others_options(specs: Sequence[ToolSpec]) -> dict[str, Any]:
    return {"hooks": [ApprovalHook([spec for spec in specs if not _can_ask(spec)])]}


def _can_ask(spec: ToolSpec) -> bool:
    """Says whether the tool has a body to write a question in; an agent and a server's tool have none."""
    return spec.runs is None and spec.kind == "function"


GATES: dict[str, Gate] = {
    "hook": Gate(options=lambda specs: {"hooks": [ApprovalHook(specs)]}),
    "sequential": Gate(options=_sequential_options),
    "tool": Gate(options=_hook_for_others_options, asking=True),
    "middleware": Gate(around=build_middleware),
    "handler": Gate(options=lambda specs: {"interventions": [build_handler(specs)]}),
    "intervention": Gate(options=lambda specs: {"interventions": [build_human_in_the_loop(specs)]}),
}
"""The gates, by the names that the flavours have for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph:
    """
    What the sessions on one agent share.

    Attributes:
        main: Makes the agent of one session, with a session manager or None.
        options: Keyword arguments for the agent's run calls.
        release: Undoes what was done to a person's own agent; ends the connections of agents that were made here.
        sessions: The driven sessions that use the crew, by identity.
    """

    main: Callable[[Any], Any]
    tools: tuple[ToolSpec, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    release: Callable[[], None] = lambda: None
    sessions: set[int] = field(default_factory=set)

    def let_go(self, session: object) -> None:
        """Takes *session* from those that use the crew, and releases the agent when it was the last one."""
        if id(session) in self.sessions:
            self.sessions.discard(id(session))
            if not self.sessions:
                self.release()


def build_agents(blueprint: Blueprint, gate: Gate) -> AgentGraph:
    """Makes what the sessions of *blueprint* share: models, tools, gates and the agents that tools run."""
    build = _AgentBuilder(blueprint, gate)
    own = build.options(MAIN)
    if blueprint.answer:
        own["structured_output_model"] = build_fields_model(ANSWER, blueprint.answer)

    def main(manager: Any) -> Any:
        return build.agent(MAIN, {**own, "session_manager": manager, "agent_id": MAIN})

    return AgentGraph(main=main, tools=blueprint.tools, options=_limit_options(blueprint), release=build.disconnect)


class _AgentBuilder:
    """Builds agents, each with the tools that are agents themselves."""

    def __init__(self, blueprint: Blueprint, gate: Gate) -> None:
        self._specs = blueprint.tools
        self._servers = blueprint.servers
        self._address = blueprint.model
        self._connected: list[Any] = []
        self._gate = gate

    def options(self, name: str) -> dict[str, Any]:
        """Gives what the agent called *name* is made with, whoever it is made for."""
        own = [spec for spec in self._specs if spec.agent == name]
        offered = [*(self._tool(spec) for spec in own if spec.kind != "mcp"), *self._clients(name)]
        made = {"tools": offered, "name": name}
        return {**made, **self._model(name), **self._gate.options(own)}

    def agent(self, name: str, options: Mapping[str, Any]) -> Any:
        """Makes an agent."""
        agent = Agent(callback_handler=None, **options)
        if self._gate.around is not None:
            from strands.middleware import ExecuteToolStage

            own = [spec for spec in self._specs if spec.agent == name]
            agent.add_middleware(ExecuteToolStage, self._gate.around(own))
        return agent

    def _model(self, name: str) -> dict[str, Any]:
        if self._address is None:
            return {"model": ScriptedModel(name)}
        # A script says what is answered to each request, so that nothing is asked twice.
        once = {"retry_strategy": None} if CAN_GIVE_UP else {}
        return {"model": build_provider_model(name, self._address), **once}

    def _clients(self, name: str) -> list[Any]:
        addresses = [one for one in self._servers if one.agent == name]
        if not addresses:
            return []
        clients = [build_mcp_client(one) for one in addresses]
        self._connected += clients
        return clients

    def disconnect(self) -> None:
        """Ends the connections to servers."""
        for client in self._connected:
            client.stop(None, None, None)

    def _tool(self, spec: ToolSpec) -> Any:
        if spec.runs is not None:
            inner = self.agent(spec.runs, self.options(spec.runs))
            return inner.as_tool(name=spec.name, description=spec.description or spec.name)
        return build_tool(spec, asking=self._gate.asking)


def _limit_options(blueprint: Blueprint) -> dict[str, Any]:
    replies = blueprint.limits.model_replies
    return {} if replies is None else {"limits": {"turns": replies}}

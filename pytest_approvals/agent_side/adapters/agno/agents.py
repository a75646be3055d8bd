"""The agent or team that sessions run, made from a blueprint."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from agno.agent import Agent
from agno.models.base import Model

from ...contract import MAIN, Blueprint, ServerAddress, ToolSpec
from ...kit.tool_schema import build_fields_model
from .messages import Delegations
from .model import ScriptedModel, build_provider_model
from .tools import build_tools

HISTORY_RUNS = 100
"""How many earlier runs a model is shown: all of any scenario; by default it would be three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph:
    """
    What the sessions of one adapter object share.

    Attributes:
        main: The framework's agent or team that the caller talks to.
        options: Keyword arguments for its run calls.
        db: A person's own database.
        release: Undoes what was done to a person's own agent.
        sessions: The driven sessions that use the crew, by identity.
    """

    main: Any
    tools: tuple[ToolSpec, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    db: Any = None
    release: Callable[[], None] = lambda: None
    sessions: set[int] = field(default_factory=set)

    def let_go(self, session: object) -> None:
        """Takes *session* from those that use the crew, and releases the agent when it was the last one."""
        if id(session) in self.sessions:
            self.sessions.discard(id(session))
            if not self.sessions:
                self.release()


def build_agent(blueprint: Blueprint, **marks: Any) -> AgentGraph:
    """
    Makes the one agent of *blueprint*.

    Arguments:
        marks: More arguments for the decorator of gated tools.
    """
    own = [spec for spec in blueprint.tools if spec.agent == MAIN]
    tools = build_tools(own, _servers_of(MAIN, blueprint), marks)
    return AgentGraph(
        main=_build_framework_agent(MAIN, blueprint, tools, **_main_options(blueprint)), tools=blueprint.tools
    )


def build_team(blueprint: Blueprint, **options: Any) -> AgentGraph:
    """Makes a team: each agent that runs others is the leader of those that it runs."""
    return AgentGraph(main=_build_member(MAIN, blueprint, **_main_options(blueprint), **options), tools=blueprint.tools)


def _main_options(blueprint: Blueprint) -> dict[str, Any]:
    options: dict[str, Any] = {"add_history_to_context": True, "num_history_runs": HISTORY_RUNS}
    if blueprint.limits.tool_calls is not None:
        options["tool_call_limit"] = blueprint.limits.tool_calls
    if blueprint.answer:
        options["output_schema"] = build_fields_model("Answer", blueprint.answer)
    return options


def _servers_of(name: str, blueprint: Blueprint) -> list[ServerAddress]:
    return [one for one in blueprint.servers if one.agent == name]


def _build_framework_agent(name: str, blueprint: Blueprint, tools: list[Any], **options: Any) -> Agent:
    return Agent(model=_build_model(name, blueprint), id=name, name=name, tools=tools, telemetry=False, **options)


def _build_member(name: str, blueprint: Blueprint, **options: Any) -> Any:
    from agno.team import Team

    own = [spec for spec in blueprint.tools if spec.agent == name]
    members = list(dict.fromkeys(spec.runs for spec in own if spec.runs is not None))
    tools = build_tools([spec for spec in own if spec.runs is None], _servers_of(name, blueprint))
    if name != MAIN and not members:
        return _build_framework_agent(name, blueprint, tools)
    return Team(
        members=[_build_member(member, blueprint) for member in members],
        model=_build_model(name, blueprint, own),
        id=name,
        name=name,
        tools=tools,
        telemetry=False,
        **options,
    )


def _build_model(name: str, blueprint: Blueprint, own: Iterable[ToolSpec] = ()) -> Model:
    if blueprint.model is not None:
        return build_provider_model(name, blueprint.model)
    return ScriptedModel(name, Delegations.of(own))

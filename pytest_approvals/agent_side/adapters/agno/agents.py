"""Agent or team that sessions run, built from a blueprint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agno.agent import Agent
from agno.models.base import Model

from ...contract import MAIN, Blueprint, ServerAddress, ToolSpec
from ...kit.probes import SharedAgents
from ...kit.tool_schema import build_fields_model
from .messages import Delegations
from .model import ScriptedModel, build_provider_model
from .tools import build_tools

HISTORY_RUNS = 100
"""Number of earlier runs that a model gets: all of any scenario; the default is three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph(SharedAgents):
    """What the sessions of one adapter object share.

    Attributes:
        main: The framework's agent or team that the caller talks to.
        tools: The tools of all agents.
        names: The framework's names of the agents that were renamed, by their names in the tools.
        options: Keyword arguments for its run calls.
        db: The database of an attached agent.
        external: The bodies of tools that the application executes itself, by agent and name.
        earlier_turns: How many earlier runs an attached agent or team adds to the context; None for all.
        is_workflow: An attached workflow is run.
    """

    main: Any
    tools: tuple[ToolSpec, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    db: Any = None
    external: dict[tuple[str, str], Any] = field(default_factory=dict)
    earlier_turns: int | None = None
    is_workflow: bool = False


def build_agent(blueprint: Blueprint, **marks: Any) -> AgentGraph:
    """Build the one agent of *blueprint*.

    Args:
        blueprint: What the agent is.
        marks: More arguments for the decorator of gated tools.
    """
    specs = [spec for spec in blueprint.tools if spec.agent == MAIN]
    tools = build_tools(specs, _servers_of(MAIN, blueprint), marks)
    return AgentGraph(
        main=_build_framework_agent(MAIN, blueprint, tools, **_main_options(blueprint)),
        tools=blueprint.tools,
        names=blueprint.names,
    )


def build_team(blueprint: Blueprint, **options: Any) -> AgentGraph:
    """Build a team: each agent that runs others is the leader of those that it runs."""
    main = _build_member(MAIN, blueprint, **_main_options(blueprint), **options)
    return AgentGraph(main=main, tools=blueprint.tools, names=blueprint.names)


def _main_options(blueprint: Blueprint) -> dict[str, Any]:
    options: dict[str, Any] = {"add_history_to_context": True, "num_history_runs": HISTORY_RUNS}
    if blueprint.limits.tool_calls is not None:
        options["tool_call_limit"] = blueprint.limits.tool_calls
    if blueprint.answer:
        options["output_schema"] = build_fields_model("Answer", blueprint.answer)
    return options


def _servers_of(name: str, blueprint: Blueprint) -> list[ServerAddress]:
    return [address for address in blueprint.servers if address.agent == name]


def _build_framework_agent(name: str, blueprint: Blueprint, tools: list[Any], **options: Any) -> Agent:
    called = blueprint.names.get(name, name)
    return Agent(model=_build_model(name, blueprint), id=called, name=called, tools=tools, telemetry=False, **options)


def _build_member(name: str, blueprint: Blueprint, **options: Any) -> Any:
    from agno.team import Team

    specs = [spec for spec in blueprint.tools if spec.agent == name]
    # Several tools may run one member, and a team has each of its members once.
    members = list(dict.fromkeys(spec.runs for spec in specs if spec.runs is not None))
    tools = build_tools([spec for spec in specs if spec.runs is None], _servers_of(name, blueprint))
    if name != MAIN and not members:
        return _build_framework_agent(name, blueprint, tools)
    called = blueprint.names.get(name, name)
    return Team(
        members=[_build_member(member, blueprint) for member in members],
        model=_build_model(name, blueprint, specs),
        id=called,
        name=called,
        tools=tools,
        # Telemetry would ask the network.
        telemetry=False,
        **options,
    )


def _build_model(name: str, blueprint: Blueprint, specs: Iterable[ToolSpec] = ()) -> Model:
    if blueprint.model is not None:
        return build_provider_model(name, blueprint.model, reasoning=blueprint.reasoning)
    return ScriptedModel(name, Delegations.from_specs(specs, blueprint.names))

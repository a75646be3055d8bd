"""`pytest-approvals show`: the story of a scenario, what it needs, and the variants in which agents run it."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.catalogues import chosen, project_folders, root_of
from pytest_approvals.cli.parser import Parser

if TYPE_CHECKING:
    from pytest_approvals.agents import LocalAgent
    from pytest_approvals.scenario.parts import Scenario, Tool

WIDTH = 100


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("scenarios", nargs="+", metavar="SCENARIO", help="ids, families, patterns, files or folders")
    parser.add_argument("--agent", metavar="SPEC", action="append", help="list the variants of these agents by name")


def execute(args: argparse.Namespace) -> int:
    """Tells each scenario."""
    from pytest_approvals.agents import AgentSpec, local_agent, local_agents
    from pytest_approvals.scenario.load import load_scenario

    here = Path.cwd()
    named = [local_agent(AgentSpec.parse(spec)) for spec in args.agent or ()]
    agents = named or [agent for agent in local_agents() if not agent.spec.flavour]
    paths = chosen(args.scenarios, here).values()
    scenarios = [load_scenario(path, root=root_of(path, project_folders(here))) for path in paths]
    print("\n\n".join("\n".join(_told(scenario, agents, by_name=bool(named))) for scenario in scenarios))
    return 0


def _told(scenario: Scenario, agents: list[LocalAgent], *, by_name: bool) -> Iterator[str]:
    from pytest_approvals.scenario.requirements import required_by_content

    yield f"{scenario.id}: {scenario.title}"
    if scenario.about:
        yield textwrap.fill(scenario.about, WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield f"\n  in       {_shown(scenario)}"
    if scenario.sources:
        yield f"  sources  {', '.join(scenario.sources)}"
    needs = sorted(required_by_content(scenario))
    yield textwrap.fill(f"  needs    {', '.join(needs) or 'nothing'}", WIDTH, subsequent_indent=" " * 11)
    yield "\ntools"
    yield from (f"  {_tool(tool)}" for tool in scenario.tools)
    yield "\non the reference agent\n"
    yield textwrap.indent(_transcript(scenario).rstrip(), "  ")
    yield "\nvariants"
    yield from (line for agent in agents for line in _variants(scenario, agent, by_name=by_name))


def _tool(tool: Tool) -> str:
    parameters = ", ".join(f"{name}: {one.type}{'' if one.required else '?'}" for name, one in tool.parameters.items())
    kind = "" if tool.kind == "function" else f", {tool.kind} of {tool.server}"
    approval = tool.approval if isinstance(tool.approval, str) else "on a condition"
    runs = f", runs the agent {tool.runs}" if tool.runs else ""
    return f"{tool.key}({parameters}): approval {approval}{kind}{runs}"


def _transcript(scenario: Scenario) -> str:
    """Plays the scenario on the reference agent, in its plainest variant."""
    from pytest_approvals.agents import AgentSpec, runnable
    from pytest_approvals.harness.run import run_scenario
    from pytest_approvals.journal.transcript import Transcript
    from pytest_approvals.pytest_side.candidates import REFERENCE, source_of
    from pytest_approvals.pytest_side.waiting import wait_for
    from pytest_approvals.scenario.variants import variants

    source = source_of(runnable(AgentSpec(name=REFERENCE)))
    plainest = variants(scenario, source.facts)[:1]
    if not plainest:
        return "it cannot be played there"
    return Transcript.of(wait_for(run_scenario(scenario, plainest[0], source)).events).render()


def _variants(scenario: Scenario, agent: LocalAgent, *, by_name: bool) -> Iterator[str]:
    from pytest_approvals.scenario.variants import missing_capabilities, variants

    found = variants(scenario, agent.adapter)
    name = f"  {agent.spec!s:20}"
    if not found:
        missing = ", ".join(sorted(missing_capabilities(scenario, agent.adapter)))
        yield f"{name} not applicable: it lacks {missing}"
    else:
        yield f"{name} {len(found)}"
        yield from (f"    {variant.id}" for variant in found if by_name)


def _shown(scenario: Scenario) -> str:
    path = Path(scenario.path or "")
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)

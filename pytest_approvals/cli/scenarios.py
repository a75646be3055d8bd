"""Commands on scenario files: `list`, `show`, `schema` and `native`."""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.errors import FileError, UsageError
from pytest_approvals.scenario.catalogue import find_project_folders, find_root, select_scenarios

if TYPE_CHECKING:
    from pytest_approvals.agents.adapters import LocalAgent
    from pytest_approvals.scenario.model import Scenario, Tool


_TITLE = re.compile(r"^title:\s*(.+?)\s*$", re.MULTILINE)


def add_list_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="ids, families, patterns, files or folders")


def execute_list(args: argparse.Namespace) -> int:
    """Print id and title of each scenario, with a paragraph for each family."""
    paths = select_scenarios(args.scenarios, Path.cwd())
    width = max(map(len, paths))
    family = None
    for name, path in paths.items():
        if family not in (None, name.rpartition("/")[0]):
            print()
        family = name.rpartition("/")[0]
        print(f"{name:{width}}  {_read_title(path)}")
    print(f"\n{len(paths)} scenarios. pytest-approvals show SCENARIO shows one of them.")
    return 0


def _read_title(path: Path) -> str:
    # The title alone is read, because loading and judging all files would take seconds.
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = _TITLE.search(text)
    return match[1].strip("\"'") if match else ""


TEXT_WIDTH = 100


def add_show_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("scenarios", nargs="+", metavar="SCENARIO", help="ids, families, patterns, files or folders")
    parser.add_argument("--agent", metavar="SPEC", action="append", help="list the variants of these agents by name")


def execute_show(args: argparse.Namespace) -> int:
    """Print each scenario, its transcript and its variants."""
    from pytest_approvals.agents.adapters import find_local_agent, list_local_agents
    from pytest_approvals.agents.spec import AgentSpec
    from pytest_approvals.scenario.load import load_scenario

    here = Path.cwd()
    named = [find_local_agent(AgentSpec.parse(spec)) for spec in args.agent or ()]
    agents = named or [agent for agent in list_local_agents() if not agent.spec.flavour]
    paths = select_scenarios(args.scenarios, here).values()
    scenarios = [load_scenario(path, root=find_root(path, find_project_folders(here))) for path in paths]
    print("\n\n".join("\n".join(_describe_scenario(scenario, agents, by_name=bool(named))) for scenario in scenarios))
    return 0


def _describe_scenario(scenario: Scenario, agents: list[LocalAgent], *, by_name: bool) -> Iterator[str]:
    from pytest_approvals.scenario.requirements import required_by_content

    yield f"{scenario.id}: {scenario.title}"
    if scenario.about:
        yield textwrap.fill(scenario.about, TEXT_WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield f"\n  in       {_relative_path(scenario)}"
    if scenario.sources:
        yield f"  sources  {', '.join(scenario.sources)}"
    needs = sorted(required_by_content(scenario))
    yield textwrap.fill(f"  needs    {', '.join(needs) or 'nothing'}", TEXT_WIDTH, subsequent_indent=" " * 11)
    yield "\ntools"
    yield from (f"  {_describe_tool(tool)}" for tool in scenario.tools)
    yield "\non the reference agent\n"
    yield textwrap.indent(_reference_transcript(scenario).rstrip(), "  ")
    yield "\nvariants"
    yield from (line for agent in agents for line in _list_variants(scenario, agent, by_name=by_name))


def _describe_tool(tool: Tool) -> str:
    parameters = ", ".join(
        f"{name}: {parameter.type}{'' if parameter.required else '?'}" for name, parameter in tool.parameters.items()
    )
    kind = "" if tool.kind == "function" else f", {tool.kind} of {tool.server}"
    approval = tool.approval if isinstance(tool.approval, str) else "on a condition"
    runs = f", runs the agent {tool.runs}" if tool.runs else ""
    return f"{tool.key}({parameters}): approval {approval}{kind}{runs}"


def _reference_transcript(scenario: Scenario) -> str:
    """Return the transcript of the scenario on the reference agent, in its plainest variant."""
    from pytest_approvals.agents.adapters import resolve_local_agent
    from pytest_approvals.agents.sources import REFERENCE, create_source
    from pytest_approvals.agents.spec import AgentSpec
    from pytest_approvals.journal.transcript import Transcript
    from pytest_approvals.runner.event_loops import run_coroutine
    from pytest_approvals.runner.run import run_scenario
    from pytest_approvals.scenario.variants import plan_variants

    source = create_source(resolve_local_agent(AgentSpec(name=REFERENCE)))
    plainest = plan_variants(scenario, source.facts)[:1]
    if not plainest:
        return "it cannot be played there"
    return Transcript.of(run_coroutine(run_scenario(scenario, plainest[0], source)).events).render()


def _list_variants(scenario: Scenario, agent: LocalAgent, *, by_name: bool) -> Iterator[str]:
    from pytest_approvals.agent_side.contract.metadata import get_facts
    from pytest_approvals.scenario.variants import missing_capabilities, plan_variants

    facts = get_facts(agent.adapter)
    variants = plan_variants(scenario, facts)
    name = f"  {agent.spec!s:20}"
    if not variants:
        missing = ", ".join(sorted(missing_capabilities(scenario, facts)))
        yield f"{name} not applicable: it lacks {missing}"
    else:
        yield f"{name} {len(variants)}"
        yield from (f"    {variant.id}" for variant in variants if by_name)


def _relative_path(scenario: Scenario) -> str:
    path = Path(scenario.path or "")
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def add_schema_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command, which has none."""


def execute_schema(args: argparse.Namespace) -> int:
    """Print the schema."""
    from pytest_approvals.scenario.schema import json_schema

    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0


def add_native_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("scenario", metavar="SCENARIO", help="the id of a scenario, or its file")
    parser.add_argument("--agent", metavar="SPEC", required=True, help="the agent, NAME or NAME==VERSION")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the script to this file")


def execute_native(args: argparse.Namespace) -> int:
    """Print the script of a scenario, or write it to a file."""
    from pytest_approvals.agents.spec import AgentSpec
    from pytest_approvals.scenario.load import load_scenario
    from pytest_approvals.scenario.native_scripts import format_command, write_native_script

    here = Path.cwd()
    paths = list(select_scenarios([args.scenario], here).values())
    if len(paths) > 1:
        raise UsageError(f"{args.scenario} is {len(paths)} scenarios; name one of them")
    scenario = load_scenario(paths[0], root=find_root(paths[0], find_project_folders(here)))
    script = write_native_script(scenario, AgentSpec.parse(args.agent))
    if args.output is None:
        print(script, end="")
        return 0
    command = format_command(script, args.output)
    if "&& node" in command and Path(args.output).suffix != ".mjs":
        raise UsageError(f"{args.output}: the script is a module of JavaScript; choose a name that ends with .mjs")
    # Python looks beside a script first, so that the script would import itself.
    if (module := Path(args.output).stem) in re.findall(r"^(?:from|import) (\w+)", script, re.MULTILINE):
        raise UsageError(f"{args.output}: the script imports {module!r}; choose another name")
    try:
        Path(args.output).write_text(script, encoding="utf-8")
    except OSError as error:
        raise FileError(args.output, None, f"cannot write file: {error.strerror}") from None
    print(f"{args.output} plays {scenario.id}: {command}")
    return 0

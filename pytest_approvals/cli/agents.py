"""Commands on agents: `agents`, `environments`, `new-adapter` and `conformance`."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.adapters import (
    PROJECT_SUFFIX,
    LocalAgent,
    find_local_agent,
    list_adapter_names,
    load_flavours,
)
from pytest_approvals.agents.package_registries import get_registry
from pytest_approvals.agents.pins import get_pinned_release
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.errors import AdapterError, UsageError
from pytest_approvals.scenario.catalogue import stock_folder

if TYPE_CHECKING:
    from pytest_approvals.agents.environments import CachedEnvironment, EnvironmentCache
    from pytest_approvals.agents.environments.cache import EnvironmentSize


TRAIT_TIME_LIMIT = 5.0
"""Seconds for one run of an agent whose traits are observed."""


def add_agents_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "agents", nargs="*", metavar="SPEC", help="show everything about these agents (default: a line for each)"
    )
    parser.add_argument(
        "--traits", action="store_true", help="run the catalogue on these agents, and show their design choices"
    )


def execute_agents(args: argparse.Namespace) -> int:
    """Print a line for each agent, or everything about the named ones."""
    if args.agents:
        for number, text in enumerate(args.agents):
            agent = find_local_agent(AgentSpec.parse(text))
            print("\n" * bool(number) + _describe_agent(agent))
            if args.traits:
                print("\n".join(_list_traits(agent.spec)))
            else:
                print(f"  traits: pytest-approvals agents {agent.spec} --traits observes its design choices")
        return 0
    if args.traits:
        raise UsageError("--traits: name the agents: pytest-approvals agents SPEC --traits")
    rows = [row for name in list_adapter_names() for row in _agent_rows(name)]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:2]]
    for name, state, more in rows:
        print(f"{name:{widths[0]}}  {state:{widths[1]}}  {more}".rstrip())
    print("\npytest-approvals agents SPEC shows what an agent can and cannot do.")
    return 0


def _agent_rows(name: str) -> Iterator[tuple[str, str, str]]:
    try:
        agents = [find_local_agent(AgentSpec(name=name, flavour=flavour)) for flavour in load_flavours(name)]
    except AdapterError as error:
        yield name, error.what, ""
    else:
        yield from (
            (str(agent.spec), _availability(agent), f"{len(agent.adapter.capabilities)} capabilities")
            for agent in agents
        )


def _availability(agent: LocalAgent) -> str:
    if agent.framework is None:
        return "ready"
    if agent.available:
        return f"ready: {agent.framework} {agent.version}"
    release = get_pinned_release(agent.framework, agent.adapter.registry)
    if release is not None:
        return f"in an environment: {agent.framework} {release}"
    return f"not here: {get_registry(agent.adapter.registry).install} {agent.framework}"


def _describe_agent(agent: LocalAgent) -> str:
    adapter = agent.adapter
    lines = [f"{agent.spec}: {_availability(agent)}"]
    lines += [f"  in {agent.where}"] if agent.where else []
    lines += [f"  plays its releases: {', '.join(each.release or '' for each in adapter.releases)}"] * bool(
        adapter.releases
    )
    lines += [f"  bugs of the framework: {adapter.issues}"] if adapter.issues else []
    lines += [f"  rules of its model inputs: {adapter.wire_rules}"]
    lines += [_describe_protocol(protocol, lacks) for protocol, lacks in adapter.protocols.items()]
    lines += [f"  store native.{name}: {description}" for name, description in adapter.stores.items()]
    lines += [_wrap("can: " + ", ".join(sorted(adapter.capabilities)))]
    missing = describe_adapter(adapter).missing
    lines += ["  cannot:"] if missing else []
    lines += [_wrap(f"{name}: {why}", "    ") for name, why in sorted(missing.items())]
    return "\n".join(lines)


def _list_traits(spec: AgentSpec) -> Iterator[str]:
    """Yield the design choices of an agent that are neither right nor wrong."""
    from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
    from pytest_approvals.checks import TRAITS
    from pytest_approvals.scenario.load import load_catalogue

    catalogue = {scenario.id: scenario for scenario in load_catalogue([stock_folder()])}
    runs = AgentRuns(AgentRelease(spec=spec), catalogue, TRAIT_TIME_LIMIT)
    yield "  traits:"
    for name, values in runs.traits().items():
        yield _wrap(f"{name}: {', '.join(values)}. {TRAITS[name].description}", "    ")


def _describe_protocol(protocol: str, lacks: Mapping[str, str]) -> str:
    but = "; ".join(f"without {name}: {why}" for name, why in lacks.items())
    return _wrap(f"reaches its model over {protocol}" + (f", {but}" if but else ""))


def _wrap(text: str, indent: str = "  ") -> str:
    return textwrap.fill(text, 100, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)


DAY = 24 * 3600.0


def add_environments_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--prune", action="store_true", help="remove environments that were not used for a long time, or are damaged"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before --prune removes something")
    parser.add_argument(
        "--older-than",
        type=float,
        default=30.0,
        metavar="DAYS",
        help="days without use after which --prune removes an environment (default: 30)",
    )


def execute_environments(args: argparse.Namespace) -> int:
    """List the environments, or remove old ones."""
    from pytest_approvals.agents.environments import EnvironmentCache

    if args.older_than < 0:
        raise UsageError(f"--older-than: Invalid number {args.older_than:g}: too small")
    cache = EnvironmentCache()
    if args.prune:
        _prune_environments(cache, args.older_than * DAY, asks=sys.stdin.isatty() and not args.yes)
        return 0
    environments = cache.list_environments()
    _print_environments(environments)
    print(f"{len(environments)} environments in {cache.folder}")
    return 0


def _prune_environments(cache: EnvironmentCache, unused_for: float, *, asks: bool) -> None:
    """Print what is removed and how much that is, ask if wanted, and remove it."""
    removable = cache.find_removable(unused_for)
    if removable:
        print("to be removed:")
        sizes = _print_environments(removable)
        total, shared = (sum(parts) / 1e6 for parts in zip(*sizes, strict=True))
        stays = f"; {shared:.0f} MB of that also belong to another folder, usually the cache of uv, and stay"
        print(f"{len(removable)} environments, {total:.0f} MB{stays if shared else ''}")
        if asks and not _confirm("Remove them?"):
            removable = []
    removed = 0
    for environment in removable:
        if cache.remove(environment):
            removed += 1
            print(f"removed {environment.key}  {environment.recipe}")
        else:
            print(f"left    {environment.key}  another process uses it by now, or it cannot be removed")
    print(f"{removed} removed, {len(cache.list_environments())} left in {cache.folder}")


def _print_environments(environments: Iterable[CachedEnvironment]) -> list[EnvironmentSize]:
    """Print a line for each environment, and return their sizes."""
    now, sizes = time.time(), []
    for environment in environments:
        sizes.append(environment.measure())
        size, days = sizes[-1].total / 1e6, max(0.0, (now - environment.used) / DAY)
        print(f"{environment.key}  {size:5.0f} MB  used {days:3.0f} days ago  {environment.recipe}")
    return sizes


def _confirm(question: str) -> bool:
    """Ask on the terminal; return whether the answer is yes."""
    print(f"{question} [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


_ADAPTER_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_TEMPLATES = Path(__file__).parent / "templates"


def add_new_adapter_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", metavar="NAME", help="the name of the agent: lower-case letters, digits and _")


def execute_new_adapter(args: argparse.Namespace) -> int:
    """Write both files into the current folder, and print the next step."""
    name: str = args.name
    if not _ADAPTER_NAME.fullmatch(name):
        raise UsageError(f"Invalid adapter name {name!r}: expected lower-case letters, digits and single _")
    files = {
        Path(f"{name}{PROJECT_SUFFIX}.py"): "adapter.txt",
        Path(f"test_{name}{PROJECT_SUFFIX}.py"): "test.txt",
    }
    for path in files:
        if path.exists():
            raise UsageError(f"{path} exists already")
    if name in list_adapter_names():
        raise UsageError(f"there is an agent called {name!r} already; pytest-approvals agents lists them")
    for path, template in files.items():
        path.write_text(_fill_template(template, name), encoding="utf-8")
        print(f"wrote {path}")
    print(f"\npytest test_{name}{PROJECT_SUFFIX}.py says what is left to do.")
    return 0


def _fill_template(template: str, name: str) -> str:
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    class_name = "".join(word.title() for word in name.split("_"))
    return Template(text).substitute(name=name, class_name=class_name)


def add_conformance_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.usage = "pytest-approvals conformance [OPTIONS] -- COMMAND [ARGUMENTS]"
    parser.add_argument(
        "--agent", default="agent", metavar="NAME", help="what the process is to drive, as `hello` says"
    )
    parser.add_argument(
        "--scenario",
        action="append",
        default=[],
        metavar="SCENARIO",
        help="the stories that are played, by id or family (default: basics and parallel)",
    )
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="what starts the process, after `--`")


def execute_conformance(args: argparse.Namespace) -> int:
    """Print a line for each rule, and one for each scenario that fails; return 1 if something does."""
    from pytest_approvals.testing.host import FAMILIES, RULES, run_catalogue
    from pytest_approvals.testing.host.rules import check_rules

    if not args.command:
        raise UsageError("name the command that starts the process: pytest-approvals conformance -- node host.mjs")
    broken = check_rules(args.command, args.agent)
    # The first rule is the greeting; a process that breaks it was tested on nothing else.
    tried = [*RULES] if not broken or broken[0].name != next(iter(RULES)) else [broken[0].name]
    for name in tried:
        finding = next((rule for rule in broken if rule.name == name), None)
        print(f"{'fails' if finding else 'ok':6}{name}{f': {finding.requirement}' if finding else ''}")
        if finding:
            print(f"      {finding.what}")
    if broken:
        print(f"\n{len(broken)} of {len(RULES)} rules are broken; no story was played")
        return 1
    failed = run_catalogue(args.command, args.agent, args.scenario or FAMILIES)
    for story in failed:
        print(f"fails {story.name}: {story.requirement}\n      {story.what}")
    print(f"\nall rules hold; {f'{len(failed)} stories fail' if failed else 'all stories that were played hold'}")
    return int(bool(failed))

"""`pytest-approvals agents`: which agents can run here, and what they can and cannot do."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping

from pytest_approvals.agents import AgentSpec, LocalAgent, adapter_names, flavours, local_agent
from pytest_approvals.cli.parser import Parser
from pytest_approvals.errors import AdapterError
from pytest_approvals.pins import pinned
from pytest_approvals.registries import registry_named


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument(
        "agents", nargs="*", metavar="SPEC", help="tell all about these agents (default: a line for each)"
    )


def execute(args: argparse.Namespace) -> int:
    """Prints a line for each agent, or all about those that were named."""
    if args.agents:
        print("\n\n".join(_all_about(local_agent(AgentSpec.parse(spec))) for spec in args.agents))
        return 0
    rows = [row for name in adapter_names() for row in _rows(name)]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:2]]
    for name, state, more in rows:
        print(f"{name:{widths[0]}}  {state:{widths[1]}}  {more}".rstrip())
    print("\npytest-approvals agents SPEC tells what an agent can and cannot do.")
    return 0


def _rows(name: str) -> Iterator[tuple[str, str, str]]:
    try:
        found = [local_agent(AgentSpec(name=name, flavour=flavour)) for flavour in flavours(name)]
    except AdapterError as error:
        yield name, error.what, ""
    else:
        yield from ((str(one.spec), _state(one), f"{len(one.adapter.capabilities)} capabilities") for one in found)


def _state(agent: LocalAgent) -> str:
    if agent.framework is None:
        return "ready"
    if agent.available:
        return f"ready: {agent.framework} {agent.version}"
    release = pinned(agent.framework, agent.adapter.registry)
    if release is not None:
        return f"in an environment: {agent.framework} {release}"
    return f"not here: {registry_named(agent.adapter.registry).install} {agent.framework}"


def _all_about(agent: LocalAgent) -> str:
    adapter = agent.adapter
    lines = [f"{agent.spec}: {_state(agent)}"]
    lines += [f"  in {agent.where}"] if agent.where else []
    lines += [f"  plays its releases: {', '.join(each.release or '' for each in adapter.releases)}"] * bool(
        adapter.releases
    )
    lines += [f"  bugs of the framework: {adapter.issues}"] if adapter.issues else []
    lines += [f"  rules of its model inputs: {adapter.wire_rules}"]
    lines += [_over(protocol, lacks) for protocol, lacks in adapter.protocols.items()]
    lines += [f"  store native.{name}: {what}" for name, what in adapter.stores.items()]
    lines += [_wrapped("can: " + ", ".join(sorted(adapter.capabilities)))]
    lines += ["  cannot:"] if adapter.missing else []
    lines += [_wrapped(f"{name}: {why}", "    ") for name, why in sorted(adapter.missing.items())]
    return "\n".join(lines)


def _over(protocol: str, lacks: Mapping[str, str]) -> str:
    but = "; ".join(f"without {name}: {why}" for name, why in lacks.items())
    return _wrapped(f"reaches its model over {protocol}" + (f", {but}" if but else ""))


def _wrapped(text: str, indent: str = "  ") -> str:
    return textwrap.fill(text, 100, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)

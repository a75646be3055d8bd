"""Command `conformance`: test whether an agent process in any language conforms to the host protocol."""

from __future__ import annotations

import argparse

from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.errors import UsageError


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
    from pytest_approvals.testing.host import FAMILIES, RULES
    from pytest_approvals.testing.host.catalogue import run_catalogue
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

"""`pytest-approvals bisect`: the release of an agent that changed a verdict."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from pytest_approvals.agents import AgentSpec, adapter_of
from pytest_approvals.cli.parser import Parser
from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.versions import release_order

if TYPE_CHECKING:
    from pytest_approvals.recall.bisect import Change


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("--agent", required=True, metavar="NAME", help="the agent, NAME or NAME.FLAVOUR")
    parser.add_argument("--check", required=True, metavar="SLUG", help="the check whose verdict changed")
    parser.add_argument("--good", required=True, metavar="VERSION", help="a release on which it does not fail")
    parser.add_argument("--bad", required=True, metavar="VERSION", help="a release on which it fails; older or newer")
    parser.add_argument(
        "--scenario", action="append", default=[], metavar="SCENARIO", help="ids, families, patterns, files or folders"
    )
    parser.add_argument("--with", dest="requirements", action="append", default=[], metavar="REQUIREMENT")
    parser.add_argument("--python", default="", metavar="VERSION", help="the Python of the environments")
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="time limit of one run (default: 10)"
    )


def execute(args: argparse.Namespace) -> int:
    """Finds the release and says so."""
    from pytest_approvals.catalogues import chosen
    from pytest_approvals.checks import CHECKS
    from pytest_approvals.recall.bisect import bisected, telling
    from pytest_approvals.recall.suspects import Suspect
    from pytest_approvals.recall.table import Release
    from pytest_approvals.scenario.load import load_scenario

    if args.check not in CHECKS:
        raise UnknownName("check", args.check, CHECKS)
    files = chosen(args.scenario, Path.cwd())
    versions = _versions(args)
    catalogue = {name: load_scenario(path, root=_root(name, path)) for name, path in files.items()}

    @cache
    def suspect(version: str) -> Suspect:
        spec = AgentSpec.parse(f"{args.agent}=={version}")
        release = Release(spec=spec, requirements=tuple(args.requirements), python=args.python)
        return Suspect(release, catalogue, args.time_limit)

    together = CHECKS[args.check].group is not None
    witness = telling(args.check, suspect(versions[0]), suspect(versions[-1]), catalogue, together=together)
    print(f"{witness}: {args.check} holds in {versions[0]} and fails in {versions[-1]}", flush=True)
    change = bisected(witness, versions, suspect, step=lambda version, what: print(f"{version}: {what}", flush=True))
    print(_said(args.agent, change))
    return 0


def _said(agent: str, change: Change) -> str:
    between = f"; not judged in between: {', '.join(change.between)}" if change.between else ""
    older, newer = sorted((change.last, change.first), key=release_order)
    how = (
        f"came with {agent}=={newer}, and is not in {older}"
        if newer == change.first
        else (f"went with {agent}=={newer}, and is still in {older}")
    )
    rerun = f"pytest-approvals run {change.witness.scenario} --agent {agent}=={change.first}"
    return f"the failure {how}{between}\n{rerun}"


def _root(name: str, path: Path) -> Path:
    """Gives the folder that the id of a scenario counts from."""
    return path.parents[name.count("/")]


def _versions(args: argparse.Namespace) -> tuple[str, ...]:
    """Gives the releases from the good one to the bad one, both included."""
    from pytest_approvals.releases import releases_of

    spec = AgentSpec.parse(args.agent)
    played = [each.release or "" for each in adapter_of(spec).releases]
    if spec.version or spec.checkout or not (played or adapter_of(spec).framework):
        raise UsageError(f"--agent: {args.agent!r} has no releases; write NAME or NAME.FLAVOUR of a framework's agent")
    good, bad = (_order(option, text, played) for option, text in (("--good", args.good), ("--bad", args.bad)))
    if good == bad:
        raise UsageError(f"--good and --bad are both {args.good}")
    low, high = sorted((good, bad))
    known = played or releases_of(spec, f">={low[1]},<={high[1]}", python=args.python)
    inside = [one for one in known if low < release_order(one) < high]
    return (args.good, *(inside if good < bad else reversed(inside)), args.bad)


def _order(option: str, text: str, played: Sequence[str]) -> tuple[bool, Version, str]:
    """Gives the place of a release in the order of all: a version, or one of those that an agent plays itself."""
    order = release_order(text)
    if (played and text not in played) or (not played and order[0]):
        raise UsageError(f"{option}: {text!r} is no version" + (f"; there are {', '.join(played)}" if played else ""))
    return order

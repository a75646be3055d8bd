"""`pytest-approvals environments`: the environments that were made for agents, and how they are removed."""

from __future__ import annotations

import argparse
import time

from pytest_approvals.cli.parser import Parser
from pytest_approvals.errors import UsageError

DAY = 24 * 3600.0


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("--prune", action="store_true", help="remove those that nobody uses and nobody used for long")
    parser.add_argument(
        "--older-than", type=float, default=30.0, metavar="DAYS", help="how long is long, for --prune (default: 30)"
    )


def execute(args: argparse.Namespace) -> int:
    """Lists the environments, or removes old ones."""
    from pytest_approvals.harness.environments import EnvironmentCache

    if args.older_than < 0:
        raise UsageError(f"--older-than: {args.older_than:g} is too small")
    cache, now = EnvironmentCache(), time.time()
    if args.prune:
        gone = [print(f"removed {one.key}  {one.recipe}") for one in cache.prune(args.older_than * DAY)]
        print(f"{len(gone)} removed, {len(cache.built())} left in {cache.folder}")
        return 0
    for one in cache.built():
        days = max(0.0, (now - one.used) / DAY)
        print(f"{one.key}  {one.size() / 1e6:5.0f} MB  used {days:3.0f} days ago  {one.recipe}")
    print(f"{len(cache.built())} environments in {cache.folder}")
    return 0

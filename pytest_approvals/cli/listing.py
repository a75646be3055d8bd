"""`pytest-approvals list`: the scenarios."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from pytest_approvals.catalogues import chosen
from pytest_approvals.cli.parser import Parser

_TITLE = re.compile(r"^title:\s*(.+?)\s*$", re.MULTILINE)


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="ids, families, patterns, files or folders")


def execute(args: argparse.Namespace) -> int:
    """Prints id and title of each scenario, a paragraph a family."""
    found = chosen(args.scenarios, Path.cwd())
    width = max(map(len, found))
    family = None
    for name, path in found.items():
        if family not in (None, name.rpartition("/")[0]):
            print()
        family = name.rpartition("/")[0]
        print(f"{name:{width}}  {_title(path)}")
    print(f"\n{len(found)} scenarios. pytest-approvals show SCENARIO tells one of them.")
    return 0


def _title(path: Path) -> str:
    # The title alone is read, because loading and judging all files would take seconds.
    match = _TITLE.search(path.read_text(encoding="utf-8"))
    return match[1].strip("\"'") if match else ""

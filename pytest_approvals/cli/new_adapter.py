"""`pytest-approvals new-adapter NAME`: a commented adapter and its test, to be filled in."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from string import Template

from pytest_approvals.agents import PROJECT_ENDING, adapter_names
from pytest_approvals.cli.parser import Parser
from pytest_approvals.errors import UsageError

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_TEMPLATES = Path(__file__).parent / "templates"


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("name", metavar="NAME", help="what the agent will be called: small letters, digits and _")


def execute(args: argparse.Namespace) -> int:
    """Writes both files into the current folder, and says what comes next."""
    name: str = args.name
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of an adapter; write small letters, digits and single _")
    files = {
        Path(f"{name}{PROJECT_ENDING}.py"): "adapter.txt",
        Path(f"test_{name}{PROJECT_ENDING}.py"): "test.txt",
    }
    for path in files:
        if path.exists():
            raise UsageError(f"{path} is there already")
    if name in adapter_names():
        raise UsageError(f"there is an agent called {name!r} already; pytest-approvals agents lists them")
    for path, template in files.items():
        path.write_text(_filled(template, name), encoding="utf-8")
        print(f"wrote {path}")
    print(f"\npytest test_{name}{PROJECT_ENDING}.py says what is left to do.")
    return 0


def _filled(template: str, name: str) -> str:
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    class_name = "".join(word.title() for word in name.split("_"))
    return Template(text).substitute(name=name, class_name=class_name)

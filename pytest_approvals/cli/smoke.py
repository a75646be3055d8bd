"""`pytest-approvals smoke`: whether an agent runs at all."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_approvals.catalogues import scenarios_in, stock_folder
from pytest_approvals.cli.parser import Parser
from pytest_approvals.cli.run import run_pytest

FAMILY = "basics"
"""The scenarios that every agent must be able to play."""


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("--agent", metavar="SPEC", action="append", required=True, help="the agents to try")


def execute(args: argparse.Namespace) -> int:
    """Runs the plainest scenarios in their plainest variants."""
    from pytest_approvals.pytest_side.settings import settings_of

    texts = {"agents": args.agent, "strength": "1", "serialize": ["none"], "stream": "off", "answer": ["held"]}
    settings_of(texts, Path.cwd(), spell=lambda option: option.command)
    files = {name: path for name, path in scenarios_in([stock_folder()]).items() if name.startswith(f"{FAMILY}/")}
    return run_pytest(texts, files.values(), [])

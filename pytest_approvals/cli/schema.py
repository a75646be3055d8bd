"""`pytest-approvals schema`: the JSON Schema of scenario files, for editors and other tools."""

from __future__ import annotations

import argparse
import json

from pytest_approvals.cli.parser import Parser


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command: there are none."""


def execute(args: argparse.Namespace) -> int:
    """Prints the schema."""
    from pytest_approvals.scenario.schema import json_schema

    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0

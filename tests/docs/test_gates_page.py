"""The page about ways to gate a call, and the tests that it names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
AGENTS = ROOT / "tests" / "own_agents"
PAGE = ROOT / "docs" / "gates.md"


def test_every_way_to_gate_is_shown_by_a_test() -> None:
    """The page names all tests of gates, and no others."""
    named = set(re.findall(r"`(\w+/test_\w+\.py(?:::\w+)?)`", PAGE.read_text(encoding="utf-8")))
    tests = {
        f"{file.parent.name}/{file.name}::{node.name}"
        for file in AGENTS.glob("*/test_gates.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }

    assert tests == {name for name in named if "::" in name}
    assert [] == [name for name in named if "::" not in name and not (AGENTS / name).exists()]


def test_every_row_names_a_test() -> None:
    """No way to gate is only claimed."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]

    assert [] == [row for row in rows if not re.search(r"`\w+/test_\w+\.py(::\w+)?` \||`\w+/test_", row)]

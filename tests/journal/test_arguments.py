"""When two arguments are the same."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.journal.arguments import are_same_values, arguments_key, arguments_match, arguments_satisfy

BIG = 2**53
"""The first integer whose successor a double cannot hold."""


def declare(kind: str) -> dict[str, dict[str, Any]]:
    return {"x": {"type": kind, "required": True}}


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("integer", 5, "5"),
        ("integer", 5, 5.0),
        ("number", 5, 5.0),
        ("number", 5, "5.0"),
        ("number", BIG + 1, str(BIG + 1)),
        ("boolean", True, "true"),
    ],
    ids=str,
)
def test_a_lenient_validator_makes_them_the_same(kind: str, first: Any, second: Any) -> None:
    """Frameworks validate before they run a tool."""
    assert arguments_match({"x": first}, {"x": second}, declare(kind))


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("integer", 1, True),
        ("number", 0, False),
        ("integer", BIG, BIG + 1),
        ("number", BIG, BIG + 1),
        ("number", str(BIG), str(BIG + 1)),
        ("string", "\u00e9", "e\u0301"),
        ("string", None, ""),
        ("array", [1, [0]], [True, [False]]),
        ("object", {"y": 1}, {"y": True}),
        ("object", {"y": None}, {}),
    ],
    ids=str,
)
def test_values_of_other_types_are_others(kind: str, first: Any, second: Any) -> None:
    """Neither what was shown nor what ran may be one for the other."""
    shown, ran = {"x": first}, {"x": second}

    assert [False] * 3 == [
        arguments_match(shown, ran, declare(kind)),
        arguments_match(shown, ran),
        arguments_satisfy(ran, shown, declare(kind)),
    ]
    assert arguments_key(shown) != arguments_key(ran)


def test_lists_and_tuples_are_the_same() -> None:
    """JSON has one of them."""
    assert are_same_values([1, (2, "x")], (1, [2, "x"]))

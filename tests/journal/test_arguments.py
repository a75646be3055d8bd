"""When two arguments are the same."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.journal.arguments import (
    are_same_values,
    arguments_fit_exactly,
    arguments_key,
    arguments_match,
    arguments_satisfy,
    find_unmet_constraint,
)

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
    ("written", "ran", "same"), [(["b", "a"], ["a", "b"], True), (["a", "a"], ["a"], True), (["a"], ["b"], False)]
)
def test_what_a_tool_takes_as_a_set_has_no_order(written: list[str], ran: list[str], same: bool) -> None:
    """Its schema says that nothing is in it twice."""
    declared = {"x": {"type": "array", "required": True, "constraints": {"uniqueItems": True}}}

    assert same == arguments_match({"x": written}, {"x": ran}, declared)
    assert same == arguments_match({"x": {"y": written}}, {"x": {"y": ran}}, _nest(declared["x"]["constraints"]))


def _nest(constraints: dict[str, Any]) -> dict[str, dict[str, Any]]:
    part = {"type": "array", **constraints}
    return {"x": {"type": "object", "required": True, "constraints": {"properties": {"y": part}}}}


def test_a_strict_schema_has_defaults_of_what_it_demands() -> None:
    """The tool takes its default if the model leaves an argument out all the same."""
    declared = {"x": {"type": "integer", "required": True}, "y": {"type": "string", "required": True, "default": "z"}}

    assert arguments_match({"x": 5}, {"x": 5, "y": "z"}, declared)
    assert not arguments_match({"x": 5}, {"x": 5, "y": "other"}, declared)


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


FITTING: list[tuple[dict[str, Any], Any, Any]] = [
    ({"enum": ["bank", "shop"]}, "bank", "home"),
    ({"const": 1}, 1, True),
    ({"minimum": 0, "maximum": 23}, 23, 24),
    ({"exclusiveMinimum": 0, "exclusiveMaximum": 5}, 4.5, 5),
    ({"multipleOf": 5}, 10, 11),
    ({"minLength": 2, "maxLength": 3}, "abc", "a"),
    ({"pattern": "^[A-Z]+$"}, "EUR", "eur"),
    ({"format": "date"}, "2026-11-24", "tomorrow"),
    ({"format": "uuid"}, "12345678-1234-5678-1234-567812345678", "1234"),
    ({"minItems": 1, "maxItems": 2}, [1], []),
    ({"uniqueItems": True}, [1, 2], [1, 1]),
    ({"items": {"type": "integer"}}, [1, 2], [1, "2"]),
    ({"properties": {"to": {"enum": ["bank"]}}}, {"to": "bank"}, {"to": "home"}),
    ({"required": ["to"]}, {"to": "bank"}, {}),
    ({"properties": {"to": {}}, "additionalProperties": False}, {"to": 1}, {"from": 1}),
    ({"additionalProperties": {"type": "string"}}, {"to": "bank"}, {"to": 1}),
    ({"anyOf": [{"type": "integer", "minimum": 5}, {"type": "null"}]}, 5, 4),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, 0.5, 1),
    ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, 2, 3),
]
"""Constraints with a value that meets them and one that does not."""


@pytest.mark.parametrize(("constraints", "fitting", "other"), FITTING, ids=str)
def test_a_value_that_breaks_a_constraint_does_not_fit(constraints: dict[str, Any], fitting: Any, other: Any) -> None:
    """A framework that validates does not run the call."""
    declared = {"x": {"required": True, "constraints": constraints}}

    assert [True, False] == [arguments_fit_exactly({"x": value}, declared) for value in (fitting, other)]


@pytest.mark.parametrize(
    "constraints",
    [{"if": {"minimum": 5}}, {"format": "iri"}, {"pattern": r"\p{Lu}"}, {"$ref": "#/$defs/Node"}],
    ids=str,
)
def test_nobody_can_say_that_a_value_meets_what_is_not_known(constraints: dict[str, Any]) -> None:
    """Whether a framework must run the call is open."""
    assert not arguments_fit_exactly({"x": "A"}, {"x": {"type": "string", "constraints": constraints}})


@pytest.mark.parametrize(
    ("value", "constraints", "unmet"),
    [
        ({"days": 40}, {"properties": {"days": {"maximum": 30}}}, ("maximum", 30)),
        ({"days": 3}, {"properties": {"days": {"maximum": 30}, "hour": {"minimum": 8}}}, None),
        ([{"qty": 1}, {"qty": 0}], {"items": {"properties": {"qty": {"minimum": 1}}}}, ("minimum", 1)),
        ("40", {"properties": {"days": {"maximum": 30}}}, None),
        ({"days": 40}, {"anyOf": [{"properties": {"days": {"maximum": 30}}}, {"type": "object"}]}, None),
    ],
)
def test_parts_of_a_value_may_surely_not_fit(value, constraints, unmet):
    """Members of objects and elements of lists are judged as values by themselves."""
    assert unmet == find_unmet_constraint(value, constraints)

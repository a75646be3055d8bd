"""What fits a tool."""

from __future__ import annotations

import pytest

from pytest_approvals.agent_side.contract.types import Parameter, ToolSpec
from pytest_approvals.simulation.reference.arguments import Misfit, fit_arguments


def one(declared):
    return ToolSpec(name="t", parameters={"x": Parameter(type=declared)})


@pytest.mark.parametrize(
    ("declared", "given", "value"),
    [
        ("string", "a", "a"),
        ("integer", 5, 5),
        ("integer", "5", 5),
        ("integer", 5.0, 5),
        ("number", "5.5", 5.5),
        ("number", 5, 5),
        ("boolean", "True", True),
        ("boolean", False, False),
        ("array", [1], [1]),
        ("object", {"a": 1}, {"a": 1}),
        ("null", None, None),
        ("date", "2026-01-01", "2026-01-01"),
    ],
)
def test_values_are_coerced_to_the_declared_type(declared, given, value):
    """Where no meaning can be lost, a value is turned into what is declared; unknown types take anything."""
    assert {"x": value} == fit_arguments(one(declared), {"x": given})


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ("string", 5),
        ("string", None),
        ("integer", "five"),
        ("integer", 5.5),
        ("integer", True),
        ("number", "a"),
        ("number", False),
        ("boolean", "yes"),
        ("boolean", 1),
        ("array", "a"),
        ("object", []),
        ("null", 0),
    ],
)
def test_values_of_another_type_do_not_fit(declared, given):
    """Nothing is guessed."""
    with pytest.raises(Misfit, match=f"not of type {declared}"):
        fit_arguments(one(declared), {"x": given})


def test_what_fits_fits_again():
    """A call is held against its tool when it comes and before it runs; defaults that were filled in are there then."""
    spec = ToolSpec(name="t", parameters={"x": Parameter(type="integer"), "note": Parameter(required=False)})
    once = fit_arguments(spec, {"x": "5"})

    assert {"x": 5, "note": None} == once == fit_arguments(spec, once)


def test_a_tool_without_declared_parameters_takes_what_it_gets():
    """There is nothing to judge by."""
    assert {"any": 1} == fit_arguments(ToolSpec(name="t"), {"any": 1})


@pytest.mark.parametrize("given", ["x", "null", "[]", None, [], 5])
def test_what_is_no_object_does_not_fit(given):
    """Not even a tool that declares nothing takes it."""
    with pytest.raises(Misfit, match="not a JSON object"):
        fit_arguments(ToolSpec(name="t"), given)


def test_an_empty_text_is_no_arguments():
    """It fits a tool that needs none, and lacks what another one needs."""
    assert {} == fit_arguments(ToolSpec(name="t"), "")
    with pytest.raises(Misfit, match="'x' is missing"):
        fit_arguments(one("string"), "")

"""Exceptions cross a process boundary as what they are, or at least under their own name."""

from __future__ import annotations

import json

import pytest

from pytest_approvals.agent_side.contract import exceptions
from pytest_approvals.agent_side.contract.exceptions import (
    AsksAgain,
    ConditionRaised,
    ContractError,
    Elicits,
    ModelDown,
    ModelRefused,
    ScriptExhausted,
    ToolRaised,
    Unsupported,
    WaitsForAnswer,
)
from pytest_approvals.agent_side.rpc.remote_errors import RemoteError, RemoteFailure, to_exception, to_failure
from pytest_approvals.agent_side.rpc.serialization import from_json, to_json

RAISED = [
    ContractError("something"),
    Unsupported("cancel", "there is no such method"),
    ModelDown(0),
    ModelDown(429),
    ModelRefused("two results for c1"),
    ScriptExhausted("helper"),
    ToolRaised("no money"),
    AsksAgain("really?"),
    Elicits("how many?", {"type": "object"}),
    Elicits("log in", url="http://127.0.0.1/login"),
    WaitsForAnswer("the body asks"),
    ConditionRaised("unlucky"),
]


def crossed(error: BaseException) -> Exception:
    return to_exception(from_json(RemoteFailure, json.loads(json.dumps(to_json(to_failure(error))))))


@pytest.mark.parametrize("error", RAISED, ids=repr)
def test_a_failure_of_the_contract_comes_out_as_itself(error: Exception) -> None:
    """Type, message and attributes."""
    out = crossed(error)

    assert type(error) is type(out)
    assert str(error) == str(out)
    assert vars(error) == vars(out)


def test_every_failure_of_the_contract_is_tried_here() -> None:
    """A new one is noticed."""
    assert {type(error).__name__ for error in RAISED} == {
        name for name, kind in vars(exceptions).items() if isinstance(kind, type) and issubclass(kind, ContractError)
    }


def test_any_other_exception_keeps_its_name() -> None:
    """It is a `RemoteError` whose class has that name, the same class each time."""
    out = crossed(ZeroDivisionError("division by zero"))

    assert isinstance(out, RemoteError)
    assert ("ZeroDivisionError", "division by zero") == (type(out).__name__, str(out))
    assert "ZeroDivisionError" == out.original_type
    assert type(out) is type(crossed(ZeroDivisionError()))


def test_a_frameworks_own_kind_of_a_failure_is_both() -> None:
    """It has its own name, and is caught as the failure."""

    class RateLimited(ModelDown):
        pass

    out = crossed(RateLimited(429))

    assert isinstance(out, ModelDown)
    assert ("RateLimited", 429) == (type(out).__name__, out.status)


def test_a_name_that_only_looks_like_a_failure_is_none() -> None:
    """A type is known by what it is."""
    foreign = type("ToolRaised", (Exception,), {})

    assert not isinstance(crossed(foreign("no")), ToolRaised)
    assert "ToolRaised" == type(crossed(foreign("no"))).__name__


def test_attributes_that_cannot_cross_stay_behind() -> None:
    """The exception comes out without them."""
    error = ToolRaised("no")
    error.connection = object()  # type: ignore[attr-defined]

    assert {} == vars(crossed(error))


def test_a_message_that_cannot_be_had_is_replaced() -> None:
    """An exception whose text raises is an exception, too."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert "(its text is unavailable: ValueError)" == str(crossed(Mute()))


def test_names_of_other_languages_are_names() -> None:
    """Whatever characters they have."""
    out = to_exception(RemoteFailure(type="System.InvalidOperationException`1", message="no"))

    assert "System.InvalidOperationException`1" == type(out).__name__


def test_names_that_no_class_can_have_are_escaped() -> None:
    """Half of a surrogate pair and null characters are in the type that is told, not in the name of the class."""
    out = to_exception(RemoteFailure(type="Odd\ud800\0", message="no"))

    assert ("Odd\\ud800\\0", "Odd\ud800\0") == (type(out).__name__, out.original_type)


def test_fields_that_every_exception_has_are_left_alone() -> None:
    """A process cannot change what Python keeps there."""
    fields = {"args": 5, "__traceback__": "x", "__class__": "x", "reason": "r"}
    out = to_exception(RemoteFailure(type="ModelRefused", of="ModelRefused", message="no", fields=fields))

    assert (("no",), None, "r") == (out.args, out.__traceback__, out.reason)


def test_an_exception_brings_the_lines_that_led_to_it() -> None:
    """From the outermost one on, without lines of this package; of those of the contract nothing is told."""
    try:
        raise KeyError("x")
    except KeyError as error:
        out = crossed(error)

    assert [(__file__, "test_an_exception_brings_the_lines_that_led_to_it")] == [
        (line.file, line.function) for line in out.trace
    ]
    assert () == to_failure(ToolRaised("no money")).trace

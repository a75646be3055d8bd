"""Values cross a process boundary exactly, or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from pytest_approvals.agent_side.contract import types
from pytest_approvals.agent_side.contract.types import (
    Attachment,
    Blueprint,
    Chunk,
    Condition,
    Decision,
    HostedResult,
    Item,
    Limits,
    ModelCall,
    Parameter,
    Paused,
    Reply,
    Request,
    ToolSpec,
)
from pytest_approvals.agent_side.rpc import messages
from pytest_approvals.agent_side.rpc.serialization import (
    Handle,
    SerializationError,
    from_json,
    get_codec,
    to_json,
    to_json_safe,
)

TOOL = ToolSpec(
    name="pay",
    parameters={"amount": Parameter(type="integer", required=False, default=5), "to": Parameter()},
    description="Pays.",
    approval=Condition(argument="amount", one_of=(1, "2", None), answers=(True, False)),
    kind="mcp",
    server="bank",
    agent="helper",
    runs="payer",
    asks_again=True,
)
REQUEST = Request(id="r", call_id=None, tool="pay", arguments="{broken", kind="hosted_mcp", server="s", agent="helper")
CALL = ModelCall(id=None, tool="pay", arguments={"amount": 1.5, "deep": [{"a": [None, True]}]}, kind="mcp", server="s")
RESULT = HostedResult(call_id="h", tool="pay", server=None, arguments={}, output=None, error="no")

VALUES = [
    TOOL,
    ToolSpec(name="look", approval="always"),
    Blueprint(
        tools=(TOOL, ToolSpec(name="look")),
        limits=Limits(model_replies=3),
        serialize="native.sql",
        history="append",
        directory="there",
        options={"deep": {"a": [1, 2.5, "x", None, False]}},
        attachment=Attachment(subject="module:agent", gated=frozenset({"b", "a"}), run_options={"max": 1}),
    ),
    Attachment(subject="module:agent", gated=frozenset()),
    Attachment(subject="module:agent", gated=None, stubs=frozenset({"x"})),
    REQUEST,
    Decision(request=REQUEST, verdict="edit", arguments={"amount": 7}, tool="look", reason=""),
    Decision(request=None, verdict="raw", raw={"approved": "yes"}, address=[1]),
    Paused(requests=(REQUEST,), text="Wait."),
    Reply(say="", calls=(CALL,), hosted=(RESULT,), chunks=(Chunk(text=""), Chunk(call=0, arguments="{")), breaks=True),
    Item(kind="result", id="c1", tool="pay", arguments={"a": 1}, text="half \ud83d", approved=False, message=3),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_is_the_same_after_it_has_crossed(value: Any) -> None:
    """Through real JSON text."""
    assert value == from_json(type(value), json.loads(json.dumps(to_json(value))))


def test_what_holds_its_default_is_left_out() -> None:
    """So that lines are short, and a process in another language need not know all fields."""
    assert {"name": "look"} == to_json(ToolSpec(name="look"))
    assert {"kind": "user", "text": ""} == to_json(Item(kind="user", text=""))


def test_false_is_not_left_out_for_zero() -> None:
    """A default is compared with its type."""
    decision = Decision(request=None, verdict="raw", raw=0, address=False)

    assert {"request": None, "verdict": "raw", "raw": 0, "address": False} == to_json(decision)


@pytest.mark.parametrize(
    ("kind", "written", "said"),
    [
        (ToolSpec, {}, "'name' is missing in ToolSpec"),
        (ToolSpec, [], "expected object (ToolSpec), got [] (list)"),
        (ToolSpec, {"name": "x", "nmae": 1}, "ToolSpec has no field 'nmae'"),
        (ToolSpec, {"name": 5}, "name: expected string, got 5 (int)"),
        (ToolSpec, {"name": "x", "kind": "mpc"}, "kind: expected one of function, mcp, hosted_mcp, got 'mpc' (str)"),
        (ToolSpec, {"name": "x", "asks_again": 1}, "asks_again: expected boolean, got 1 (int)"),
        (
            ToolSpec,
            {"name": "x", "approval": "allways"},
            "approval: expected one of always, never, got 'allways' (str)",
        ),
        (ToolSpec, {"name": "x", "approval": {"argumet": "a"}}, "approval: Condition has no field 'argumet'"),
        (
            ToolSpec,
            {"name": "x", "approval": {"less_than": True}},
            "approval.less_than: expected number, got True (bool)",
        ),
        (Item, {"kind": "user", "message": True}, "message: expected integer, got True (bool)"),
        (Paused, {"requests": {}}, "requests: expected array, got {} (dict)"),
        (
            Paused,
            {"requests": [{"id": "r", "call_id": None, "tool": "t", "arguments": [1]}]},
            "requests[0].arguments: expected object, got [1] (list)",
        ),
        (
            Request,
            {"id": "r", "call_id": None, "tool": "t", "arguments": {}, "handle": [1]},
            "handle: expected null or [process, number], got [1] (list)",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_named(kind: type, written: Any, said: str) -> None:
    """With the path to it, what was expected, and what came."""
    with pytest.raises(SerializationError) as caught:
        from_json(kind, written)

    assert said == str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"a": (1,)}, "options.a: (1,) (tuple) is not a JSON value"),
        ({"a": {1}}, "options.a: {1} (set) is not a JSON value"),
        ({"a": [{1: 2}]}, "options.a[0]: the key 1 is not a string"),
        ({"a": float("nan")}, "options.a: nan (float) is not a JSON value"),
        ({"a": [float("inf")]}, "options.a[0]: inf (float) is not a JSON value"),
        ({1: 2}, "options: the key 1 is not a string"),
        ("text", "options: expected a mapping, got 'text' (str)"),
    ],
)
def test_what_json_would_change_is_not_written(options: Any, said: str) -> None:
    """What the harness says must arrive as it was said."""
    with pytest.raises(SerializationError) as caught:
        to_json(Blueprint(options=options))

    assert said == str(caught.value)


def test_a_value_without_end_is_not_written() -> None:
    """It would be nested without end."""
    endless: dict[str, Any] = {}
    endless["again"] = endless

    with pytest.raises(SerializationError, match="nested deeper than 60"):
        to_json(Blueprint(options=endless))
    assert "<not JSON: nested deeper than 60>" in json.dumps(to_json(Blueprint(options=endless), anything=to_json_safe))


def test_what_an_agent_says_is_marked_where_json_cannot_hold_it() -> None:
    """Telling what happened never fails."""
    finished = types.Finished(output={"at": (1, {2}), 3: object(), "nan": float("nan"), "m": _Proxy()})

    assert {
        "output": {"at": [1, [2]], "3": "<not JSON: <object object>>", "nan": "<not JSON: nan>", "m": {"k": "v"}}
    } == to_json(finished, anything=to_json_safe)


class _Proxy(Mapping[str, str]):
    def __getitem__(self, key: str) -> str:
        return "v"

    def __iter__(self) -> Any:
        return iter(["k"])

    def __len__(self) -> int:
        return 1


def test_only_the_handle_of_a_frameworks_object_crosses() -> None:
    """The object itself stays; a request without one has none."""
    request = Request(id="r", call_id=None, tool="t", arguments={}, handle=object())
    handled = Request(id="r", call_id=None, tool="t", arguments={}, handle=Handle(4, 2))

    assert "handle" not in to_json(request)
    assert [4, 2] == to_json(handled)["handle"]
    assert Handle(4, 2) == from_json(Request, to_json(handled)).handle


def test_a_type_that_cannot_cross_is_noticed_when_it_is_declared() -> None:
    """Not when a value of it is sent."""
    with pytest.raises(TypeError, match="cannot cross a process boundary"):
        get_codec(set[int])


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for module in (types, messages)
        for kind in vars(module).values()
        if isinstance(kind, type) and is_dataclass(kind)
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_type_of_the_contract_can_cross(kind: type) -> None:
    """Its codec says for each of its fields what it looks like."""
    named: dict[str, Any] = {}
    get_codec(kind).schema(named)

    assert {field.name for field in fields(kind)} == set(named[kind.__name__]["properties"])

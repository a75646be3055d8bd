"""How tools are run, and what is made of what they do."""

from __future__ import annotations

from typing import Any

import pytest


def rounds(meai: Any, *turns: Any, tools: Any, **more: Any) -> Any:
    model = [[meai.assistant(*each)] for each in turns]
    return meai.play(meai.user("go"), model=model, tools=tools, **more)


def test_a_tool_that_raises_is_told_as_failed(meai: Any) -> None:
    """What the exception says is not told; the call counts as run."""
    broken = {"name": "look", "raises": "no light"}
    outcome = rounds(meai, [meai.call("a", "look")], ["ok"], tools=[broken])
    assert ["assistant: call a!", "tool: result a Error: Function failed.", "assistant: ok"] == meai.told(
        outcome["messages"]
    )
    assert ["look"] == meai.ran(outcome)


def test_a_tool_that_does_not_exist_is_told_as_not_found(meai: Any) -> None:
    """Also if it was approved, and if there are no tools at all."""
    a = meai.call("a", "gone")
    approved = meai.play(meai.assistant(meai.ask(a)), meai.user(meai.answer(a)), tools=[])
    assert 'tool: result a Error: Requested function "gone" not found.' == meai.told(approved["messages"])[1]
    called = rounds(meai, [a], ["ok"], tools=[])
    assert 'tool: result a Error: Requested function "gone" not found.' == meai.told(called["messages"])[1]


def test_an_approved_tool_that_is_only_declared_is_not_found(meai: Any) -> None:
    """There is nothing here that could run."""
    a = meai.call("a", "form")
    declared = {"name": "form", "declaration_only": True, "approval_required": True}
    outcome = meai.play(meai.assistant(meai.ask(a)), meai.user(meai.answer(a)), tools=[declared])
    assert 'tool: result a Error: Requested function "form" not found.' == meai.told(outcome["messages"])[1]


def test_a_tool_that_returns_nothing_is_told_as_completed(meai: Any) -> None:
    """The model is told something in any case."""
    outcome = rounds(meai, [meai.call("a", "look")], ["ok"], tools=[{"name": "look", "returns": None}])
    assert "tool: result a Success: Function completed." == meai.told(outcome["messages"])[1]


def test_arguments_are_told_as_dotnet_says_them(meai: Any) -> None:
    """Texts as they are, numbers digit by digit, True and False, nothing for null, JSON for the rest."""
    look = {"name": "look", "returns": "{s} {n} {f} {b} [{z}] {o} {{"}
    asked = meai.call("a", "look", s="é", n=10, f=1.5, b=True, z=None, o={"k": [1]})
    outcome = rounds(meai, [asked], ["ok"], tools=[look])
    assert 'tool: result a é 10 1.5 True [] {"k":[1]} {{' == meai.told(outcome["messages"])[1]


def test_a_tool_without_its_argument_fails(meai: Any) -> None:
    """A function cannot be bound to arguments that are not there."""
    outcome = rounds(meai, [meai.call("a", "look")], ["ok"], tools=[meai.LOOK])
    assert "tool: result a Error: Function failed." == meai.told(outcome["messages"])[1]


@pytest.mark.parametrize("streaming", [False, True])
def test_the_fourth_failure_in_a_row_comes_out(meai: Any, streaming: bool) -> None:
    """Three rounds with a failure are forgiven; the next one is the caller's, and names tool and call."""
    broken = {"name": "look", "raises": "no light"}
    turns = [[meai.call(f"a{place}", "look")] for place in range(4)]
    outcome = rounds(meai, *turns, tools=[broken], streaming=streaming)
    assert {"type": "ToolError", "text": "no light (look, call a3)"} == outcome["error"]
    assert (4, 7 if streaming else 0) == (len(outcome["invocations"]), len(outcome["messages"]))


def test_a_round_without_a_failure_begins_the_count_anew(meai: Any) -> None:
    """Only failures in a row count."""
    broken = {"name": "fail", "raises": "no"}
    turns = [[meai.call(f"a{place}", "fail" if place != 3 else "look", what="x")] for place in range(7)]
    outcome = rounds(meai, *turns, ["ok"], tools=[broken, meai.LOOK])
    assert (None, 7) == (outcome["error"], len(outcome["invocations"]))


def test_failures_of_approved_calls_count(meai: Any) -> None:
    """The approved call's failure is the first of four."""
    broken = {"name": "wipe", "raises": "no", "approval_required": True}
    failing = {"name": "fail", "raises": "no"}
    a = meai.call("a")
    outcome = meai.play(
        meai.assistant(meai.ask(a)),
        meai.user(meai.answer(a)),
        model=[[meai.assistant(meai.call(f"b{place}", "fail"))] for place in range(3)],
        tools=[broken, failing],
    )
    assert ("ToolError", ["wipe", "fail", "fail", "fail"]) == (outcome["error"]["type"], meai.ran(outcome))


@pytest.mark.parametrize("streaming", [False, True])
def test_an_approved_tool_that_stops_keeps_the_model_from_being_called(meai: Any, streaming: bool) -> None:
    """Call and result are returned; approved calls behind it are not run."""
    last = {**meai.WIPE, "terminates": True}
    a, b = meai.call("a"), meai.call("b", "look", what="x")
    messages = [meai.assistant(meai.ask(a), meai.ask(b)), meai.user(meai.answer(a), meai.answer(b))]
    outcome = meai.play(*messages, model=[], tools=[last, meai.LOOK], streaming=streaming)
    assert ["assistant: call a!, call b", "tool: result a wiped"] == meai.told(outcome["messages"])
    assert ([], ["wipe"]) == (outcome["model_inputs"], meai.ran(outcome))


def test_a_called_tool_that_stops_ends_the_loop(meai: Any) -> None:
    """The model is not called again, and calls behind it do not run."""
    last = {"name": "halt", "returns": "halted", "terminates": True}
    outcome = rounds(meai, [meai.call("a", "halt"), meai.call("b", "look", what="x")], tools=[last, meai.LOOK])
    assert ["assistant: call a!, call b", "tool: result a halted"] == meai.told(outcome["messages"])


def test_a_tool_that_fails_does_not_stop(meai: Any) -> None:
    """Its exception comes before its wish."""
    broken = {"name": "halt", "raises": "no", "terminates": True}
    outcome = rounds(meai, [meai.call("a", "halt")], ["ok"], tools=[broken])
    assert "assistant: ok" == meai.told(outcome["messages"])[-1]


@pytest.mark.parametrize("streaming", [False, True])
def test_after_forty_rounds_calls_are_handed_to_the_caller(meai: Any, streaming: bool) -> None:
    """The forty-first answer of the model is the last."""
    turns = [[meai.call(f"a{place}", "look", what="x")] for place in range(41)]
    outcome = rounds(meai, *turns, tools=[meai.LOOK], streaming=streaming)
    assert (41, 40) == (len(outcome["model_inputs"]), len(outcome["invocations"]))
    assert "assistant: call a40" == meai.told(outcome["messages"])[-1]


def test_a_model_that_answers_null_is_a_failure(meai: Any) -> None:
    """What was produced before is lost to a caller who does not stream."""
    outcome = meai.play(meai.user("go"), model=[None])
    assert {
        "type": "InvalidOperation",
        "text": "The inner IChatClient returned a null ChatResponse.",
    } == outcome["error"]


def test_calls_that_are_flagged_by_the_model_are_not_run(meai: Any) -> None:
    """They are for information."""
    outcome = rounds(meai, [meai.call("a", "look", flagged=True, what="x")], tools=[meai.LOOK, meai.WIPE])
    assert [] == outcome["invocations"]

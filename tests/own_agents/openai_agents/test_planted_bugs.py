"""Bugs of applications with agents of the OpenAI Agents SDK, planted in agents that are right without them.

A tool's body cannot ask in this framework, so that it cannot act before it asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from agents import Agent, RunConfig, function_tool
from agents.run_config import CallModelData, ModelInputData

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, reject_all, say, send
from pytest_approvals.errors import RequirementWarning

REFUND = [calls("refund", order=42), say("Done.")]
RETRIED = [calls("refund", order=42), calls("refund", order=42), say("Done.")]
DELEGATED = {
    "main": [calls("ask_desk", input="Refund 42"), say("Done.")],
    "desk": [calls("refund", order=42), say("Refunded.")],
}

done: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def refund(order: int) -> str:
    """Refunds an order."""
    done.append(order)
    return f"refunded {order}"


def build(model: Any, gated: Any = True, wrapper: Callable[[Any], Any] | None = None) -> Agent[None]:
    tool = function_tool(refund, needs_approval=gated)
    if wrapper is not None:
        tool.on_invoke_tool = wrapper(tool.on_invoke_tool)
    return Agent(name="shop", model=model, tools=[tool])


def build_forgetful(model: Any) -> Agent[None]:
    """Its policy asks about an order once, whatever the answer was."""
    asked: set[int] = set()

    async def asks(context: Any, arguments: dict[str, Any], call: str) -> bool:
        is_new = arguments["order"] not in asked
        asked.add(arguments["order"])
        return is_new

    return build(model, gated=asks)


def build_delegating(model: Any, gated: bool = False) -> Agent[None]:
    """The agent inside has the tool with the effect."""
    desk: Agent[None] = Agent(name="desk", model=model, tools=[function_tool(refund, needs_approval=gated)])
    tool = desk.as_tool(tool_name="ask_desk", tool_description="Asks the desk.")
    return Agent(name="shop", model=model, tools=[tool])


def call_twice(invoke: Callable[..., Any]) -> Callable[..., Any]:
    """Retry what has succeeded."""

    async def invoke_twice(context: Any, arguments: str) -> Any:
        await invoke(context, arguments)
        return await invoke(context, arguments)

    return invoke_twice


def call_with_another_order(invoke: Callable[..., Any]) -> Callable[..., Any]:
    """Change what was approved."""

    async def invoke_another(context: Any, arguments: str) -> Any:
        return await invoke(context, json.dumps({"order": 43}))

    return invoke_another


def keep_oldest(data: CallModelData[Any]) -> ModelInputData:
    return ModelInputData(input=data.model_data.input[:1], instructions=None)


def shorten(**settings: Any) -> dict[str, Any]:
    return {"run_options": {"run_config": RunConfig(**settings)}}


FORGOTTEN: dict[str, Any] = {"gated": {"refund"}, "oracle": approve_all()}
REJECTED: dict[str, Any] = {"oracle": reject_all()}
APPROVED: dict[str, Any] = {"oracle": approve_all()}

FOUND = {
    "forgotten-gate": (
        partial(build, gated=False),
        FORGOTTEN,
        "approval-before-execution: .*expected  it waits for an approval",
        [42],
    ),
    "forgotten-gate-in-an-agent-as-a-tool": (
        build_delegating,
        {"model": DELEGATED, "gated": {"refund"}},
        "approval-before-execution: .*expected  it waits for an approval",
        [42],
    ),
    "a-retry-runs-after-a-rejection": (
        build_forgetful,
        REJECTED | {"model": RETRIED, "equal_arguments": True, "gated": {"refund"}},
        "approval-before-execution: .*expected  it waits for an approval",
        [42],
    ),
    "rejection-told-as-ok": (
        build,
        REJECTED | shorten(tool_error_formatter=lambda _: "ok"),
        "rejection-told: .*actual    it is told 'ok'",
        [],
    ),
    "state-is-dropped": (
        build,
        APPROVED | shorten(call_model_input_filter=keep_oldest),
        "result-delivered-once: .*actual    neither call nor result in the model's input",
        [42],
    ),
}


@pytest.mark.parametrize(
    ("oracle", "effects"), [(approve_all(), [42]), (reject_all(), [])], ids=["approved", "rejected"]
)
@pytest.mark.parametrize(
    ("built", "model"), [(build, REFUND), (partial(build_delegating, gated=True), DELEGATED)], ids=["alone", "inside"]
)
def test_the_agents_are_right_without_the_bugs(
    approvals: Approvals, built: Any, model: Any, oracle: Any, effects: list[int]
) -> None:
    """No check has anything to say."""
    approvals.run(built, "Refund", model=model, oracle=oracle, gated={"refund"})

    assert effects == done


@pytest.mark.parametrize(("built", "options", "message", "effects"), FOUND.values(), ids=FOUND)
def test_a_planted_bug_is_found(
    approvals: Approvals, built: Any, options: dict[str, Any], message: str, effects: list[int]
) -> None:
    """The error names the check, and shows what should have been and what was."""
    with pytest.raises(CheckFailed, match=f"(?s)^{message}"):
        approvals.run(built, "Refund", **({"model": REFUND} | options))

    assert effects == done


@pytest.mark.parametrize(
    ("built", "options"),
    [(partial(build, gated=False), {"model": REFUND}), (build_delegating, {"model": DELEGATED})],
    ids=["alone", "inside"],
)
def test_a_finding_names_the_line_of_the_tool(approvals: Approvals, built: Any, options: dict[str, Any]) -> None:
    """What has to be mended is in the user's own file."""
    line = refund.__code__.co_firstlineno

    with pytest.raises(CheckFailed, match=rf"\n  tool      refund, \S*/openai_agents/test_planted_bugs\.py:{line}\n"):
        approvals.run(built, "Refund", gated={"refund"}, unused=True, **options)


def test_an_answer_that_comes_twice_is_found(approvals: Approvals) -> None:
    """The framework asks its model once more, for nothing."""
    with pytest.raises(RequirementWarning, match="settled-stays-settled: "):
        approvals.run(build, model=[*REFUND, say("Again.")], caller=[send("Refund"), approve("c1"), approve("c1")])

    assert [42] == done


@pytest.mark.parametrize(
    ("wrapper", "effects"), [(call_twice, [42, 42]), (call_with_another_order, [43])], ids=["twice", "another-order"]
)
def test_what_a_wrapper_of_the_invocation_does_is_for_the_test_to_see(
    approvals: Approvals, wrapper: Any, effects: list[int]
) -> None:
    """It is the body of the tool for the framework, and what a body does only the effects show."""
    approvals.run(partial(build, wrapper=wrapper), "Refund", model=REFUND, **APPROVED)

    assert effects == done


def test_what_no_gate_covers_is_a_note(notes: Callable[[str], list[str]]) -> None:
    """Without `gated=`, the end of the session lists the tools with effects, also those of agents as tools."""
    found = notes(
        """
        from agents import Agent, function_tool
        from pytest_approvals import say

        @function_tool
        def refund(order: int) -> str:
            return "refunded"

        @function_tool
        def look_up(order: int) -> str:
            return "seen"

        @function_tool
        def delete_account(name: str) -> str:
            return "deleted"

        def build(model):
            desk = Agent(name="desk", model=model, tools=[refund, look_up])
            ask = desk.as_tool(tool_name="ask_desk", tool_description="Asks the desk.")
            return Agent(name="shop", model=model, tools=[ask, delete_account])

        def test_it(approvals):
            approvals.run(build, model=[say("Done.")])
        """
    )

    assert ["delete_account, refund"] == found

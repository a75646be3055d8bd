"""Bugs of applications with agents of the Agent Framework, planted in agents that are right without them.

Each is found.

A tool's body cannot ask in this framework, so that it cannot act before it asks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest
from agent_framework import Agent, ChatContext, FunctionInvocationContext, chat_middleware, function_middleware, tool

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, reject_all, say, send
from pytest_approvals.errors import RequirementWarning

done: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def refund(order: int) -> str:
    """Refunds an order."""
    done.append(order)
    return f"refunded {order}"


def refund_tool(gated: bool = True) -> Any:
    return tool(approval_mode="always_require" if gated else "never_require")(refund)


def build(client: Any, gated: bool = True, middleware: Sequence[Any] = ()) -> Agent:
    return Agent(client=client, tools=[refund_tool(gated)], middleware=[*middleware])


def build_with_desk(client: Any) -> Agent:
    """An agent whose tool is another agent, whose tool is not gated."""
    desk = Agent(client=client, name="desk", description="Refunds orders.", tools=[refund_tool(gated=False)])
    return Agent(client=client, tools=[desk.as_tool()])


Next = Callable[[], Awaitable[None]]


@function_middleware
async def call_twice(context: FunctionInvocationContext, call_next: Next) -> None:
    """Retries what has succeeded."""
    await call_next()
    await call_next()


@function_middleware
async def change_order(context: FunctionInvocationContext, call_next: Next) -> None:
    """Changes what was approved."""
    context.arguments = {"order": 43}
    await call_next()


@chat_middleware
async def tell_ok(context: ChatContext, call_next: Next) -> None:
    """Tells the model that all went well."""
    for message in context.messages:
        for content in message.contents:
            if content.type == "function_result":
                content.result = "ok"
    await call_next()


@chat_middleware
async def forget(context: ChatContext, call_next: Next) -> None:
    """Sends the last messages only."""
    context.messages = context.messages[-2:]
    await call_next()


REFUND = [calls("refund", order=42), say("Done.")]
DELEGATED = {
    "main": [calls("desk", task="Refund 42"), say("Done.")],
    "desk": [calls("refund", order=42), say("Refunded.")],
}
GATED: dict[str, Any] = {"gated": {"refund"}}
APPROVED: dict[str, Any] = {"model": REFUND, "oracle": approve_all()}
REJECTED: dict[str, Any] = {"model": REFUND, "oracle": reject_all()}

UNAPPROVED = "approval-before-execution: .*expected  it waits for an approval\n +actual    it starts with no decision"
FOUND = {
    "forgotten-gate": (partial(build, gated=False), APPROVED | GATED, UNAPPROVED, [42]),
    "forgotten-gate-of-an-inner-agent": (build_with_desk, APPROVED | GATED | {"model": DELEGATED}, UNAPPROVED, [42]),
    "runs-after-a-rejection": (
        build,
        REJECTED | {"answers": {"reject": True}},
        "rejected-never-runs: .*expected  no run\n +actual    it starts after it was rejected",
        [42],
    ),
    "rejection-told-as-ok": (
        partial(build, middleware=[tell_ok]),
        REJECTED,
        "rejection-told: .*expected  the model is told of the rejection\n +actual    it is told 'ok'",
        [],
    ),
    "state-is-dropped": (
        partial(build, middleware=[forget]),
        APPROVED,
        "caller-messages-kept: .*expected  all messages\n +actual    'Refund' is not in the model's input",
        [42],
    ),
    "other-arguments-than-approved": (
        partial(build, middleware=[change_order]),
        APPROVED,
        r"request-shows-the-call: .*expected  refund\(order=42\)\n +actual    refund\(order=43\) is shown",
        [43],
    ),
    "double-effect": (
        partial(build, middleware=[call_twice]),
        APPROVED,
        "runs-at-most-once: .*expected  1 run\n +actual    2 runs",
        [42, 42],
    ),
}


def test_the_agent_is_right_without_the_bugs(approvals: Approvals) -> None:
    """Approved and rejected, no check has anything to say but that a reason does not reach the model."""
    approvals.run(build, "Refund", model=REFUND, oracle=approve_all(), **GATED)
    approvals.run(build, "Refund", model=REFUND, oracle=reject_all(), **GATED)

    assert [42] == done


@pytest.mark.parametrize(("built", "options", "message", "effects"), FOUND.values(), ids=FOUND)
def test_a_planted_bug_is_found(
    approvals: Approvals, built: Any, options: dict[str, Any], message: str, effects: list[int]
) -> None:
    """The error names the check, and shows what should have been and what was."""
    with pytest.raises(CheckFailed, match=f"(?s)^{message}"):
        approvals.run(built, "Refund", **options)

    assert effects == done


def test_the_finding_names_the_line_of_the_tool(approvals: Approvals) -> None:
    """It is where the person's function is written."""
    with pytest.raises(CheckFailed, match=r"tool +refund, .*test_planted_bugs\.py:\d+"):
        approvals.run(partial(build, gated=False), "Refund", **APPROVED, **GATED)


def test_an_answer_that_comes_twice_is_a_warning(approvals: Approvals) -> None:
    """The framework runs nothing again, and asks its model once more."""
    caller = [send("Refund"), approve("c1"), approve("c1")]
    with pytest.warns(RequirementWarning, match="(?s)settled-stays-settled: .*actual    the model is asked again"):
        approvals.run(build, model=[*REFUND, say("Again.")], caller=caller)

    assert [42] == done


def test_what_no_gate_covers_is_a_note(notes: Callable[[str], list[str]]) -> None:
    """Without `gated=`, the end of the session lists the tools with effects."""
    found = notes(
        """
        from agent_framework import Agent
        from pytest_approvals import say

        def refund(order: int) -> str:
            return "refunded"

        def look_up(order: int) -> str:
            return "seen"

        def build(client):
            return Agent(client=client, tools=[refund, look_up])

        def test_it(approvals):
            approvals.run(build, "Hello", model=[say("Done.")])
        """
    )

    assert ["refund"] == found


def test_drawn_stories_find_a_double_effect(approvals: Approvals) -> None:
    """Of the agent without the bug they find nothing; with it, the smallest one is a call that is approved."""
    approvals.explore(build, stories=10, **GATED)
    done.clear()

    with pytest.raises(CheckFailed, match="^runs-at-most-once: ") as caught:
        approvals.explore(partial(build, middleware=[call_twice]), stories=20, **GATED)

    assert [0, 0] == done[-2:]
    assert "calls('refund', {'order': 0})" in caught.value.__notes__[-1]

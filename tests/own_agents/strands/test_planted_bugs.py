"""Bugs of applications with agents of Strands, planted in agents that are right without them: each is found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from strands import Agent, ToolContext, tool
from strands.hooks import AfterInvocationEvent, AfterToolCallEvent, BeforeToolCallEvent, HookProvider, HookRegistry

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, reject_all, say, send

done: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@tool
def refund(order: int) -> str:
    """Refunds an order."""
    done.append(order)
    return f"refunded {order}"


@tool(context=True)
def refund_and_ask(order: int, tool_context: ToolContext) -> str:
    """Refunds an order, and asks about it too late."""
    done.append(order)
    tool_context.interrupt("approval", reason={"order": order})
    return f"refunded {order}"


class Gate(HookProvider):
    """Asks about refunds."""

    def __init__(self, tool: str = "refund", told: str = "rejected by a person") -> None:
        self.tool = tool
        self.told = told

    def register_hooks(self, registry: HookRegistry, **options: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == self.tool:
            answer = event.interrupt("approval", reason=event.tool_use["input"])
            if not self.is_yes(answer):
                event.cancel_tool = self.told

    def is_yes(self, answer: Any) -> bool:
        return bool(answer == "y")


class AnyAnswer(Gate):
    """Takes any answer for a yes."""

    def is_yes(self, answer: Any) -> bool:
        return bool(answer)


class ChangedOrder(Gate):
    """Changes what was approved."""

    def ask(self, event: BeforeToolCallEvent) -> None:
        super().ask(event)
        event.tool_use = {**event.tool_use, "input": {"order": 43}}


class Retry(Gate):
    """Tries again what has succeeded."""

    def register_hooks(self, registry: HookRegistry, **options: Any) -> None:
        super().register_hooks(registry)
        registry.add_callback(AfterToolCallEvent, self.try_again)
        self.tried = False

    def try_again(self, event: AfterToolCallEvent) -> None:
        event.retry, self.tried = not self.tried, True


class Forgetful(Gate):
    """Keeps nothing but the last message of a conversation."""

    def register_hooks(self, registry: HookRegistry, **options: Any) -> None:
        super().register_hooks(registry)
        registry.add_callback(AfterInvocationEvent, self.forget)

    def forget(self, event: AfterInvocationEvent) -> None:
        last = event.agent.messages[-1]
        if not any("toolUse" in block for block in last["content"]):
            event.agent.messages[:] = [last]


def build(model: Any, gate: Callable[[], Gate] | None = Gate) -> Agent:
    hooks = [gate()] if gate else []
    return Agent(model=model, tools=[refund], hooks=hooks, callback_handler=None)


def build_with_desk(model: Any, gate: Callable[[], Gate] | None = Gate) -> Agent:
    """An agent whose tool is another agent."""
    desk = Agent(model=model, name="desk", tools=[refund], hooks=[gate()] if gate else [], callback_handler=None)
    return Agent(model=model, tools=[desk.as_tool()], callback_handler=None)


def build_asking_late(model: Any) -> Agent:
    return Agent(model=model, tools=[refund_and_ask], callback_handler=None)


REFUND = [calls("refund", order=42), say("Done.")]
DELEGATED = {
    "main": [calls("desk", input="Refund 42"), say("Done.")],
    "desk": [calls("refund", order=42), say("Refunded.")],
}
GATED: dict[str, Any] = {"gated": {"refund"}}
APPROVED: dict[str, Any] = {"model": REFUND, "oracle": approve_all()}
REJECTED: dict[str, Any] = {"model": REFUND, "oracle": reject_all()}

UNAPPROVED = "approval-before-execution: .*expected  it waits for an approval\n +actual    it starts with no decision"
FOUND = {
    "forgotten-gate": (partial(build, gate=None), APPROVED | GATED, UNAPPROVED, [42]),
    "misspelled-gate": (partial(build, gate=partial(Gate, "refunds")), APPROVED | GATED, UNAPPROVED, [42]),
    "forgotten-gate-of-an-inner-agent": (
        partial(build_with_desk, gate=None),
        APPROVED | GATED | {"model": DELEGATED},
        UNAPPROVED,
        [42],
    ),
    "runs-after-a-rejection": (
        partial(build, gate=AnyAnswer),
        REJECTED,
        "rejected-never-runs: .*expected  no run\n +actual    it starts after it was rejected",
        [42],
    ),
    "rejection-told-as-ok": (
        partial(build, gate=partial(Gate, told="ok")),
        REJECTED,
        "rejection-told: .*expected  the model is told of the rejection\n +actual    it is told 'ok'",
        [],
    ),
    "other-arguments-than-approved": (
        partial(build, gate=ChangedOrder),
        APPROVED,
        r"arguments-as-approved: .*expected  refund\(order=42\)\n +actual    refund\(order=43\)",
        [43],
    ),
    "double-effect": (
        partial(build, gate=Retry),
        APPROVED,
        "runs-at-most-once: .*expected  1 run\n +actual    2 runs",
        [42, 42],
    ),
}


@pytest.mark.parametrize(("built", "model"), [(build, REFUND), (build_with_desk, DELEGATED)], ids=["agent", "desk"])
def test_the_agents_are_right_without_the_bugs(approvals: Approvals, built: Any, model: Any) -> None:
    """Approved and rejected, no check has anything to say."""
    approvals.run(built, "Refund", model=model, oracle=approve_all(), **GATED)
    approvals.run(built, "Refund", model=model, oracle=reject_all(), **GATED)

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
        approvals.run(partial(build, gate=None), "Refund", **APPROVED, **GATED)


def test_a_dropped_state_is_found(approvals: Approvals) -> None:
    """What the person wrote is not in the next input of the model."""
    caller = [send("Refund"), approve("c1"), send("Which one?")]
    with pytest.raises(CheckFailed, match="(?s)^caller-messages-kept: .*actual    'Refund' is not in the model's"):
        approvals.run(partial(build, gate=Forgetful), model=[*REFUND, say("I forgot.")], caller=caller)

    assert [42] == done


def test_an_answer_that_comes_twice_has_no_effect(approvals: Approvals) -> None:
    """The framework refuses it, which is an outcome of the run."""
    run = approvals.run(build, model=REFUND, caller=[send("Refund"), approve("c1"), approve("c1")])

    assert run.turns[-1].refused
    assert [42] == done


def test_an_effect_before_the_question_is_for_the_test(approvals: Approvals) -> None:
    """The body is run from its beginning when the answer comes."""
    approvals.run(
        build_asking_late, "Refund", model=[calls("refund_and_ask", order=42), say("Done.")], oracle=approve_all()
    )

    assert [42, 42] == done


def test_what_no_gate_covers_is_a_note(notes: Callable[[str], list[str]]) -> None:
    """Without `gated=`, the end of the session lists the tools with effects."""
    found = notes(
        """
        from strands import Agent, tool
        from pytest_approvals import say

        @tool
        def refund(order: int) -> str:
            "Refunds."
            return "refunded"

        @tool
        def look_up(order: int) -> str:
            "Looks up."
            return "seen"

        def build(model):
            return Agent(model=model, tools=[refund, look_up], callback_handler=None)

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
        approvals.explore(partial(build, gate=Retry), stories=20, **GATED)

    assert [0, 0] == done[-2:]
    assert "calls('refund', {'order': 0})" in caught.value.__notes__[-1]

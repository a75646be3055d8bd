"""Bugs of applications with agents of Pydantic AI, planted in agents that are right without them: each is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, FunctionToolset, RunContext, ToolDenied
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.toolsets import WrapperToolset

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, reject_all, say, send

REFUND = [calls("refund", order=42), say("Done.")]
DELEGATED = {
    "main": [calls("ask_desk", order=42), say("Done.")],
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


class CalledTwice(WrapperToolset[None]):
    """A wrapper that retries what has succeeded."""

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        await super().call_tool(name, tool_args, ctx, tool)
        return await super().call_tool(name, tool_args, ctx, tool)


class AnotherOrder(WrapperToolset[None]):
    """A wrapper that changes what was approved."""

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return await super().call_tool(name, {"order": 43}, ctx, tool)


def build(model: Any, wrapper: Callable[[Any], Any] | None = None, gated: bool = True, **more: Any) -> Agent[None, Any]:
    tools: FunctionToolset[None] = FunctionToolset()
    tools.add_function(refund, requires_approval=gated)
    toolset = tools if wrapper is None else wrapper(tools)
    return Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests], **more)


def build_eager(model: Any) -> Agent[None, Any]:
    """Its body acts before it asks."""
    agent: Agent[None, Any] = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool(name="refund")
    def ask(ctx: RunContext[None], order: int) -> str:
        told = refund(order)
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return told

    return agent


def build_delegating(model: Any) -> Agent[None, str]:
    """The agent that its tool runs has the tool with the effect, and no gate."""
    desk: Agent[None, str] = Agent(model, name="desk", tools=[refund])
    agent: Agent[None, str] = Agent(model)

    @agent.tool_plain
    async def ask_desk(order: int) -> str:
        return (await desk.run(f"Refund {order}")).output

    return agent


def keep_newest(messages: list[Any]) -> list[Any]:
    return messages[-1:]


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
    "forgotten-gate-in-an-agent-that-a-tool-runs": (
        build_delegating,
        {"model": DELEGATED, "gated": {"refund"}},
        "approval-before-execution: .*expected  it waits for an approval",
        [42],
    ),
    "runs-after-a-rejection": (
        build,
        REJECTED | {"answers": {"reject": True}},
        "rejected-never-runs: .*actual    it starts after it was rejected",
        [42],
    ),
    "rejection-told-as-ok": (
        build,
        REJECTED | {"answers": {"reject": ToolDenied("ok")}},
        "rejection-told: .*actual    it is told 'ok'",
        [],
    ),
    "state-is-dropped": (
        partial(build, capabilities=[ProcessHistory(keep_newest)]),
        APPROVED,
        "model-input-well-formed: ",
        [42],
    ),
    "other-arguments-than-approved": (
        partial(build, wrapper=AnotherOrder),
        APPROVED,
        r"arguments-as-approved: .*expected  refund\(order=42\)\s+actual    refund\(order=43\)",
        [43],
    ),
    "double-effect": (
        partial(build, wrapper=CalledTwice),
        APPROVED,
        "runs-at-most-once: .*expected  1 run\n +actual    2 runs",
        [42, 42],
    ),
}


@pytest.mark.parametrize(
    ("oracle", "effects"), [(approve_all(), [42]), (reject_all(), [])], ids=["approved", "rejected"]
)
def test_the_agent_is_right_without_the_bugs(approvals: Approvals, oracle: Any, effects: list[int]) -> None:
    """No check has anything to say."""
    approvals.run(build, "Refund", model=REFUND, oracle=oracle, gated={"refund"})

    assert effects == done


@pytest.mark.parametrize(("built", "options", "message", "effects"), FOUND.values(), ids=FOUND)
def test_a_planted_bug_is_found(
    approvals: Approvals, built: Any, options: dict[str, Any], message: str, effects: list[int]
) -> None:
    """The error names the check, and shows what should have been and what was."""
    with pytest.raises(CheckFailed, match=f"(?s)^{message}"):
        approvals.run(built, "Refund", **({"model": REFUND} | options))

    assert effects == done


def test_a_finding_names_the_line_of_the_tool(approvals: Approvals) -> None:
    """What has to be mended is in the user's own file."""
    line = refund.__code__.co_firstlineno

    with pytest.raises(CheckFailed, match=rf"\n  tool      refund, \S*/pydantic_ai/test_planted_bugs\.py:{line}\n"):
        approvals.run(partial(build, gated=False), "Refund", model=REFUND, **FORGOTTEN)


def test_a_finding_about_no_tool_names_the_line_of_the_factory(approvals: Approvals) -> None:
    """Where the history is cut, the agent is what has to be mended."""
    built, options, _, _ = FOUND["state-is-dropped"]
    line = build.__code__.co_firstlineno

    with pytest.raises(CheckFailed) as caught:
        approvals.run(built, "Refund", model=REFUND, **options)

    assert caught.value.__notes__[0].endswith(f"/pydantic_ai/test_planted_bugs.py:{line}")


def test_an_answer_that_comes_twice_is_refused(approvals: Approvals) -> None:
    """A framework that does so is right, and the refusal is an outcome of the run."""
    run = approvals.run(build, model=REFUND, caller=[send("Refund"), approve("c1"), approve("c1")])

    assert run.turns[-1].refused
    assert [42] == done


def test_what_a_body_does_before_it_asks_is_for_the_test_to_see(approvals: Approvals) -> None:
    """A body is entered, asks, and is entered again; between is what only the effects show."""
    approvals.run(build_eager, "Refund", model=REFUND, **REJECTED)

    assert [42] == done


def test_what_no_gate_covers_is_a_note(notes: Callable[[str], list[str]]) -> None:
    """Without `gated=`, the end of the session lists the tools with effects."""
    found = notes(
        """
        from pydantic_ai import Agent
        from pytest_approvals import say

        def refund(order: int) -> str:
            return "refunded"

        def look_up(order: int) -> str:
            return "seen"

        def delete_account(name: str) -> str:
            return "deleted"

        def build(model):
            return Agent(model, tools=[refund, look_up, delete_account])

        def test_it(approvals):
            approvals.run(build, model=[say("Done.")])
        """
    )

    assert ["delete_account, refund"] == found


class Booking(BaseModel):
    room: str
    nights: int = 1


@dataclass
class BooksAnother(WrapperToolset[None]):
    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return await super().call_tool(name, {"booking": Booking(room="b")}, ctx, tool)


def test_fields_of_a_model_that_change_after_the_approval_are_found(approvals: Approvals) -> None:
    """A model that is the only argument is compared by its fields, as the model of the agent wrote them."""

    def book(booking: Booking) -> str:
        return f"booked {booking.room}"

    def build_hotel(model: Any, wrap: Any = None) -> Agent[None, Any]:
        tools: FunctionToolset[None] = FunctionToolset()
        tools.add_function(book, requires_approval=True)
        toolset = tools if wrap is None else wrap(tools)
        return Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests])

    model = [calls("book", room="a"), say("Booked.")]
    run = approvals.run(build_hotel, "Book", model=model, oracle=approve_all())
    with pytest.raises(
        CheckFailed, match='(?s)^arguments-as-approved: .*expected  book.room="a".*actual    book.room="b"'
    ):
        approvals.run(partial(build_hotel, wrap=BooksAnother), "Book", model=model, oracle=approve_all())

    assert {"room": "a"} == run.calls["book"].executions[0].arguments

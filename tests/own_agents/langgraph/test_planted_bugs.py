"""Bugs of applications, planted in agents of LangChain and LangGraph: each is found, by the check that names it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_model_call, wrap_tool_call
from langchain.tools import tool
from langchain_core.messages import ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, reject_all, say, send

REFUND = [calls("refund", order=42), say("Done.")]
REFUNDS = [calls("refund", order=42), calls("refund", order=43), say("Done.")]

Handler = Callable[[Any], Awaitable[Any]]

done: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@tool
def refund(order: int) -> str:
    """Refunds an order."""
    done.append(order)
    return f"refunded {order}"


@tool("refund")
def refund_and_ask(order: int) -> str:
    """Refunds an order, and then asks whether it may."""
    done.append(order)
    return f"refunded {order}" if interrupt(f"May I refund {order}?") else "The user rejected this call."


# --- gates ------------------------------------------------------------------------------------------------------------

GATE = HumanInTheLoopMiddleware({"refund": True})
MISSPELT_GATE = HumanInTheLoopMiddleware({"refunds": True})


def describe(call: Any) -> dict[str, Any]:
    return {"name": call["name"], "args": call["args"], "tool_call_id": call["id"]}


@wrap_tool_call
async def ask(request: Any, handler: Handler) -> Any:
    if interrupt(describe(request.tool_call)):
        return await handler(request)
    return ToolMessage("The user rejected this call.", tool_call_id=request.tool_call["id"])


@wrap_tool_call
async def ask_and_ignore(request: Any, handler: Handler) -> Any:
    interrupt(describe(request.tool_call))
    return await handler(request)


@wrap_tool_call
async def ask_and_tell_ok(request: Any, handler: Handler) -> Any:
    if interrupt(describe(request.tool_call)):
        return await handler(request)
    return ToolMessage("ok", tool_call_id=request.tool_call["id"])


# --- middleware around what is gated ----------------------------------------------------------------------------------


@wrap_tool_call
async def run_twice(request: Any, handler: Handler) -> Any:
    await handler(request)
    return await handler(request)


@wrap_tool_call
async def refund_another_order(request: Any, handler: Handler) -> Any:
    return await handler(request.override(tool_call={**request.tool_call, "args": {"order": 43}}))


@wrap_model_call
async def show_newest(request: Any, handler: Handler) -> Any:
    return await handler(request.override(messages=request.messages[-1:]))


@wrap_model_call
async def show_oldest(request: Any, handler: Handler) -> Any:
    return await handler(request.override(messages=request.messages[:1]))


# --- agents -----------------------------------------------------------------------------------------------------------


def build(model: Any, *middleware: Any) -> Any:
    return create_agent(model, [refund], middleware=middleware)


def build_gated(model: Any) -> Any:
    return build(model, GATE)


def build_asking(model: Any) -> Any:
    return build(model, ask)


def build_eager(model: Any) -> Any:
    """Its body acts before it asks."""
    return create_agent(model, [refund_and_ask])


class WithoutReducer(TypedDict):
    """A state in which each node's messages replace those that were there."""

    messages: list[Any]


def build_graph(model: Any) -> Any:
    bound = model.bind_tools([refund])

    async def think(state: WithoutReducer) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    async def gate(state: WithoutReducer) -> dict[str, Any]:
        (call,) = state["messages"][-1].tool_calls
        if interrupt(describe(call)):
            return {}
        return {"messages": [ToolMessage("The user rejected this call.", tool_call_id=call["id"])]}

    def route(state: WithoutReducer) -> str:
        return "gate" if getattr(state["messages"][-1], "tool_calls", None) else END

    graph = StateGraph(WithoutReducer)
    graph.add_node("model", think).add_node("gate", gate).add_node("tools", ToolNode([refund]))
    graph.add_edge(START, "model").add_conditional_edges("model", route, ["gate", END])
    return graph.add_edge("gate", "tools").add_edge("tools", "model").compile()


# --- findings ---------------------------------------------------------------------------------------------------------

YES_OR_NO: dict[str, Any] = {"answers": {"approve": True, "reject": False}}
APPROVED: dict[str, Any] = {"oracle": approve_all()}
REJECTED: dict[str, Any] = {"oracle": reject_all()}
FORGOTTEN: dict[str, Any] = APPROVED | {"gated": {"refund"}}

FOUND = {
    "forgotten-gate": (
        build,
        FORGOTTEN,
        "approval-before-execution: .*expected  it waits for an approval\n +actual    it starts with no decision",
        [42],
    ),
    "gate-for-a-misspelt-tool": (
        lambda model: build(model, MISSPELT_GATE),
        FORGOTTEN,
        "approval-before-execution: .*expected  it waits for an approval\n +actual    it starts with no decision",
        [42],
    ),
    "rejection-mapped-to-an-approval": (
        build_gated,
        REJECTED | {"answers": {"reject": {"type": "approve"}}},
        "rejected-never-runs: .*expected  no run\n +actual    it starts after it was rejected",
        [42],
    ),
    "runs-after-a-rejection": (
        lambda model: build(model, ask_and_ignore),
        REJECTED | YES_OR_NO,
        "rejected-never-runs: .*expected  no run\n +actual    it starts after it was rejected",
        [42],
    ),
    "rejection-told-as-ok": (
        lambda model: build(model, ask_and_tell_ok),
        REJECTED | YES_OR_NO,
        "rejection-told: .*expected  the model is told of the rejection\n +actual    it is told 'ok'",
        [],
    ),
    "newest-message-only": (
        lambda model: build(model, GATE, show_newest),
        APPROVED,
        "model-input-well-formed: .*expected  an input that the provider takes\n +actual    result-without-call: ",
        [42],
    ),
    "oldest-message-only": (
        lambda model: build(model, GATE, show_oldest),
        APPROVED,
        "result-delivered-once: .*expected  1 result\n +actual    neither call nor result in the model's input",
        [42],
    ),
    "state-without-a-reducer": (
        build_graph,
        APPROVED | YES_OR_NO,
        "model-input-well-formed: .*expected  an input that the provider takes\n +actual    result-without-call: ",
        [42],
    ),
    "other-arguments-than-approved": (
        lambda model: build(model, GATE, refund_another_order),
        APPROVED,
        r"arguments-as-approved: .*expected  refund\(order=42\)\n +actual    refund\(order=43\)",
        [43],
    ),
    "double-effect": (
        lambda model: build(model, GATE, run_twice),
        APPROVED,
        "runs-at-most-once: .*expected  1 run\n +actual    2 runs",
        [42, 42],
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("factory", "options"), [(build_gated, {}), (build_asking, YES_OR_NO)])
def test_the_agents_are_right_without_the_bugs(
    approvals: Approvals, factory: Any, options: dict[str, Any], stream: bool
) -> None:
    """Approved and rejected, no check has anything to say."""
    run = partial(approvals.run, factory, "Refund", model=REFUND, gated={"refund"}, stream=stream, **options)
    run(oracle=approve_all())
    run(oracle=reject_all())

    assert [42] == done


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("factory", "options", "message", "effects"), FOUND.values(), ids=FOUND)
def test_a_planted_bug_is_found(
    approvals: Approvals, factory: Any, options: dict[str, Any], message: str, effects: list[int], stream: bool
) -> None:
    """The error names the check, and shows what should have been and what was."""
    with pytest.raises(CheckFailed, match=f"(?s)^{message}"):
        approvals.run(factory, "Refund", model=REFUND, agent="langgraph", stream=stream, **options)

    assert effects == done


@pytest.mark.parametrize(("factory", "options"), [(build_gated, {}), (build_asking, YES_OR_NO)])
def test_an_answer_that_comes_twice_does_nothing(approvals: Approvals, factory: Any, options: dict[str, Any]) -> None:
    """If no other request waits, the framework neither refuses it nor runs anything."""
    run = approvals.run(factory, model=REFUND, caller=[send("Refund"), approve("c1"), approve("c1")], **options)

    assert run.turns[-1].refused is None
    assert [42] == done


@pytest.mark.parametrize(("factory", "options"), [(build_gated, {}), (build_asking, YES_OR_NO)])
def test_an_answer_that_comes_twice_and_approves_the_next_call_is_found(
    approvals: Approvals, factory: Any, options: dict[str, Any]
) -> None:
    """An answer says nothing of the request that it is about, and is taken for the one that waits."""
    caller = [send("Refund"), approve("c1"), approve("c1")]
    with pytest.raises(
        CheckFailed,
        match=r"(?s)^approval-before-execution: .*it starts with no decision about it.*refund\(order=43\) starts",
    ):
        approvals.run(factory, model=REFUNDS, caller=caller, **options)

    assert [42, 43] == done


@pytest.mark.parametrize("oracle", [approve_all(), reject_all()])
def test_what_a_body_does_before_it_asks_is_for_the_test_to_see(approvals: Approvals, oracle: Any) -> None:
    """A body is entered, asks, and is entered again from its beginning; what it did before is done twice."""
    approvals.run(build_eager, "Refund", model=REFUND, oracle=oracle, **YES_OR_NO)

    assert [42, 42] == done


UNGATED = """
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain.tools import tool
    from pytest_approvals import calls, say

    @tool
    def look(at: str) -> str:
        "Looks."
        return "seen"

    @tool
    def send_mail(to: str) -> str:
        "Sends a mail."
        return "sent"

    @tool
    def write_down(text: str) -> str:
        "Returns what an MCP server calls a reading tool."
        return "written"

    # As `langchain-mcp-adapters` makes it of a server's annotations.
    write_down.metadata = {"readOnlyHint": True}

    @tool
    def delete_mail(number: int) -> str:
        "Deletes a mail."
        return "deleted"

    def build(model):
        gate = HumanInTheLoopMiddleware({"delete_mail": True})
        return create_agent(model, [look, send_mail, write_down, delete_mail], middleware=[gate])

    def test_it(approvals):
        approvals.run(build, model=[calls("look", at="it"), say("Done.")])
"""


def test_a_tool_that_no_gate_covers_is_said_at_the_end(pytester: pytest.Pytester) -> None:
    """Without `gated=`, a tool with an effect by its name is noted; not so a gated one, and one that only reads."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(test_it=UNGATED)
    result = pytester.runpytest_inprocess(
        "-p", "pytest_approvals.plugin", "-p", "no:randomly", "-p", "no:cacheprovider"
    )

    result.assert_outcomes(passed=1)
    (note,) = [line for line in result.outlines if line.startswith("note: ")]
    assert note.startswith(
        "note: these tools have effects, by their annotations or names, and need no approval: send_mail (test_it.py);"
    )


def test_drawn_stories_find_a_double_effect(approvals: Approvals) -> None:
    """Of the agent without the bug they find nothing; with it, the smallest one is a call that is approved."""
    approvals.explore(build_gated, stories=10, gated={"refund"}, agent="langgraph")
    done.clear()

    with pytest.raises(CheckFailed, match="^runs-at-most-once: ") as caught:
        approvals.explore(lambda model: build(model, GATE, run_twice), stories=20, gated={"refund"}, agent="langgraph")

    assert [0, 0] == done[-2:]
    assert "calls('refund', {'order': 0})" in caught.value.__notes__[-1]


def test_drawn_stories_answer_interrupts_in_the_words_of_the_agent(approvals: Approvals) -> None:
    """As `answers` says."""
    approvals.explore(build_asking, stories=10, gated={"refund"}, agent="langgraph", **YES_OR_NO)

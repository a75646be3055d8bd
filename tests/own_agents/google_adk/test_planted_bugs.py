"""Bugs of applications, planted in agents of Google ADK: each is found, by the check that names it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools.agent_tool import AgentTool

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, reject_all, say, send

REFUND = [calls("refund", order=42), say("Done.")]
ASKED = [calls("refund", order=42), say("I have asked."), say("Done.")]

# The framework warns of its own code.
pytestmark = pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")

done: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def refund(order: int) -> str:
    """Refunds an order."""
    done.append(order)
    return f"refunded {order}"


# --- gates ------------------------------------------------------------------------------------------------------------


GATED = FunctionTool(refund, require_confirmation=True)


def ask(context: ToolContext) -> dict[str, Any]:
    context.request_confirmation(hint="May I refund it?")
    return {"status": "waits for an approval"}


def gate(tool: Any, args: Any, tool_context: ToolContext) -> dict[str, Any] | None:
    answer = tool_context.tool_confirmation
    if answer is None:
        return ask(tool_context)
    return None if answer.confirmed else {"error": "rejected by the user"}


def gate_that_ignores(tool: Any, args: Any, tool_context: ToolContext) -> dict[str, Any] | None:
    return ask(tool_context) if tool_context.tool_confirmation is None else None


def gate_that_tells_ok(tool: Any, args: Any, tool_context: ToolContext) -> dict[str, Any] | None:
    answer = tool_context.tool_confirmation
    if answer is None:
        return ask(tool_context)
    return None if answer.confirmed else {"status": "ok"}


class AskingTool(FunctionTool):
    """A tool that asks, and reads the answer."""

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        answer = tool_context.tool_confirmation
        if answer is None:
            return ask(tool_context)
        if not answer.confirmed:
            return {"error": "rejected by the user"}
        return await super().run_async(args=args, tool_context=tool_context)


class IgnoringTool(FunctionTool):
    """A tool that asks, and goes on whatever the answer is."""

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if tool_context.tool_confirmation is None:
            return ask(tool_context)
        return await super().run_async(args=args, tool_context=tool_context)


def refund_and_ask(order: int, tool_context: ToolContext) -> Any:
    """Refunds an order, and then asks whether it may."""
    told = refund(order)
    answer = tool_context.tool_confirmation
    if answer is None:
        return ask(tool_context)
    return told if answer.confirmed else {"status": "rejected by the user"}


# --- around what is gated ---------------------------------------------------------------------------------------------


class RetryingTool(FunctionTool):
    """A tool that retries what has succeeded."""

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        await super().run_async(args=args, tool_context=tool_context)
        return await super().run_async(args=args, tool_context=tool_context)


async def run_again(tool: Any, args: Any, tool_context: ToolContext, tool_response: Any) -> Any:
    waits = isinstance(tool_response, dict)
    return None if waits else await tool.run_async(args=args, tool_context=tool_context)


def refund_another_order(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> None:
    args["order"] = 43


def tell_ok(tool: Any, args: Any, tool_context: ToolContext, tool_response: Any) -> Any:
    return {"result": "ok"} if "error" in tool_response else None


def show_newest(callback_context: Any, llm_request: Any) -> None:
    del llm_request.contents[:-1]


def show_oldest(callback_context: Any, llm_request: Any) -> None:
    del llm_request.contents[1:]


# --- agents -----------------------------------------------------------------------------------------------------------


def build(model: Any, tool: Any = GATED, **callbacks: Any) -> LlmAgent:
    return LlmAgent(name="desk", model=model, tools=[tool], **callbacks)


def build_ungated(model: Any) -> LlmAgent:
    return build(model, refund)


def build_with_gate(model: Any) -> LlmAgent:
    return build(model, refund, before_tool_callback=gate)


def build_with_asking_tool(model: Any) -> LlmAgent:
    return build(model, AskingTool(refund))


def build_eager(model: Any) -> LlmAgent:
    """Its body acts before it asks."""
    return build(model, refund_and_ask)


def build_clerk(model: Any, tool: Any) -> LlmAgent:
    return LlmAgent(name="clerk", model=model, description="Refunds orders.", tools=[tool])


def build_with_sub_agent(model: Any, tool: Any) -> LlmAgent:
    return LlmAgent(name="desk", model=model, sub_agents=[build_clerk(model, tool)])


def build_with_agent_tool(model: Any, tool: Any) -> LlmAgent:
    return LlmAgent(name="desk", model=model, tools=[AgentTool(agent=build_clerk(model, tool))])


HANDED_OVER = {"main": [calls("transfer_to_agent", agent_name="clerk")], "clerk": REFUND}
DELEGATED = {"main": [calls("clerk", request="Refund 42"), say("Done.")], "clerk": REFUND}

# --- findings ---------------------------------------------------------------------------------------------------------

APPROVED: dict[str, Any] = {"oracle": approve_all()}
REJECTED: dict[str, Any] = {"oracle": reject_all()}
FORGOTTEN: dict[str, Any] = APPROVED | {"gated": {"refund"}}

NO_DECISION = (
    "approval-before-execution: .*expected  it waits for an approval\n +actual    it starts with no decision about it"
)
RUNS_REJECTED = "rejected-never-runs: .*expected  no run\n +actual    it starts after it was rejected"
ILL_FORMED = "model-input-well-formed: .*expected  an input that the provider takes\n +actual    result-without-call: "
RUNS_TWICE = "runs-at-most-once: .*expected  1 run\n +actual    2 runs"

FOUND: dict[str, tuple[Any, Any, dict[str, Any], str, list[int]]] = {
    "forgotten-gate": (build_ungated, REFUND, FORGOTTEN, NO_DECISION, [42]),
    "forgotten-gate-of-a-sub-agent": (
        partial(build_with_sub_agent, tool=refund),
        HANDED_OVER,
        FORGOTTEN,
        NO_DECISION,
        [42],
    ),
    "forgotten-gate-of-an-agent-that-is-a-tool": (
        partial(build_with_agent_tool, tool=refund),
        DELEGATED,
        FORGOTTEN,
        NO_DECISION,
        [42],
    ),
    "gate-whose-question-stays-in-an-agent-that-is-a-tool": (
        partial(build_with_agent_tool, tool=GATED),
        DELEGATED,
        FORGOTTEN,
        "every-gated-call-asked: .*expected  a request about it\n +actual    none",
        [],
    ),
    "rejection-mapped-to-an-approval": (
        build,
        REFUND,
        REJECTED | {"answers": {"reject": {"confirmed": True}}},
        RUNS_REJECTED,
        [42],
    ),
    "callback-runs-after-a-rejection": (
        partial(build, tool=refund, before_tool_callback=gate_that_ignores),
        ASKED,
        REJECTED,
        RUNS_REJECTED,
        [42],
    ),
    "tool-runs-after-a-rejection": (partial(build, tool=IgnoringTool(refund)), ASKED, REJECTED, RUNS_REJECTED, [42]),
    "rejection-told-as-ok": (
        partial(build, after_tool_callback=tell_ok),
        REFUND,
        REJECTED,
        "rejection-told: .*expected  the model is told of the rejection\n +actual    it is told 'ok'",
        [],
    ),
    "callback-tells-a-rejection-as-ok": (
        partial(build, tool=refund, before_tool_callback=gate_that_tells_ok),
        ASKED,
        REJECTED,
        'rejection-told: .*expected  the model is told of the rejection\n +actual    it is told .{"status": "ok"}',
        [],
    ),
    "newest-message-only": (
        partial(build, before_model_callback=show_newest),
        REFUND,
        APPROVED,
        ILL_FORMED,
        [42],
    ),
    "oldest-message-only": (
        partial(build, before_model_callback=show_oldest),
        REFUND,
        APPROVED,
        "result-delivered-once: .*expected  1 result\n +actual    neither call nor result in the model's input",
        [42],
    ),
    "other-arguments-than-approved": (
        partial(build, before_tool_callback=refund_another_order),
        REFUND,
        APPROVED,
        r"arguments-as-approved: .*expected  refund\(order=42\)\n +actual    refund\(order=43\)",
        [43],
    ),
    "double-effect-by-a-tool": (
        partial(build, tool=RetryingTool(refund, require_confirmation=True)),
        REFUND,
        APPROVED,
        RUNS_TWICE,
        [42, 42],
    ),
    "double-effect-by-a-callback": (
        partial(build, after_tool_callback=run_again),
        REFUND,
        APPROVED,
        RUNS_TWICE,
        [42, 42],
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("factory", "model"),
    [
        (build, REFUND),
        (build_with_gate, ASKED),
        (build_with_asking_tool, ASKED),
        (partial(build_with_sub_agent, tool=GATED), HANDED_OVER),
    ],
    ids=["confirmation", "callback", "tool", "sub-agent"],
)
def test_the_agents_are_right_without_the_bugs(approvals: Approvals, factory: Any, model: Any, stream: bool) -> None:
    """Approved and rejected, no check has anything to say."""
    run = partial(approvals.run, factory, "Refund", model=model, agent="google_adk", gated={"refund"}, stream=stream)
    run(oracle=approve_all())
    run(oracle=reject_all())

    assert [42] == done


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("factory", "model", "options", "message", "effects"), FOUND.values(), ids=FOUND)
def test_a_planted_bug_is_found(
    approvals: Approvals,
    factory: Any,
    model: Any,
    options: dict[str, Any],
    message: str,
    effects: list[int],
    stream: bool,
) -> None:
    """The error names the check, and shows what should have been and what was."""
    with pytest.raises(CheckFailed, match=f"(?s)^{message}"):
        approvals.run(factory, "Refund", model=model, agent="google_adk", stream=stream, **options)

    assert effects == done


@pytest.mark.parametrize(("factory", "model"), [(build, REFUND), (build_with_gate, ASKED)])
def test_an_answer_that_comes_twice_does_nothing(approvals: Approvals, factory: Any, model: Any) -> None:
    """The framework neither refuses it nor runs anything, nor does it ask its model."""
    run = approvals.run(factory, model=model, caller=[send("Refund"), approve("c1"), approve("c1")])

    assert run.turns[-1].refused is None
    assert [42] == done


def test_an_answer_that_comes_twice_leaves_the_next_request_alone(approvals: Approvals) -> None:
    """It names the request that it is about."""
    caller = [send("Refund"), approve("c1"), approve("c1")]
    run = approvals.run(build, model=[REFUND[0], calls("refund", order=43), say("Done.")], caller=caller)

    assert ["paused", "paused", "paused", "finished"] == [turn.outcome for turn in run.turns]
    assert [42, 43] == done


@pytest.mark.parametrize("oracle", [approve_all(), reject_all()])
def test_what_a_body_does_before_it_asks_is_for_the_test_to_see(approvals: Approvals, oracle: Any) -> None:
    """A body is entered, asks, and is entered again from its beginning; what it did before is done twice."""
    approvals.run(build_eager, "Refund", model=[calls("refund_and_ask", order=42), *ASKED[1:]], oracle=oracle)

    assert [42, 42] == done


UNGATED = """
    from google.adk.agents import LlmAgent
    from google.adk.tools import FunctionTool
    from pytest_approvals import calls, say

    def look(at: str) -> str:
        "Looks."
        return "seen"

    def send_mail(to: str) -> str:
        "Sends a mail."
        return "sent"

    def delete_mail(number: int) -> str:
        "Deletes a mail."
        return "deleted"

    def build(model):
        tools = [look, send_mail, FunctionTool(delete_mail, require_confirmation=True)]
        return LlmAgent(name="desk", model=model, tools=tools)

    def test_it(approvals):
        approvals.run(build, model=[calls("look", at="it"), say("Done.")])
"""


def test_a_tool_that_no_gate_covers_is_said_at_the_end(pytester: pytest.Pytester) -> None:
    """Without `gated=`, a tool with an effect by its name is noted; a gated one and one without are not."""
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
    approvals.explore(build, stories=10, gated={"refund"}, agent="google_adk")
    done.clear()

    with pytest.raises(CheckFailed, match="^runs-at-most-once: ") as caught:
        approvals.explore(
            partial(build, after_tool_callback=run_again), stories=20, gated={"refund"}, agent="google_adk"
        )

    assert [0, 0] == done[-2:]
    assert "calls('refund', {'order': 0})" in caught.value.__notes__[-1]

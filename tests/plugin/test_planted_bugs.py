"""Bugs of applications, planted in agents that are right without them: each is found, by the check that names it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from agents import Agent as SdkAgent
from agents import RunConfig, function_tool
from agents.run_config import CallModelData, ModelInputData
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, FunctionToolset, RunContext, ToolDenied
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.toolsets import WrapperToolset

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, reject_all, say, send
from pytest_approvals.errors import RequirementWarning

REFUND = [calls("refund", order=42), say("Done.")]

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


def build_pydantic_ai(
    model: Any, wrapper: Callable[[Any], Any] | None = None, gated: bool = True, **more: Any
) -> Agent[None, Any]:
    tools: FunctionToolset[None] = FunctionToolset()
    tools.add_function(refund, requires_approval=gated)
    toolset = tools if wrapper is None else wrapper(tools)
    return Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests], **more)


def build_openai_agents(model: Any, gated: bool = True) -> SdkAgent[None]:
    return SdkAgent(name="desk", model=model, tools=[function_tool(refund, needs_approval=gated)])


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


def keep_newest(messages: list[Any]) -> list[Any]:
    return messages[-1:]


def keep_oldest(data: CallModelData[Any]) -> ModelInputData:
    return ModelInputData(input=data.model_data.input[:1], instructions=None)


PYDANTIC_AI: dict[str, Any] = {"agent": "pydantic_ai"}
OPENAI_AGENTS: dict[str, Any] = {"agent": "openai_agents"}
FORGOTTEN: dict[str, Any] = {"gated": {"refund"}, "oracle": approve_all()}
REJECTED: dict[str, Any] = {"oracle": reject_all()}
APPROVED: dict[str, Any] = {"oracle": approve_all()}


def shorten(**settings: Any) -> dict[str, Any]:
    return {"run_options": {"run_config": RunConfig(**settings)}}


FOUND = {
    "forgotten-gate-pydantic-ai": (
        partial(build_pydantic_ai, gated=False),
        PYDANTIC_AI | FORGOTTEN,
        "approval-before-execution: .*expected  it waits for an approval",
        [42],
    ),
    "forgotten-gate-openai-agents": (
        partial(build_openai_agents, gated=False),
        OPENAI_AGENTS | FORGOTTEN,
        "approval-before-execution: .*expected  it waits for an approval",
        [42],
    ),
    "runs-after-a-rejection-pydantic-ai": (
        build_pydantic_ai,
        PYDANTIC_AI | REJECTED | {"answers": {"reject": True}},
        "rejected-never-runs: .*actual    it starts after it was rejected",
        [42],
    ),
    "rejection-told-as-ok-pydantic-ai": (
        build_pydantic_ai,
        PYDANTIC_AI | REJECTED | {"answers": {"reject": ToolDenied("ok")}},
        "rejection-told: .*actual    it is told 'ok'",
        [],
    ),
    "rejection-told-as-ok-openai-agents": (
        build_openai_agents,
        OPENAI_AGENTS | REJECTED | shorten(tool_error_formatter=lambda _: "ok"),
        "rejection-told: .*actual    it is told 'ok'",
        [],
    ),
    "state-is-dropped-pydantic-ai": (
        partial(build_pydantic_ai, capabilities=[ProcessHistory(keep_newest)]),
        PYDANTIC_AI | APPROVED,
        "model-input-well-formed: ",
        [42],
    ),
    "state-is-dropped-openai-agents": (
        build_openai_agents,
        OPENAI_AGENTS | APPROVED | shorten(call_model_input_filter=keep_oldest),
        "result-delivered-once: .*actual    neither call nor result in the model's input",
        [42],
    ),
    "other-arguments-than-approved-pydantic-ai": (
        partial(build_pydantic_ai, wrapper=AnotherOrder),
        PYDANTIC_AI | APPROVED,
        r"arguments-as-approved: .*expected  refund\(order=42\)\s+actual    refund\(order=43\)",
        [43],
    ),
    "double-effect-pydantic-ai": (
        partial(build_pydantic_ai, wrapper=CalledTwice),
        PYDANTIC_AI | APPROVED,
        "runs-at-most-once: .*expected  1 run\n +actual    2 runs",
        [42, 42],
    ),
}


@pytest.mark.parametrize("build", [build_pydantic_ai, build_openai_agents])
def test_the_agents_are_right_without_the_bugs(approvals: Approvals, build: Any) -> None:
    """Approved and rejected, no check has anything to say."""
    kind = build.__name__.removeprefix("build_")
    approvals.run(build, "Refund", model=REFUND, agent=kind, oracle=approve_all(), gated={"refund"})
    approvals.run(build, "Refund", model=REFUND, agent=kind, oracle=reject_all(), gated={"refund"})

    assert [42] == done


@pytest.mark.parametrize(("build", "options", "message", "effects"), FOUND.values(), ids=FOUND)
def test_a_planted_bug_is_found(
    approvals: Approvals, build: Any, options: dict[str, Any], message: str, effects: list[int]
) -> None:
    """The error names the check, and shows what should have been and what was."""
    with pytest.raises(CheckFailed, match=f"(?s)^{message}"):
        approvals.run(build, "Refund", model=REFUND, **options)

    assert effects == done


@pytest.mark.parametrize("name", ["forgotten-gate-pydantic-ai", "forgotten-gate-openai-agents"])
def test_a_finding_names_the_line_of_the_tool(approvals: Approvals, name: str) -> None:
    """What has to be mended is in the user's own file."""
    build, options, _, _ = FOUND[name]
    line = refund.__code__.co_firstlineno

    with pytest.raises(CheckFailed, match=rf"\n  tool      refund, tests/plugin/test_planted_bugs\.py:{line}\n"):
        approvals.run(build, "Refund", model=REFUND, **options)


def test_a_finding_about_no_tool_names_the_line_of_the_factory(approvals: Approvals) -> None:
    """Where the history is cut, the agent is what has to be mended."""
    build, options, _, _ = FOUND["state-is-dropped-pydantic-ai"]
    line = build_pydantic_ai.__code__.co_firstlineno

    with pytest.raises(CheckFailed) as caught:
        approvals.run(build, "Refund", model=REFUND, **options)

    assert [f"the agent is built at tests/plugin/test_planted_bugs.py:{line}"] == caught.value.__notes__


def test_an_answer_that_comes_twice_is_found(approvals: Approvals) -> None:
    """The framework asks its model once more, for nothing."""
    with pytest.raises(RequirementWarning, match="settled-stays-settled: "):
        approvals.run(
            build_openai_agents,
            model=[*REFUND, say("Again.")],
            caller=[send("Refund"), approve("c1"), approve("c1")],
            **OPENAI_AGENTS,
        )

    assert [42] == done


def test_an_answer_that_comes_twice_is_refused(approvals: Approvals) -> None:
    """A framework that does so is right, and the refusal is an outcome of the run."""
    caller = [send("Refund"), approve("c1"), approve("c1")]
    run = approvals.run(build_pydantic_ai, model=REFUND, caller=caller, **PYDANTIC_AI)

    assert run.turns[-1].refused
    assert [42] == done


def test_what_a_body_does_before_it_asks_is_for_the_test_to_see(approvals: Approvals) -> None:
    """A body is entered, asks, and is entered again; between is what only the effects show."""
    approvals.run(build_eager, "Refund", model=REFUND, **PYDANTIC_AI, **REJECTED)

    assert [42] == done

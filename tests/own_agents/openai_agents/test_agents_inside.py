"""Agents of the OpenAI Agents SDK that the body of a tool runs with a `Runner`.

After "Agents as tools" of https://openai.github.io/openai-agents-python/tools/, for what `as_tool` does not do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool

from pytest_approvals import Approvals, CheckFailed, approve_all, calls, say

done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@function_tool
def look_up(order: int) -> str:
    """Looks up an order."""
    done.append(f"look up {order}")
    return f"order {order} is old"


@function_tool
async def refund(order: int) -> str:
    """Refunds an order."""
    done.append(f"refund {order}")
    return f"refunded {order}"


@function_tool(needs_approval=True)
def close_account(customer: str) -> str:
    """Closes an account."""
    return f"closed {customer}"


def build_awaiting(model: Any) -> Agent[Any]:
    auditor = Agent[Any](name="auditor", model=model, tools=[look_up, refund])

    @function_tool
    async def audit(request: str) -> str:
        """Audits an order."""
        result = await Runner.run(auditor, request, max_turns=5)
        return str(result.final_output)

    return Agent[Any](name="desk", model=model, tools=[audit, close_account])


def build_streaming(model: Any) -> Agent[Any]:
    auditor = Agent[Any](name="auditor", model="gpt-5", tools=[look_up, refund])

    @function_tool
    async def audit(request: str) -> str:
        """Audits an order."""
        result = Runner.run_streamed(auditor, request, run_config=RunConfig(workflow_name="audit"))
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    return Agent[Any](name="desk", model=model, tools=[audit, close_account])


def build_blocking(model: Any) -> Agent[Any]:
    auditor = Agent[Any](name="auditor", model=model, tools=[look_up, refund])

    @function_tool
    def audit(request: str) -> str:
        """Audits an order."""
        return str(asyncio.run(Runner.run(auditor, request)).final_output)

    return Agent[Any](name="desk", model=model, tools=[audit, close_account])


def build_two_deep(model: Any) -> Agent[Any]:
    desk = build_awaiting(model)

    @function_tool
    async def ask_desk(request: str) -> str:
        """Asks the desk."""
        return str((await Runner.run(desk, request)).final_output)

    return Agent[Any](name="front", model=model, tools=[ask_desk])


INSIDE = [calls("look_up", order=42), calls("refund", order=42), say("No objection.")]
NAMED: Any = {"main": [calls("audit", request="order 42"), say("Fine.")], "auditor": INSIDE}
SHARED: Any = [calls("audit", request="order 42"), *INSIDE, say("Fine.")]

Build = Callable[[Any], Any]


@pytest.mark.parametrize("build", [build_awaiting, build_streaming, build_blocking])
@pytest.mark.parametrize("model", [NAMED, SHARED], ids=["named", "shared"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_an_agent_in_a_body_does_is_seen(approvals: Approvals, build: Build, model: Any, stream: bool) -> None:
    run = approvals.run(build, "Audit it", model=model, stream=stream)

    assert ["look up 42", "refund 42"] == done
    assert ["refunded 42"] == [one.result for one in run.calls["refund"].executions]
    assert ["auditor"] == [call.agent for call in run.calls["refund"].made]
    assert "Fine." == run.output


@pytest.mark.parametrize("build", [build_awaiting, build_streaming, build_blocking])
def test_a_gate_that_an_agent_in_a_body_forgot_is_found(approvals: Approvals, build: Build) -> None:
    with pytest.raises(CheckFailed, match=r"approval-before-execution"):
        approvals.run(build, "Audit it", model=NAMED, gated={"refund"})


def test_agents_are_seen_two_deep(approvals: Approvals) -> None:
    run = approvals.run(
        build_two_deep,
        "Audit it",
        model={
            "main": [calls("ask_desk", request="order 42"), say("Done.")],
            "desk": [calls("audit", request="order 42"), say("Fine.")],
            "auditor": INSIDE,
        },
    )

    assert ["auditor"] == [call.agent for call in run.calls["refund"].made]
    assert ["Fine."] == [one.result for one in run.calls["ask_desk"].executions]


def test_a_request_after_an_agent_in_a_body_survives_a_restart(approvals: Approvals) -> None:
    run = approvals.run(
        build_awaiting,
        "Audit and close",
        model={
            "main": [calls("close_account", customer="Ann"), calls("audit", request="order 42"), say("Fine.")],
            "auditor": INSIDE,
        },
        oracle=approve_all(),
        serialize="json",
        resume="fresh",
    )

    assert ["refunded 42"] == [one.result for one in run.calls["refund"].executions]


def test_the_agents_of_others_are_as_before(approvals: Approvals) -> None:
    agent = Agent[Any](name="auditor", tools=[look_up, refund])
    approvals.run(agent, model=[calls("look_up", order=1), say("Found.")])

    assert [look_up, refund] == agent.tools

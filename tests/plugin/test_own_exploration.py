"""Stories that are drawn for a person's own agent."""

from __future__ import annotations

import sys
from typing import Any

import agents as openai
import pytest
from hypothesis import strategies
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

from pytest_approvals.checks import CheckFailed
from pytest_approvals.errors import UnknownName, UsageError


def build_shop(model: object) -> Agent[None, object]:
    """Build an agent with a tool that asks, and one that does not."""
    agent = Agent(model, output_type=[str, DeferredToolRequests])  # type: ignore[call-overload]

    @agent.tool_plain(requires_approval=True)
    def refund(order: int, note: str = "") -> str:
        return f"order {order} is refunded{note}"

    @agent.tool_plain
    def look(path: str) -> str:
        return f"content of {path}"

    return agent  # type: ignore[no-any-return]


class Retrying(WrapperToolset[Any]):
    """Calls each tool once more than it is asked to."""

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        await super().call_tool(name, tool_args, ctx, tool)
        return await super().call_tool(name, tool_args, ctx, tool)


def build_retrying(model: object) -> Agent[None, object]:
    """Build an agent that refunds twice."""

    def refund(order: int) -> str:
        return f"order {order} is refunded"

    tools = FunctionToolset[Any]()
    tools.add_function(refund, requires_approval=True)
    return Agent(model, output_type=[str, DeferredToolRequests], toolsets=[Retrying(tools)])  # type: ignore[call-overload, no-any-return]


def build_desk(model: object) -> openai.Agent:
    """Build the shop on the OpenAI Agents SDK; its own code says that, since this module imports two frameworks."""

    @openai.function_tool(needs_approval=True)
    def refund(order: int, note: str) -> str:
        return f"order {order} is refunded{note}"

    @openai.function_tool
    def look(path: str) -> str:
        return f"content of {path}"

    return openai.Agent(name="desk", model=model, tools=[refund, look])  # type: ignore[arg-type]


def build_bare(model: object) -> Agent[None, str]:
    """Build an agent without tools."""
    return Agent(model)  # type: ignore[call-overload, no-any-return]


SMALLEST = """\
the smallest story that fails so:
approvals.run(
    build_agent,
    model=[
        calls('look', {'path': ''}),
        say("Done."),
    ],
    oracle=approve_all(),
)"""


def test_an_agent_without_a_bug_passes(approvals) -> None:
    """Whatever its model calls, and whatever is decided; no story is left among the runs of the test."""
    approvals.explore(build_shop, stories=6)

    assert [] == approvals.runs


def test_the_smallest_failing_story_can_be_pasted_into_a_test(approvals) -> None:
    """It has one call and one answer of the model."""
    with pytest.raises(CheckFailed) as error:
        approvals.explore(build_shop, stories=6, gated=["refund", "look"])

    assert [SMALLEST] == error.value.__notes__


def test_a_double_run_is_found(approvals) -> None:
    """By a story of two steps: one call that is approved."""
    with pytest.raises(CheckFailed, match="runs-at-most-once") as error:
        approvals.explore(build_retrying, stories=6)

    [story] = error.value.__notes__
    assert "    model=[\n        calls('refund', {'order': 0}),\n        say(\"Done.\"),\n    ],\n" in story


def test_an_agent_of_the_openai_sdk_is_explored(approvals) -> None:
    """Its tools are read from it, too."""
    approvals.explore(build_desk, stories=6)
    with pytest.raises(CheckFailed, match="approval-before-execution"):
        approvals.explore(build_desk, stories=6, gated=["refund", "look"])


def test_values_that_follow_from_more_than_their_type_can_be_given(approvals) -> None:
    """The strategy of an argument replaces that of its type."""
    paths = {"look": {"path": strategies.just("a.txt")}}
    with pytest.raises(CheckFailed) as error:
        approvals.explore(build_shop, stories=6, gated=["refund", "look"], arguments=paths)

    assert "calls('look', {'path': 'a.txt'})" in error.value.__notes__[0]


def build_delegating(model: Any) -> Agent[None, str]:
    """Build an agent whose tool runs another one."""
    auditor = Agent[None, str](model, name="auditor")
    agent = Agent[None, str](model)

    @agent.tool_plain
    async def audit(order: int) -> str:
        return (await auditor.run(f"Audit {order}")).output

    return agent


def test_an_agent_in_a_body_takes_no_reply_of_the_story(approvals) -> None:
    """It says that it is done, as often as it is run."""
    approvals.explore(build_delegating, stories=5)


@pytest.mark.asyncio
async def test_stories_can_be_played_beside_a_running_loop(approvals) -> None:
    """`aexplore` raises what `explore` raises."""
    with pytest.raises(CheckFailed):
        await approvals.aexplore(build_shop, stories=6, gated=["refund", "look"])


def test_a_mistake_is_named(approvals) -> None:
    """With what to do instead."""
    with pytest.raises(UsageError, match="stories=0: must be at least 1"):
        approvals.explore(build_shop, stories=0)
    with pytest.raises(UsageError, match="has no tools of its own"):
        approvals.explore(build_bare, stories=5)
    with pytest.raises(UnknownName, match="Unknown tool 'lok'"):
        approvals.explore(build_shop, arguments={"lok": {}})
    with pytest.raises(UnknownName, match="Unknown argument 'pat'"):
        approvals.explore(build_shop, arguments={"look": {"pat": strategies.just("")}})


def test_a_missing_package_is_named(approvals, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that brings it."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)

    with pytest.raises(UsageError, match=r"pytest-approvals\[explore\]"):
        approvals.explore(build_shop)

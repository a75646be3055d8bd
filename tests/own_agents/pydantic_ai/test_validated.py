"""Validators and sets as the documentation of Pydantic AI writes them, beside a gate.

https://ai.pydantic.dev/tools-advanced/#args-validator
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, FunctionToolset, ModelRetry, RunContext, Tool
from pydantic_ai.toolsets import WrapperToolset

from pytest_approvals import Approvals, CheckFailed, approve_all, calls, say


def build(model: Any) -> Agent[None, Any]:
    def check(ctx: RunContext[None], path: str) -> None:
        if path.startswith("/"):
            raise ModelRetry("use a relative path")

    def read(ctx: RunContext[None], path: str) -> str:
        return f"text of {path}"

    def remove(paths: set[str]) -> str:
        return f"removed {len(paths)}"

    tools: list[Any] = [Tool(read, args_validator=check), Tool(remove, requires_approval=True)]
    return Agent(model, output_type=[str, DeferredToolRequests], tools=tools)


def test_a_validator_refuses_a_call(approvals: Approvals) -> None:
    """The model is told why, and does not have to try again."""
    run = approvals.run(build, model=[calls("read", path="/etc"), say("I may not.")])

    assert [] == run.calls["read"].executions


def test_a_set_is_handed_over_in_any_order(approvals: Approvals) -> None:
    """Python gives it the order of its hashes."""
    paths = [f"file {number}" for number in range(20)]
    run = approvals.run(build, model=[calls("remove", paths=[*paths, "file 1"]), say("Removed.")], oracle=approve_all())

    assert "removed 20" == run.calls["remove"].executions[0].result


def test_a_set_with_other_parts_is_found(approvals: Approvals) -> None:
    """Its order is all that does not count."""

    class Wider(WrapperToolset[None]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            return await super().call_tool(name, {"paths": tool_args["paths"] | {"c"}}, ctx, tool)

    def build_careless(model: Any) -> Agent[None, Any]:
        tools: FunctionToolset[None] = FunctionToolset()

        @tools.tool_plain(requires_approval=True)
        def remove(paths: set[str]) -> str:
            return "removed"

        return Agent(model, output_type=[str, DeferredToolRequests], toolsets=[Wider(tools)])

    with pytest.raises(CheckFailed, match="arguments-as-approved"):
        approvals.run(build_careless, model=[calls("remove", paths=["a", "b"]), say("Done.")], oracle=approve_all())

"""Validators, sets and structured answers as the documentation of Pydantic AI writes them, beside a gate.

https://ai.pydantic.dev/tools-advanced/#args-validator
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, FunctionToolset, ModelRetry, RunContext, Tool
from pydantic_ai.toolsets import WrapperToolset

from pytest_approvals import AgentFailed, Approvals, CheckFailed, approve_all, calls, returns, say, tool
from pytest_approvals.errors import UsageError


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


class Booking(BaseModel):
    flight: int


def build_desk(model: Any) -> Agent[None, Any]:
    searcher = Agent(model, name="searcher", output_type=list[int])
    desk = Agent(model, output_type=[Booking, DeferredToolRequests])

    @desk.tool_plain
    async def search(city: str) -> list[int]:
        return (await searcher.run(f"Flights to {city}")).output

    @desk.tool_plain(requires_approval=True)
    def book(flight: int) -> str:
        return f"booked {flight}"

    return desk


FOUND = calls("final_result", response=[7])
BOOKED = calls("final_result", flight=7)


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


def test_an_agent_in_a_tool_gives_a_structured_answer(approvals: Approvals) -> None:
    """Its output tool is none of the tools that the agents list, also if the turn goes on to a request."""
    run = approvals.run(
        build_desk,
        model={"main": [calls("search", city="Rome"), calls("book", flight=7), BOOKED], "searcher": [FOUND]},
        oracle=approve_all(),
    )

    assert {"flight": 7} == run.output


def test_drawn_stories_end_with_structured_answers(approvals: Approvals) -> None:
    """Those of agents in tools are given again for each run."""
    pytest.importorskip("hypothesis")
    approvals.explore(build_desk, stories=10, ending={"main": BOOKED, "searcher": FOUND})


@pytest.mark.parametrize(
    ("ending", "advice"),
    [("Done.", r"ending=calls\(\"final_result\""), ({"main": BOOKED}, r"ending=\{'searcher': calls\(\"final_result\"")],
)
def test_a_text_in_place_of_a_structured_answer_is_explained(approvals: Approvals, ending: Any, advice: str) -> None:
    """The framework asks again for what the model does not give."""
    pytest.importorskip("hypothesis")
    with pytest.raises(AgentFailed) as failed:
        approvals.explore(build_desk, stories=20, ending=ending)

    assert re.search(advice, "\n".join(failed.value.__notes__))


def test_an_ending_that_is_no_answer_is_explained(approvals: Approvals) -> None:
    """The framework asks for another one."""
    pytest.importorskip("hypothesis")
    with pytest.raises(UsageError, match="asks its model again after a call of 'final_result'"):
        approvals.explore(build_desk, stories=1, ending=calls("final_result", seat=7))


def test_tools_of_a_server_are_explored_by_name(approvals: Approvals, mcp_server: Any) -> None:
    """Only a connected agent knows them, so the test says with what they are called."""
    from hypothesis import strategies
    from pydantic_ai.mcp import MCPToolset

    bank = mcp_server("bank", tool("pay", returns("paid"), parameters={"amount": "integer"}))

    def build_teller(model: Any) -> Agent[None, Any]:
        gated = MCPToolset(bank.url).approval_required()
        return Agent(model, toolsets=[gated], output_type=[str, DeferredToolRequests])

    with pytest.raises(UsageError, match=r"call pay: arguments=\{'pay': "):
        approvals.explore(build_teller, stories=3)
    approvals.explore(
        build_teller, stories=3, oracle=approve_all(), arguments={"pay": {"amount": strategies.integers(1, 9)}}
    )

    assert {"pay"} == {name for name, _ in bank.ran}

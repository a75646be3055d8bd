"""A user's agent whose tools run other agents: scripts by name or one for all, and what is seen of them."""

from __future__ import annotations

import agents
import pydantic_ai
import pytest

__all__ = ["agents", "pydantic_ai"]

PYDANTIC_AI = """
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.test import TestModel
from pytest_approvals import calls, say

ran = []

def build(model, inner=None):
    clerk = Agent(inner or model, name="clerk")

    @clerk.tool_plain
    def read(order: int) -> str:
        ran.append(("read", order))
        return "old"

    auditor = Agent(inner or model, name="auditor")

    @auditor.tool_plain
    async def look_up(order: int) -> str:
        return (await clerk.run(f"Read {order}")).output

    desk = Agent(model, name="desk", output_type=[str, DeferredToolRequests])

    @desk.tool_plain(requires_approval=True)
    async def audit(order: int) -> str:
        async with auditor.run_stream(f"Audit {order}") as result:
            return await result.get_output()

    return desk

def build_with_test_models(model):
    return build(model, TestModel(call_tools=[]))

def build_anew(model):
    return build(model)
"""

OPENAI_AGENTS = """
from agents import Agent, function_tool
from pytest_approvals import calls, say

ran = []

def build(model, gated=False):
    @function_tool(needs_approval=gated)
    def read(order: int) -> str:
        "Reads."
        ran.append(("read", order))
        return "old"

    clerk = Agent(name="clerk", model=model, tools=[read])
    auditor = Agent(name="auditor", model=model, tools=[clerk.as_tool("look_up", "Looks up")])
    return Agent(name="desk", model=model, tools=[auditor.as_tool("audit", "Audits")])

def build_gated(model):
    return build(model, gated=True)

def build_hand_off(model):
    @function_tool(needs_approval=True)
    def refund(order: int) -> str:
        "Refunds."
        ran.append(("refund", order))
        return "refunded"

    billing = Agent(name="billing", model=model, tools=[refund])
    return Agent(name="desk", model=model, handoffs=[billing])
"""


@pytest.fixture
def desk(project):
    """A project with agents of both frameworks that run others, two deep."""
    project.write("desk_pydantic.py", PYDANTIC_AI)
    project.write("desk_openai.py", OPENAI_AGENTS)
    project.write("conftest.py", "import sys, pathlib; sys.path.insert(0, str(pathlib.Path(__file__).parent))")
    return project


def test_agents_in_bodies_of_tools(desk) -> None:
    """With Pydantic AI: each has a script of its own or they share one; all they run is recorded."""
    desk.write(
        "test_it.py",
        """
        import pytest
        from desk_pydantic import build, build_with_test_models, calls, ran, say

        MAIN = [calls("audit", order=1), say("Done.")]
        AUDITOR = [calls("look_up", order=1), say("No objection.")]
        CLERK = [calls("read", order=1), say("It is old.")]
        BY_NAME = {"main": MAIN, "auditor": AUDITOR, "clerk": CLERK}
        SHARED = [MAIN[0], AUDITOR[0], *CLERK, AUDITOR[1], MAIN[1]]

        @pytest.mark.parametrize("model", [BY_NAME, SHARED], ids=["by-name", "shared"])
        def test_recorded(approvals, serialize_mode, model):
            ran.clear()
            run = approvals.run(build, model=model)
            assert ran == [("read", 1)]
            assert [("audit", "No objection."), ("look_up", "It is old."), ("read", "old")] == [
                (name, *[execution.result for execution in run.calls[name].executions])
                for name in ("audit", "look_up", "read")
            ]
            assert not [verdict for verdict in run.verdicts if verdict.status == "fail"]
            assert "Done." == run.output

        def test_scripts_go_on(approvals):
            model = {
                "main": [calls("audit", order=1), calls("audit", order=2), say("Done.")],
                "auditor": [say("first"), say("second")],
            }
            run = approvals.run(build, model=model)
            assert ["first", "second"] == [execution.result for execution in run.calls["audit"].executions]

        def test_own_test_models_are_kept(approvals):
            run = approvals.run(build_with_test_models, model=MAIN)
            assert ["success (no tool calls)"] == [execution.result for execution in run.calls["audit"].executions]
        """,
    )

    desk.run("-W", "error::pytest_approvals.errors.RequirementWarning", agents="").assert_outcomes(passed=6)


def test_agents_that_are_tools(desk) -> None:
    """With OpenAI Agents: `as_tool`, two deep and with a gate inside, and hand-offs."""
    desk.write(
        "test_it.py",
        """
        import pytest
        from desk_openai import build, build_gated, build_hand_off, calls, ran, say

        MAIN = [calls("audit", input="Audit 1"), say("Done.")]
        AUDITOR = [calls("look_up", input="Read 1"), say("No objection.")]
        CLERK = [calls("read", order=1), say("It is old.")]
        BY_NAME = {"main": MAIN, "auditor": AUDITOR, "clerk": CLERK}
        SHARED = [MAIN[0], AUDITOR[0], *CLERK, AUDITOR[1], MAIN[1]]
        REFUND = [calls("transfer_to_billing"), calls("refund", order=1), say("Done.")]

        @pytest.mark.parametrize("model", [BY_NAME, SHARED], ids=["by-name", "shared"])
        @pytest.mark.parametrize("factory", [build, build_gated])
        def test_as_tool(approvals, factory, model):
            ran.clear()
            run = approvals.run(factory, model=model)
            assert ran == [("read", 1)]
            assert len(run.requests) == (factory is build_gated)
            assert "Done." == run.output

        @pytest.mark.parametrize("model", [{"main": REFUND[:1], "billing": REFUND[1:]}, REFUND], ids=["own", "one"])
        def test_hand_off(approvals, serialize_mode, model):
            ran.clear()
            run = approvals.run(build_hand_off, model=model)
            assert ran == [("refund", 1)]
            assert "Done." == run.output
        """,
    )

    desk.run("-W", "error::pytest_approvals.errors.RequirementWarning", agents="").assert_outcomes(passed=8)


def test_a_gate_that_is_forgotten_inside_is_found(desk) -> None:
    """A tool in `gated` may be that of an agent inside; it needs a script of its own, or its name is refused."""
    desk.write(
        "test_it.py",
        """
        from desk_openai import build as build_with_tools
        from desk_pydantic import build, calls, say

        MODEL = {
            "main": [calls("audit", order=1), say("Done.")],
            "auditor": [calls("look_up", order=1), say("No objection.")],
            "clerk": [calls("read", order=1), say("It is old.")],
        }
        SHARED = [MODEL["main"][0], MODEL["auditor"][0], *MODEL["clerk"], MODEL["auditor"][1], MODEL["main"][1]]

        def test_named(approvals):
            approvals.run(build, model=MODEL, gated={"audit", "read"})

        def test_shared(approvals):
            approvals.run(build, model=SHARED, gated={"audit", "read"})

        def test_tools(approvals):
            model = {
                "main": [calls("audit", input="Audit 1"), say("Done.")],
                "auditor": [calls("look_up", input="Read 1"), say("No objection.")],
                "clerk": MODEL["clerk"],
            }
            approvals.run(build_with_tools, model=model, gated={"read"})
        """,
    )
    result = desk.run(agents="")

    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "E *.CheckFailed: approval-before-execution: *",
            "E *the gated tool 'read' belongs to the agent 'clerk' inside a tool of pydantic_ai, *",
            "E *.CheckFailed: approval-before-execution: *",
        ]
    )


def test_names_without_the_main_agent_are_refused(desk) -> None:
    """They would be first messages; the error says how agents are named."""
    desk.write(
        "test_it.py",
        """
        from desk_pydantic import build, calls, say

        def test_it(approvals):
            model = {"desk": [calls("audit", order=1), say("Done.")], "auditor": [say("No objection.")]}
            approvals.run(build, "Audit 1", model=model)
        """,
    )
    result = desk.run(agents="")

    result.assert_outcomes(failed=1)
    problem = "no conversation of 'main' begins with 'desk'; valid: Audit 1; if 'desk' is another agent"
    remedy = "add the replies of the agent that is run: model={'main': [[]...], 'desk': [[]...]}"
    result.stdout.fnmatch_lines([f"E *ScenarioError: *{problem}, {remedy}"])

"""Gates that a test describes: names, conditions, functions of the arguments, or what the framework asks about."""

from __future__ import annotations

import agents
import pydantic_ai
import pytest

__all__ = ["agents", "pydantic_ai"]

PYDANTIC_AI = """
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, RunContext

def build(model, limit=100):
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool
    def pay(context: RunContext, amount: int) -> str:
        if amount > limit and not context.tool_call_approved:
            raise ApprovalRequired
        return f"paid {amount}"

    return agent
"""

OPENAI_AGENTS = """
from agents import Agent, function_tool

def build(model, limit=100):
    async def needs_approval(context, arguments, call_id):
        return arguments["amount"] > limit

    @function_tool(needs_approval=needs_approval)
    def pay(amount: int) -> str:
        return f"paid {amount}"

    return Agent(name="teller", model=model, tools=[pay])
"""

TEST = """
from functools import partial
from pytest_approvals import calls, reject_all, say, when

def play(approvals, amount, gated, limit=100, **options):
    model = [calls("pay", amount=amount), say("Done.")]
    return approvals.run(partial(build, limit=limit), model=model, gated=gated, agent=AGENT, **options)
"""

GATES = {
    "condition": '{"pay": when("amount", greater_than=100)}',
    "function": '{"pay": lambda arguments: arguments["amount"] > 100}',
    "framework": "None",
}


@pytest.fixture(params=["pydantic_ai", "openai_agents"])
def bank(request: pytest.FixtureRequest, project):
    """A project whose agent asks about payments above a limit."""
    source = {"pydantic_ai": PYDANTIC_AI, "openai_agents": OPENAI_AGENTS}[request.param]
    project.write("bank.py", f"AGENT = {request.param!r}\n" + source + TEST)
    return project


@pytest.mark.parametrize("gate", GATES)
def test_a_conditional_gate_is_judged_by_its_condition(bank, gate: str) -> None:
    """Calls below and above the limit, approved and rejected, have no finding and no warning."""
    bank.write(
        "test_it.py",
        f"""
        import pytest
        from bank import *

        GATED = {GATES[gate]}

        @pytest.mark.parametrize("amount", [5, 500])
        @pytest.mark.parametrize("oracle", ["approve_all", "reject_all"])
        def test_it(approvals, amount, oracle):
            run = play(approvals, amount, GATED, oracle=oracle, unused=GATED is None)
            assert len(run.requests) == (amount > 100)
            assert run.calls["pay"].executions or oracle == "reject_all"
        """,
    )
    result = bank.run("-Werror", agents="")

    result.assert_outcomes(passed=4)


@pytest.mark.parametrize("gate", ["condition", "function"])
def test_a_gate_that_lets_other_calls_run_is_found(bank, gate: str) -> None:
    """A call above the limit runs without a question."""
    bank.write(
        "test_it.py",
        f"""
        from bank import *

        def test_forgotten(approvals):
            play(approvals, 500, {GATES[gate]}, limit=1000)
        """,
    )
    result = bank.run("-Werror", agents="")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E *CheckFailed: approval-before-execution: *", "E *expected  it waits for an approval"]
    )


@pytest.mark.parametrize("gate", ["condition", "function"])
def test_a_gate_that_asks_about_other_calls_is_found(project, gate: str) -> None:
    """A call below the limit is asked about."""
    project.write("bank.py", "AGENT = 'openai_agents'\n" + OPENAI_AGENTS + TEST)
    project.write(
        "test_it.py",
        f"""
        from bank import *

        def test_needless(approvals):
            play(approvals, 50, {GATES[gate]}, limit=10)
        """,
    )
    result = project.run("-Werror", agents="")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *RequirementWarning: warning: only-gated-asked: *"])


@pytest.mark.parametrize(
    ("gated", "error"),
    [
        ('{"pay": 100}', "gated={'pay': ...} is 100; expected when(...), a function of the call's arguments, *"),
        ('{"pay": when("amount")}', "gated={'pay': ...}: expected an argument and a comparison, as in when(*"),
        ('{"pay": when(answers=[True])}', "gated={'pay': ...}: answers= scripts a policy; describe the agent's by *"),
        ('{"pai": when("amount", equals=1)}', "Unknown tool 'pai' in gated= for *; did you mean 'pay'?"),
        ('{"pay": lambda arguments: 7}', "*gated={'pay': ...} returned 7 for {'amount': 5}; expected True or False*"),
    ],
)
def test_a_gate_that_cannot_be_used_is_refused(project, gated: str, error: str) -> None:
    """With what is expected."""
    project.write("bank.py", "AGENT = 'pydantic_ai'\n" + PYDANTIC_AI + TEST)
    project.write("test_it.py", f"from bank import *\n\ndef test_it(approvals):\n    play(approvals, 5, {gated})\n")
    result = project.run(agents="")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *{error.replace('[', '[[]')}"])


UNGATED = """
from pydantic_ai import Agent, DeferredToolRequests
from pytest_approvals import approve_all, calls, say

def build(model, gated=False):
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=gated)
    def send_mail(to: str) -> str:
        return "sent"

    @agent.tool_plain
    def look(at: str) -> str:
        return "seen"

    @agent.tool_plain
    def postpone(day: str) -> str:
        return "postponed"

    @agent.tool_plain
    def transfer_to_support() -> str:
        return "transferred"

    return agent

def build_gated(model):
    return build(model, gated=True)

LOOK = [calls("look", at="it"), say("Done.")]

def test_one(approvals):
    approvals.run(build, model=LOOK)

def test_another(approvals):
    approvals.run(build, model=LOOK)

def test_that_says_so(approvals):
    approvals.run(build, model=LOOK, gated=[])

def test_with_a_gate(approvals):
    approvals.run(build_gated, model=LOOK)
"""
NOTHING = (
    "note: nothing in these tests needs an approval: the agents mark no tool, and no test says which ones have to be "
    "asked about (gated=)"
)
EFFECTS = (
    "note: these tools have effects, by their annotations or names, and need no approval: send_mail (test_it.py); gate "
    "those that a person has to approve, or say gated=[] if none is"
)


@pytest.mark.parametrize(
    ("chosen", "notes", "workers"),
    [
        ("test_one or test_another", [NOTHING, EFFECTS], 0),
        ("test_one or test_another", [NOTHING, EFFECTS], 2),
        ("test_one or test_with_a_gate", [EFFECTS], 0),
        ("test_that_says_so or test_with_a_gate", [], 0),
    ],
    ids=["nothing is gated", "nothing is gated, two workers", "one test gates", "said or gated"],
)
def test_what_no_gate_covers_is_said_once(project, chosen: str, notes: list[str], workers: int) -> None:
    """At the end of the session, also under pytest-xdist; a test is neither failed nor warned of."""
    project.write("test_it.py", UNGATED)
    result = project.run("-k", chosen, "-n", str(workers), agents="")

    result.assert_outcomes(passed=2)
    assert notes == [line for line in result.outlines if line.startswith("note: ")]


NEVER_BUILT = """
import pytest
from pytest_approvals import say
from pytest_approvals.errors import AgentFailed

def build(model):
    raise OSError("no such folder")

def test_a_folder_that_is_not_there(approvals):
    with pytest.raises(AgentFailed):
        approvals.run(build, model=[say("Done.")], agent="pydantic_ai")
"""


def test_an_agent_that_was_never_built_has_no_note(project) -> None:
    """Which of its tools it marks is unknown."""
    project.write("test_it.py", NEVER_BUILT)
    result = project.run(agents="")

    result.assert_outcomes(passed=1)
    assert [] == [line for line in result.outlines if line.startswith("note: ")]


ASKING_BODY = """
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, RunContext
from pytest_approvals import calls, say

def build(model):
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool
    def send_mail(ctx: RunContext[None], to: str) -> str:
        if to != "me" and not ctx.tool_call_approved:
            raise ApprovalRequired
        return "sent"

    return agent

def test_asks(approvals):
    approvals.run(build, model=[calls("send_mail", to="you"), say("Done.")])

def test_does_not(approvals):
    approvals.run(build, model=[calls("send_mail", to="me"), say("Done.")])
"""


@pytest.mark.parametrize(
    ("chosen", "noted"), [("test", 0), ("does_not", 2)], ids=["with the test that is asked", "alone"]
)
def test_a_body_that_asks_in_some_test_is_gated(project, chosen: str, noted: int) -> None:
    """What a person was asked about in one test of a file is not listed for its other tests."""
    project.write("test_it.py", ASKING_BODY)
    result = project.run("-k", chosen, agents="")

    assert noted == len([line for line in result.outlines if line.startswith("note: ")])

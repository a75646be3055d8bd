"""A test that tests nothing fails: its script calls a tool that is not there, or is played to nobody."""

from __future__ import annotations

import pydantic_ai

__all__ = ["pydantic_ai"]

AGENT = """
from pydantic_ai import Agent
from pytest_approvals import call, calls, say

def build(model):
    agent = Agent(model)

    @agent.tool_plain
    def reimburse(amount: int) -> str:
        return "reimbursed"

    return agent
"""


def test_a_call_of_a_tool_that_is_not_there_fails(project) -> None:
    """It is refused with the nearest name, unless it is meant."""
    project.write(
        "test_it.py",
        AGENT
        + """
def test_misspelled(approvals):
    approvals.run(build, model=[calls("reimburs", amount=1), say("Done.")])

def test_meant(approvals):
    approvals.run(build, model=[calls(call("reimburs", amount=1, unknown_tool=True)), say("Done.")])

def test_collected(approvals):
    approvals.run(build, model=[calls("reimburs", amount=1), say("Done.")], checks="collect")
""",
    )
    result = project.run(agents="")

    result.assert_outcomes(failed=1, passed=2)
    result.stdout.fnmatch_lines(
        ["E *UnknownName: Unknown tool 'reimburs' in the script of the model of pydantic_ai; did you mean 'reimburse'?"]
    )


def test_a_scripted_model_that_nobody_asks_fails(project) -> None:
    """One without replies is no mistake: nothing was expected of it."""
    project.write(
        "test_it.py",
        AGENT
        + """
def test_forgotten(scripted_model):
    scripted_model.says("Done.")

def test_empty(scripted_model):
    pass

def test_played(approvals, scripted_model):
    approvals.run(build, model=scripted_model.says("Done."))
""",
    )
    result = project.run(agents="")

    result.assert_outcomes(failed=1, passed=2)
    result.stdout.fnmatch_lines(["E *UsageError: the scripted model has replies, and nobody asked for them: *"])

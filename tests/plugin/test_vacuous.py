"""A test that tests nothing fails: its script does not fit the tools, or nobody asks for it."""

from __future__ import annotations

import pydantic_ai
import pytest

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


GATED = (
    AGENT
    + """
from typing import Annotated, Literal
from pydantic import Field
from pydantic_ai import DeferredToolRequests
from pytest_approvals import approve, approve_all, reject_all, send
import pytest

def build(model):
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def refund(
        amount: Annotated[int, Field(gt=0)],
        note: int | str = "",
        why: Literal["late", "lost"] = "late",
        code: Annotated[str, Field(pattern="^[A-Z]+$")] = "A",
        limit: Annotated[int, Field(gt=0)] | None = None,
    ) -> str:
        if amount > 100:
            raise ValueError("too much")
        return "refunded"

    return agent
"""
)


@pytest.mark.parametrize(
    ("arguments", "misfit"),
    [
        pytest.param('amount="abc"', "'amount' is of type integer, not the string 'abc'", id="type"),
        pytest.param("amount=0", "'amount' is 0, and the schema of the tool says exclusiveMinimum: 0", id="minimum"),
        pytest.param(
            "amount=1, why='pest'",
            """'why' is "pest", and the schema of the tool says enum: ["late", "lost"]""",
            id="enum",
        ),
        pytest.param(
            "amount=1, code='4711'",
            """'code' is "4711", and the schema of the tool says pattern: "^[A-Z]+$\"""",
            id="pattern",
        ),
        pytest.param(
            "amount=1, limit=0",
            """'limit' is 0, and the schema of the tool says anyOf: [{"exclusiveMinimum": 0, "type": "integer"}, """
            """{"type": "null"}]""",
            id="optional",
        ),
        pytest.param("amount=1, notte=2", "it has no parameter 'notte'; did you mean 'note'?", id="unknown"),
        pytest.param("note=2", "the argument 'amount' is missing", id="missing"),
    ],
)
def test_arguments_that_do_not_fit_fail(project, arguments: str, misfit: str) -> None:
    """They are refused with what does not fit, unless the call says that it is meant."""
    project.write(
        "test_it.py",
        GATED
        + f"""
def test_wrong(approvals):
    approvals.run(build, model=[calls("refund", {arguments}), say("Done.")])

def test_meant(approvals):
    approvals.run(build, model=[calls(call("refund", {arguments}, invalid=True)), say("Done.")])

def test_explored(approvals):
    from hypothesis import strategies

    approvals.explore(build, stories=3, arguments={{"refund": {{"amount": strategies.integers(1, 100)}}}})
""",
    )
    result = project.run(agents="")

    result.assert_outcomes(failed=1, passed=2)
    result.stdout.fnmatch_lines(
        [
            "E *UsageError: the script of the model of pydantic_ai calls 'refund' with arguments that do not fit (c1): "
            + f"{misfit}; if that is meant, write calls(call('refund', ..., invalid=True))".replace("[", "[[]")
        ]
    )


def test_arguments_that_the_framework_takes_fit(project) -> None:
    """A text that is read as a number ran, and a schema of several types allows each of them."""
    project.write(
        "test_it.py",
        GATED
        + """
@pytest.mark.parametrize("oracle", [approve_all(), reject_all()])
def test_it(approvals, oracle):
    approvals.run(build, model=[calls("refund", amount="5", note="late"), say("Done.")], oracle=oracle)
""",
    )
    project.run(agents="").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(
            'model=[say("Done."), calls("refund", amount=1), say("More.")]',
            "pydantic_ai never asked the model for the last 2 replies in model=, from calls('refund', ...) on; ",
            id="replies",
        ),
        pytest.param(
            'model={"main": [say("Done.")], "auditor": [say("No objection.")]}',
            "pydantic_ai never asked the model of 'auditor' for any reply in model=, from say('No objection.') on; ",
            id="inner-model",
        ),
        pytest.param(
            'model=[say("Done.")], oracle=reject_all()',
            "oracle=reject_all() of the call was never asked: pydantic_ai made no approval request; ",
            id="oracle",
        ),
    ],
)
def test_what_nobody_asks_for_fails(project, call: str, message: str) -> None:
    """It is named, unless the run says that it may stay unused."""
    project.write(
        "test_it.py",
        GATED
        + f"""
def test_wrong(approvals):
    approvals.run(build, {call})

def test_meant(approvals):
    approvals.run(build, {call}, unused=True)

def test_collected(approvals):
    approvals.run(build, {call}, checks="collect")
""",
    )
    result = project.run(agents="")

    result.assert_outcomes(failed=1, passed=2)
    result.stdout.fnmatch_lines([f"E *UsageError: {message}*unused=True) if it is meant"])


def test_a_run_that_was_cut_short_leaves_replies_over(project) -> None:
    """A request that nobody answers and a failure end it; an oracle of the fixture may stay idle."""
    project.write(
        "test_it.py",
        GATED
        + """
@pytest.fixture
def approval_oracle():
    return reject_all()

def test_pending(approvals):
    approvals.run(build, model=[calls("refund", amount=1), say("Done.")], caller=[send("Go")])

def test_broken(approvals):
    approvals.run(build, model=[calls("refund", amount=500), say("Done."), say("More.")], oracle=approve_all())

def test_idle(approvals):
    approvals.run(build, model=[say("Done.")])
""",
    )
    result = project.run(agents="")

    result.assert_outcomes(failed=1, passed=2)
    result.stdout.fnmatch_lines(["E *AgentFailed: your tool `refund` raised ValueError: too much*"])


REIMBURSEMENT = """
from pydantic_ai import Agent, DeferredToolRequests
from pytest_approvals import calls, edit, say, send

def build(model):
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def reimburse(amount: int, to: str) -> str:
        return "reimbursed"

    return agent
"""


@pytest.mark.parametrize(
    ("edited", "misfit"),
    [
        ("amount=7", "the argument 'to' is missing"),
        ("amont=7, to='Ann'", "it has no parameter 'amont'; did you mean 'amount'?"),
        ("amount='all', to='Ann'", "'amount' is of type integer, not the string 'all'"),
    ],
)
def test_an_edit_that_does_not_fit_the_tool_fails(project, edited: str, misfit: str) -> None:
    """The framework tells the model so, and the call never runs."""
    project.write(
        "test_it.py",
        REIMBURSEMENT
        + f"""
MODEL = [calls("reimburse", amount=1, to="Ann"), say("Done.")]

def test_wrong(approvals):
    approvals.run(build, model=MODEL, caller=[send("Go"), edit("c1", {edited})])

def test_meant(approvals):
    approvals.run(build, model=MODEL, caller=[send("Go"), edit("c1", {edited}, invalid=True)])
""",
    )
    result = project.run(agents="")

    result.assert_outcomes(failed=1, passed=1)
    said = f"edit('c1', ...) has arguments that do not fit 'reimburse' of pydantic_ai: {misfit}"
    meant = "an edit takes all arguments of the call; if that is meant, write edit(..., invalid=True)"
    result.stdout.fnmatch_lines([f"E *UsageError: {said}; {meant}"])

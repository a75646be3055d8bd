"""Errors in the code of a user's agent, and what a refused answer comes to."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext

from pytest_approvals import (
    AgentFailed,
    approve,
    approve_all,
    call,
    calls,
    policy,
    raises,
    returns,
    say,
    send,
)
from pytest_approvals.errors import ScenarioError, UsageError

HERE = Path(__file__)
REFUND = [calls("refund", order=1), say("Refunded.")]


class Ledger:
    """What the agent's tools work on."""

    def __init__(self, *known: int) -> None:
        self.known = known
        self.tried: list[int] = []

    def look_up(self, order: int) -> str:
        """Finds an order, or raises because of another exception."""
        self.tried.append(order)
        try:
            return str(self.known.index(order))
        except ValueError as error:
            raise LookupError(f"no order {order}") from error


def build(model: Any) -> Agent[Ledger, Any]:
    agent: Agent[Ledger, Any] = Agent(model, deps_type=Ledger, output_type=[str, DeferredToolRequests])

    @agent.tool(requires_approval=True)
    def refund(ctx: RunContext[Ledger], order: int) -> str:
        return ctx.deps.look_up(order)

    return agent


def build_broken(model: Any) -> Agent[Ledger, Any]:
    raise ZeroDivisionError("no model")


def build_nothing(model: Any) -> None:
    """Forgets to return the agent."""


def build_object(model: Any) -> object:
    """Returns something else."""
    return object()


def build_model(model: Any) -> Any:
    """Returns what it was given."""
    return model


async def build_later(model: Any) -> Agent[Ledger, Any]:
    return build(model)


def build_for(model: Any, shop: str) -> Agent[Ledger, Any]:
    return build(model)


def known_order() -> dict[str, Any]:
    return {"deps": Ledger(1)}


def unknown_order() -> dict[str, Any]:
    return {"deps": Ledger()}


def line_of(text: str) -> int:
    """Returns the line of this file on which *text* stands first."""
    return next(number for number, line in enumerate(HERE.read_text().splitlines(), start=1) if text in line)


def frames(error: BaseException | None) -> list[str]:
    """Returns the functions in a traceback, from the outermost."""
    found, entry = [], error.__traceback__ if error is not None else None
    while entry is not None:
        found.append(entry.tb_frame.f_code.co_name)
        entry = entry.tb_next
    return found


def test_an_error_of_a_tool_is_told_with_its_file_and_its_own_lines(approvals) -> None:
    """The message names tool, file and line; the cause is the exception itself, with the user's lines only."""
    with pytest.raises(AgentFailed) as failed:
        approvals.run(build, model=REFUND, run_options={"deps": Ledger()}, oracle=approve_all())

    place = f"{HERE.name}:{line_of('raise LookupError')}"
    assert f"your tool `refund` raised LookupError: no order 1 (tests/plugin/{place})" == str(failed.value)
    assert ["refund", "look_up"] == frames(failed.value.__cause__)
    assert isinstance(failed.value.__cause__.__cause__, ValueError)


def test_an_oracle_does_not_approve_again_what_has_just_raised(approvals) -> None:
    """The body of the tool runs once, with the oracle's approval and with that of the script."""
    by_oracle, by_script = Ledger(), Ledger()
    approvals.run(build, model=REFUND, run_options={"deps": by_oracle}, oracle=approve_all(), checks="collect")
    approvals.run(
        build, model=REFUND, run_options={"deps": by_script}, caller=[send("Go"), approve("c1")], checks="collect"
    )

    assert [1] == by_oracle.tried
    assert [1] == by_script.tried


def test_an_oracle_goes_on_after_a_failure_of_the_script(approvals) -> None:
    """A stub that raises at first is approved again, because the test asks for the failure."""
    stub = {"refund": [raises("down"), returns("refunded")]}
    run = approvals.run(build, model=REFUND, tools=stub, oracle=approve_all(), checks="collect")

    assert ["paused", "failed", "finished"] == [turn.outcome for turn in run.turns]


def test_an_error_of_a_factory_is_that_of_the_factory(approvals) -> None:
    """It is no harness error, and its traceback has the factory alone."""
    with pytest.raises(AgentFailed) as failed:
        approvals.run(build_broken, model=REFUND, agent="pydantic_ai")

    assert str(failed.value).startswith("your factory `build_broken` raised ZeroDivisionError: no model (tests/plugin/")
    assert ["build_broken"] == frames(failed.value.__cause__)
    assert failed.value.__cause__.__context__ is None


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        pytest.param(
            build_nothing, "the factory build_nothing returned None; expected an agent of pydantic_ai", id="nothing"
        ),
        pytest.param(
            build_object,
            "the factory build_object returned an object of builtins.object; expected an agent of pydantic_ai",
            id="object",
        ),
        pytest.param(
            build_model, "the factory build_model returned the model; expected an agent of pydantic_ai", id="model"
        ),
        pytest.param(
            object(),
            "an object of builtins.object is neither an agent of pydantic_ai nor a factory of one",
            id="no factory",
        ),
        pytest.param(
            build_later,
            "Invalid factory build_later: it is a coroutine function; return the agent from a plain function",
            id="coroutine",
        ),
    ],
)
def test_a_factory_without_an_agent_is_refused(approvals, factory, message) -> None:
    """The message names the factory."""
    with pytest.raises(UsageError) as refused:
        approvals.run(factory, model=REFUND, agent="pydantic_ai")

    assert message == str(refused.value)


def test_an_agent_of_a_derived_class_is_an_agent(approvals) -> None:
    """Its framework is that of the class that it is derived from."""

    class Clerk(Agent):
        pass

    run = approvals.run(Clerk("test"), model=[say("Hello.")])

    assert "Hello." == run.output


def test_a_factory_with_more_arguments_is_refused(approvals) -> None:
    """The message shows its signature and the missing argument; a partial of it is taken."""
    with pytest.raises(UsageError) as refused:
        approvals.run(build_for, model=REFUND, agent="pydantic_ai")
    run = approvals.run(partial(build_for, shop="a"), model=REFUND, run_options=known_order(), oracle=approve_all())

    assert "the model as its only argument, and missing a required argument: 'shop'" in str(refused.value)
    assert "Refunded." == run.output


def test_an_error_of_an_oracle_is_that_of_the_oracle(approvals) -> None:
    """The message names the function that a policy asks."""

    def decide(request: Any) -> bool:
        raise KeyError("limit")

    with pytest.raises(AgentFailed) as failed:
        approvals.run(build, model=REFUND, run_options=known_order(), oracle=policy(decide))

    assert str(failed.value).startswith("your oracle `decide` raised KeyError: 'limit' (tests/plugin/")
    assert ["decide"] == frames(failed.value.__cause__)


def test_collected_runs_tell_what_broke_them(approvals) -> None:
    """With `checks="collect"` nothing is raised, and the failure has type and message."""
    run = approvals.run(build_broken, model=REFUND, agent="pydantic_ai", checks="collect")

    assert ("ZeroDivisionError", "no model") == run.failure


def test_a_failure_that_a_stub_asks_for_is_no_error_of_the_user(approvals) -> None:
    """A stub that raises fails the turn on purpose."""
    run = approvals.run(build, model=REFUND, tools={"refund": raises("down")}, oracle=approve_all(), checks="collect")

    assert "down" in run.failure[1]


def test_a_refused_second_answer_is_an_outcome(approvals) -> None:
    """The turn tells the framework's error, and the test does not fail."""
    run = approvals.run(
        build, model=REFUND, run_options=known_order(), caller=[send("Go"), approve("c1"), approve("c1")]
    )

    assert "UserError" == run.turns[-1].refused[0]
    assert [None, None] == [turn.refused for turn in run.turns[:-1]]


def test_a_refused_first_answer_is_a_failure(approvals) -> None:
    """What the framework should take and does not fails the test."""
    with pytest.raises(AgentFailed, match="unexpected keyword argument 'dep'"):
        approvals.run(build, model=REFUND, run_options={"dep": 1}, oracle=approve_all())


def test_a_script_that_is_too_short_names_the_turn(approvals) -> None:
    """The message says where the model is asked once more, and what to add."""
    with pytest.raises(AgentFailed, match=r"in turn 2 the agent asks its model once more: add a reply to model="):
        approvals.run(build, model=REFUND[:1], run_options=known_order(), oracle=approve_all())


def test_a_framework_that_handles_its_own_error_is_not_shown(approvals) -> None:
    """Of the exceptions that were being handled, those without the user's lines are left out."""

    def build_late(model: Any) -> Agent[Ledger, Any]:
        agent = build(model)

        @agent.instructions
        def fail() -> str:
            raise OSError("no file")

        return agent

    with pytest.raises(AgentFailed, match="your function `fail` raised OSError: no file") as failed:
        approvals.run(build_late, model=REFUND, run_options=known_order())

    assert ["fail"] == frames(failed.value.__cause__)


def test_equal_calls_are_scripted_on_request(approvals) -> None:
    """Without `equal_arguments=True` the message names it; an id that is used again says `repeats=True`."""
    twice = [calls("refund", order=1), calls("refund", order=1), say("Refunded.")]
    again = [calls("refund", order=1), calls(call("refund", order=1, id="c1", repeats=True)), say("Refunded.")]
    with pytest.raises(ScenarioError, match="pass `equal_arguments=True` if that is meant"):
        approvals.run(build, model=twice, run_options=known_order())

    for model in (twice, again):
        ledger = Ledger(1)
        approvals.run(build, model=model, run_options={"deps": ledger}, oracle=approve_all(), equal_arguments=True)
        assert [1, 1] == ledger.tried


def test_a_fresh_process_makes_the_options_itself(approvals) -> None:
    """A function of a module, or its name, makes objects there that cannot be sent."""
    run = approvals.run(
        build, model=REFUND, run_options=known_order, oracle=approve_all(), serialize="json", resume="fresh"
    )

    assert "0" == run.calls["refund"].executions[0].result


def test_an_error_of_a_tool_in_a_fresh_process_is_told_with_its_lines(approvals) -> None:
    """The message names tool, file and line, and the cause has the user's lines of the other process as a note."""
    with pytest.raises(AgentFailed) as failed:
        approvals.run(
            build, model=REFUND, run_options=unknown_order, oracle=approve_all(), serialize="json", resume="fresh"
        )

    place = f"tests/plugin/{HERE.name}:{line_of('raise LookupError')}"
    assert f"your tool `refund` raised LookupError: no order 1 ({place})" == str(failed.value)
    assert f"{place}, in look_up" in failed.value.__cause__.__notes__[0]
    assert [] == frames(failed.value.__cause__)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            {"deps": Ledger()}, "The option 'deps' in run_options cannot be sent to a fresh process", id="object"
        ),
        pytest.param(lambda: known_order(), "expected a function of a module that takes nothing", id="lambda"),
    ],
)
def test_options_that_cannot_cross_name_the_way_out(approvals, options, message) -> None:
    """The message says that a function of a module makes them there."""
    with pytest.raises(UsageError) as refused:
        approvals.run(build, model=REFUND, run_options=options, oracle=approve_all(), serialize="json", resume="fresh")

    assert message in str(refused.value)
    assert "'module:function'" in str(refused.value)


@pytest.mark.parametrize("name", ["options", "no_such_module:options"])
def test_a_name_that_makes_no_options_is_refused(approvals, name) -> None:
    """The message says what was expected, or what could not be imported."""
    with pytest.raises(UsageError):
        approvals.run(build, model=REFUND, run_options=name)


BROKEN_TESTS = """
from pydantic_ai import Agent, DeferredToolRequests
from pytest_approvals import approve_all, calls, edit, say

def build(model):
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def refund(order: int) -> str:
        return {}["missing"]

    return agent

def test_tool(approvals):
    approvals.run(build, model=[calls("refund", order=1), say("Done.")], oracle=approve_all())

def test_script(approvals):
    approvals.run(build, model=[calls("refund", order=1), calls("refund", order=1)], oracle=approve_all())

def test_reply(approvals):
    calls(say="nothing")
"""


def test_pytest_prints_no_lines_of_the_library(project) -> None:
    """Of a tool, of a script and of a builder of replies, the user's lines are printed alone."""
    project.write("test_broken.py", BROKEN_TESTS)
    result = project.run("test_broken.py", agents="")

    result.assert_outcomes(failed=3)
    printed = [line for line in result.outlines if ".py:" in line]
    assert [line for line in printed if line.startswith("/") or "pytest_approvals/" in line] == []
    result.stdout.fnmatch_lines(
        ['>       return {}[[]"missing"[]]', "*your tool `refund` raised KeyError: 'missing' (test_broken.py:10)"]
    )

"""A team of Agno, after `cookbook/03_teams/20_human_in_the_loop/confirmation_required_with_dependencies.py`.

https://github.com/agno-agi/agno/tree/main/cookbook/03_teams/20_human_in_the_loop

The leader delegates to its members. A member's gated tool pauses the run of the team, and gets its token from the
`dependencies` of the run. The script of a member is found by the id with which the leader names it.
"""

from __future__ import annotations

from typing import Any

import pytest
from agno.agent import Agent
from agno.run import RunContext
from agno.team import Team
from agno.tools import tool

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, edit, reject, reject_all, say, send

removed: list[tuple[str, str]] = []


@pytest.fixture(autouse=True)
def _nothing_removed() -> None:
    removed.clear()


@tool(requires_confirmation=True)
def remove_stock(group: str, stock: str, run_context: RunContext) -> str:
    """Removes a stock from a watch group."""
    removed.append((stock, (run_context.dependencies or {})["token"]))
    return f"{stock} is out of {group}"


def list_stocks(group: str) -> list[str]:
    """Lists the stocks of a watch group."""
    return ["ACME", "GLOBEX"]


def get_price(stock: str) -> float:
    """Gets the price of a stock."""
    return 7.5


def build(model: Any) -> Team:
    # Without an id, the framework makes that of a member of its name: "stock-agent".
    stocks = Agent(name="Stock Agent", role="Manages watch groups.", model=model, tools=[list_stocks, remove_stock])
    prices = Agent(id="prices", name="Price Agent", role="Knows prices.", model=model, tools=[get_price])
    return Team(name="Stock Team", model=model, members=[stocks, prices])


def delegate(member: str, task: str) -> Any:
    return calls("delegate_task_to_member", member_id=member, task=task)


REMOVAL = {
    "main": [delegate("stock-agent", "Remove ACME"), say("ACME is out.")],
    "stock-agent": [calls("list_stocks", group="mine"), calls("remove_stock", group="mine", stock="ACME"), say("Out.")],
}
OPTIONS = {"dependencies": {"token": "t1"}}


def test_an_approved_removal_is_made_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Remove ACME", model=REMOVAL, oracle=approve_all(), run_options=OPTIONS)

    assert [("ACME", "t1")] == removed
    assert "ACME is out." == run.output


def test_a_rejected_removal_is_not_made(approvals: Approvals) -> None:
    approvals.run(build, "Remove ACME", model=REMOVAL, oracle=reject_all("keep it"), run_options=OPTIONS)

    assert [] == removed


def test_the_request_of_a_member_surfaces_on_the_team(approvals: Approvals) -> None:
    run = approvals.run(
        build, model=REMOVAL, caller=[send("Remove ACME"), approve("c3")], run_options=OPTIONS, gated={"remove_stock"}
    )

    assert ["remove_stock"] == [request.tool for request in run.requests]
    assert ["stock-agent"] == [call.agent for call in run.calls["remove_stock"].made]


@pytest.mark.parametrize("stream", [False, True])
def test_members_without_a_gate_are_not_asked_about(approvals: Approvals, stream: bool) -> None:
    model = {
        "main": [delegate("prices", "Price of ACME"), say("7.5.")],
        "prices": [calls("get_price", stock="ACME"), say("It is 7.5.")],
    }
    run = approvals.run(build, "Price?", model=model, stream=stream)

    assert [] == run.requests
    assert [7.5] == [execution.result for execution in run.calls["get_price"].executions]


def test_each_of_two_delegations_has_its_answer(approvals: Approvals) -> None:
    model = {
        "main": [delegate("stock-agent", "Remove ACME"), delegate("stock-agent", "Remove GLOBEX"), say("One is.")],
        "stock-agent": [
            calls("remove_stock", group="mine", stock="ACME"),
            say("Kept."),
            calls("remove_stock", group="mine", stock="GLOBEX"),
            say("Out."),
        ],
    }
    caller = [send("Remove both"), reject("c3", "keep it"), approve("c4")]
    approvals.run(build, model=model, caller=caller, run_options=OPTIONS)

    assert [("GLOBEX", "t1")] == removed


@pytest.mark.parametrize("serialize", ["copy", "native.sqlite"])
def test_an_approval_survives_a_save(approvals: Approvals, serialize: Any) -> None:
    approvals.run(build, "Remove ACME", model=REMOVAL, oracle=approve_all(), run_options=OPTIONS, serialize=serialize)

    assert [("ACME", "t1")] == removed


def test_a_team_runs_what_its_own_run_says(approvals: Approvals) -> None:
    """The framework takes the decision of an edited requirement, and the arguments of its own run: that is found."""
    caller = [send("Remove ACME"), edit("c3", {"group": "mine", "stock": "GLOBEX"})]
    with pytest.raises(CheckFailed, match="arguments-as-approved"):
        approvals.run(build, model=REMOVAL, caller=caller, run_options=OPTIONS)

    assert [("ACME", "t1")] == removed

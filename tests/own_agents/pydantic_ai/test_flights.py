"""A flight booking of two agents in Pydantic AI, after https://ai.pydantic.dev/multi-agent-applications/.

A tool delegates the search to another agent. Buying raises `ApprovalRequired` with metadata in its body, as in
https://ai.pydantic.dev/deferred-tools/.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, RunContext

from pytest_approvals import Approvals, approve, approve_all, calls, edit, reject, reject_all, say, send
from pytest_approvals.errors import UnknownName


@dataclass
class Desk:
    tickets: list[tuple[str, int]] = field(default_factory=list)
    searches: int = 0


def build(model: Any) -> Agent[Desk, Any]:
    finder: Agent[Desk, str] = Agent(model, name="finder", deps_type=Desk)

    @finder.tool
    def list_flights(ctx: RunContext[Desk], origin: str, destination: str) -> list[str]:
        ctx.deps.searches += 1
        return [f"{origin}-{destination} AK456 $500"]

    desk: Agent[Desk, Any] = Agent(model, name="desk", deps_type=Desk, output_type=[str, DeferredToolRequests])

    @desk.tool
    async def search(ctx: RunContext[Desk], wish: str) -> str:
        result = await finder.run(wish, deps=ctx.deps, usage=ctx.usage)
        return result.output

    @desk.tool
    def buy_ticket(ctx: RunContext[Desk], flight: str, price: int) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"price": price, "currency": "USD"})
        ctx.deps.tickets.append((flight, price))
        return f"bought {flight} for {price}"

    return desk


MODEL = {
    "main": [
        calls("search", wish="SFO to ANC"),
        calls("buy_ticket", flight="AK456", price=500),
        say("Enjoy the flight."),
    ],
    "finder": [calls("list_flights", origin="SFO", destination="ANC"), say("AK456 for $500")],
}


def test_an_approved_ticket_is_bought_once(approvals: Approvals) -> None:
    desk = Desk()
    run = approvals.run(build, "To Anchorage", model=MODEL, run_options={"deps": desk}, oracle=approve_all())

    assert [("AK456", 500)] == desk.tickets
    assert "Enjoy the flight." == run.output


def test_a_rejected_ticket_is_not_bought(approvals: Approvals) -> None:
    desk = Desk()
    approvals.run(build, "To Anchorage", model=MODEL, run_options={"deps": desk}, oracle=reject_all("too dear"))

    assert [] == desk.tickets


def test_the_search_is_not_repeated_after_the_approval(approvals: Approvals) -> None:
    desk = Desk()
    run = approvals.run(build, "To Anchorage", model=MODEL, run_options={"deps": desk}, oracle=approve_all())

    assert 1 == desk.searches
    assert ["AK456 for $500"] == [one.result for one in run.calls["search"].executions]


def test_another_price_is_approved(approvals: Approvals) -> None:
    desk = Desk()
    approvals.run(
        build,
        model=[calls("buy_ticket", flight="AK456", price=500), say("Bought.")],
        run_options={"deps": desk},
        caller=[send("Buy AK456"), edit("c1", {"flight": "AK456", "price": 450})],
    )

    assert [("AK456", 450)] == desk.tickets


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("serialize", ["copy", "json"])
def test_each_ticket_has_its_own_answer(approvals: Approvals, stream: bool, serialize: Any) -> None:
    desk = Desk()
    approvals.run(
        build,
        model=[calls("buy_ticket", flight="A1", price=1), calls("buy_ticket", flight="B2", price=2), say("One.")],
        run_options={"deps": desk},
        caller=[send("Buy both"), reject("c1", "not this one"), approve("c2")],
        stream=stream,
        serialize=serialize,
    )

    assert [("B2", 2)] == desk.tickets


def test_answers_are_named_by_decisions(approvals: Approvals) -> None:
    with pytest.raises(UnknownName, match="did you mean 'approve'"):
        approvals.run(build, model=MODEL, answers={"aprove": True})  # type: ignore[dict-item]


def test_a_conversation_goes_on_after_the_purchase(approvals: Approvals) -> None:
    desk = Desk()
    run = approvals.run(
        build,
        model=[calls("buy_ticket", flight="A1", price=1), say("Bought."), say("Seat 7A.")],
        run_options={"deps": desk},
        caller=[send("Buy A1"), approve("c1"), send("Which seat?")],
    )

    assert ["Bought.", "Seat 7A."] == [turn.output for turn in run.turns if turn.output is not None]
    assert [("A1", 1)] == desk.tickets

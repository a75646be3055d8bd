"""An airline's desk of the OpenAI Agents SDK, after its example `examples/customer_service/main.py`.

https://github.com/openai/openai-agents-python/blob/main/examples/customer_service/main.py

A triage agent hands over to a seat agent, whose tool needs approval; an input guardrail reads each message first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from agents import Agent, GuardrailFunctionOutput, RunContextWrapper, function_tool, handoff, input_guardrail

from pytest_approvals import Approvals, approve, approve_all, call, calls, reject, reject_all, say, send


@dataclass
class Airline:
    seats: dict[str, str] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)


@function_tool
def faq_lookup(question: str) -> str:
    """Looks up a frequent question."""
    return "You may bring one bag."


@function_tool(needs_approval=True)
def update_seat(context: RunContextWrapper[Airline], confirmation_number: str, new_seat: str) -> str:
    """Updates the seat of a confirmed booking."""
    context.context.seats[confirmation_number] = new_seat
    return f"Updated seat to {new_seat} for {confirmation_number}"


@input_guardrail
async def read_message(context: RunContextWrapper[Airline], agent: Agent[Any], message: Any) -> GuardrailFunctionOutput:
    context.context.read.append(agent.name)
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


def build(model: Any) -> Agent[Airline]:
    seat = Agent[Airline](name="seat", handoff_description="Updates seats.", model=model, tools=[update_seat])
    faq = Agent[Airline](name="faq", handoff_description="Answers questions.", model=model, tools=[faq_lookup])
    triage = Agent[Airline](
        name="triage",
        model=model,
        handoffs=[faq, handoff(agent=seat)],
        input_guardrails=[read_message],
    )
    faq.handoffs.append(triage)
    seat.handoffs.append(triage)
    return triage


MODEL = {
    "main": [calls("transfer_to_seat")],
    "seat": [calls("update_seat", confirmation_number="ABC", new_seat="7A"), say("You sit at 7A.")],
}


def test_an_approved_seat_is_changed(approvals: Approvals) -> None:
    airline = Airline()
    run = approvals.run(build, "Seat 7A", model=MODEL, run_options={"context": airline}, oracle=approve_all())

    assert {"ABC": "7A"} == airline.seats
    assert "You sit at 7A." == run.output


def test_a_rejected_seat_is_not_changed(approvals: Approvals) -> None:
    airline = Airline()
    approvals.run(build, "Seat 7A", model=MODEL, run_options={"context": airline}, oracle=reject_all("taken"))

    assert {} == airline.seats


def test_the_hand_over_itself_is_not_asked_about(approvals: Approvals) -> None:
    run = approvals.run(build, "Seat 7A", model=MODEL, run_options={"context": Airline()}, oracle=approve_all())

    assert ["update_seat"] == [request.tool for request in run.requests]


@pytest.mark.parametrize("stream", [False, True])
def test_the_guardrail_reads_each_message_once(approvals: Approvals, stream: bool) -> None:
    airline = Airline()
    approvals.run(build, "Seat 7A", model=MODEL, run_options={"context": airline}, oracle=approve_all(), stream=stream)

    assert ["triage"] == airline.read


def test_a_hand_over_survives_a_save(approvals: Approvals, serialize_mode: str) -> None:
    run = approvals.run(build, "Seat 7A", model=MODEL, run_options={"context": Airline()}, oracle=approve_all())

    assert ["Updated seat to 7A for ABC"] == [one.result for one in run.calls["update_seat"].executions]


def test_each_booking_has_its_own_answer(approvals: Approvals) -> None:
    airline = Airline()
    both = calls(
        call("update_seat", confirmation_number="A", new_seat="1A"),
        call("update_seat", confirmation_number="B", new_seat="2B"),
    )
    approvals.run(
        build,
        model={"main": [calls("transfer_to_seat")], "seat": [both, say("One of them.")]},
        run_options={"context": airline},
        caller=[send("Change both"), approve("c2"), reject("c3", "taken")],
    )

    assert {"A": "1A"} == airline.seats


def test_a_question_is_answered_without_an_approval(approvals: Approvals) -> None:
    run = approvals.run(
        build,
        "How many bags?",
        model={"main": [calls("transfer_to_faq")], "faq": [calls("faq_lookup", question="bags"), say("One.")]},
        run_options={"context": Airline()},
    )

    assert [] == run.requests
    assert "One." == run.output

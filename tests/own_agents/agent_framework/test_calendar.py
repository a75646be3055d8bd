"""A calendar of the Agent Framework, after `function_tool_with_approval_and_sessions.py` and `tool_in_class.py`.

https://github.com/microsoft/agent-framework/tree/main/python/samples/02-agents/tools

The tools are methods of an object that is made for each agent, and one is gated. Another agent that is a tool looks for
free days, with a script of its own.
"""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from agent_framework import Agent, FunctionInvocationContext, tool

from pytest_approvals import Approvals, approve, approve_all, calls, edit, reject, reject_all, say, send
from pytest_approvals.errors import UsageError

entered: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_entered() -> None:
    entered.clear()


class Calendar:
    """Tools with a state that they share."""

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def list_events(self, date: Annotated[str, "A day"]) -> str:
        """Lists the events of a day."""
        return f"{self.owner} has no events on {date}"

    def add_event(self, name: Annotated[str, "What happens"], date: Annotated[str, "A day"]) -> str:
        """Adds an event."""
        entered.append(f"{name} on {date}")
        return f"added {name} for {self.owner}"


@tool(description="Notes what was found.")
def note(text: str, ctx: FunctionInvocationContext) -> str:
    assert ctx.session is not None
    notes = ctx.session.state.setdefault("notes", [])
    notes.append(text)
    return f"note {len(notes)}"


def build(client: Any) -> Agent:
    calendar = Calendar("Ann")
    planner = Agent(client=client, name="planner", description="Finds a free day.", tools=[calendar.list_events])
    return Agent(
        client=client,
        name="CalendarAgent",
        instructions="You are a helpful calendar assistant.",
        tools=[
            calendar.list_events,
            note,
            tool(approval_mode="always_require")(calendar.add_event),
            planner.as_tool(name="find_day", arg_name="wish"),
        ],
    )


DENTIST = [
    calls("list_events", date="May 4"),
    calls("note", text="May 4 is free"),
    calls("add_event", name="Dentist", date="May 4"),
    say("Added."),
]


def test_an_approved_event_is_added_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Dentist", model=DENTIST, oracle=approve_all(), gated={"add_event"})

    assert ["Dentist on May 4"] == entered
    assert ["note 1"] == [execution.result for execution in run.calls["note"].executions]


def test_a_rejected_event_is_not_added(approvals: Approvals) -> None:
    approvals.run(build, "Dentist", model=DENTIST, oracle=reject_all())

    assert [] == entered


def test_an_event_cannot_be_edited(approvals: Approvals) -> None:
    """The framework has no such answer; the test is told so."""
    with pytest.raises(UsageError, match="whether a call is approved, and nothing else"):
        approvals.run(build, model=DENTIST[2:], caller=[send("Dentist"), edit("c1", {"date": "May 5"})])


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_that_is_a_tool_has_a_script_of_its_own(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(
        build,
        "Dentist",
        model={
            "main": [calls("find_day", wish="in May"), calls("add_event", name="Dentist", date="May 4"), say("Added.")],
            "planner": [calls("list_events", date="May 4"), say("May 4.")],
        },
        oracle=approve_all(),
        stream=stream,
    )

    assert ["Ann has no events on May 4"] == [execution.result for execution in run.calls["list_events"].executions]
    assert ["Dentist on May 4"] == entered


def test_the_session_remembers_what_was_noted(approvals: Approvals) -> None:
    model = [calls("note", text="a"), say("Noted."), calls("note", text="b"), say("Noted.")]
    run = approvals.run(build, model=model, caller=[send("Note a"), send("Note b")])

    assert ["note 1", "note 2"] == [execution.result for execution in run.calls["note"].executions]


def test_each_of_two_events_has_its_answer(approvals: Approvals) -> None:
    model = [
        calls("add_event", name="Dentist", date="May 4"),
        calls("add_event", name="Party", date="May 5"),
        say("One."),
    ]
    approvals.run(build, model=model, caller=[send("Both"), reject("c1"), approve("c2")])

    assert ["Party on May 5"] == entered


def test_an_approval_survives_a_save(approvals: Approvals, serialize_mode: str) -> None:
    approvals.run(build, "Dentist", model=DENTIST, oracle=approve_all())

    assert ["Dentist on May 4"] == entered

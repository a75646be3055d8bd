"""A personal assistant of LangChain whose tools run agents.

https://docs.langchain.com/oss/python/langchain/multi-agent/subagents-personal-assistant

The calendar agent and the mail agent each gate a tool of their own; their requests surface on the supervisor's thread.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool

from pytest_approvals import Approvals, approve, approve_all, calls, edit, first_of, on, reject_all, say, send

done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@tool
def create_event(title: str, start: str) -> str:
    """Creates an event in the calendar."""
    done.append(f"event {title}")
    return f"{title} starts {start}"


@tool
def get_free_slots(day: str) -> list[str]:
    """Lists the free slots of a day."""
    return ["09:00", "14:00"]


@tool
def send_mail(to: str) -> str:
    """Sends a mail."""
    done.append(f"mail to {to}")
    return f"sent to {to}"


def build(model: Any) -> Any:
    calendar = create_agent(
        model, [create_event, get_free_slots], middleware=[HumanInTheLoopMiddleware({"create_event": True})]
    )
    mail = create_agent(model, [send_mail], middleware=[HumanInTheLoopMiddleware({"send_mail": True})])

    @tool
    async def schedule_event(request: str) -> str:
        """Schedules an event."""
        result = await calendar.ainvoke({"messages": [{"role": "user", "content": request}]})
        return str(result["messages"][-1].text)

    @tool
    async def manage_mail(request: str) -> str:
        """Writes mails."""
        result = await mail.ainvoke({"messages": [{"role": "user", "content": request}]})
        return str(result["messages"][-1].text)

    return create_agent(model, [schedule_event, manage_mail])


MODEL = [
    calls("schedule_event", request="Tuesday at 14:00"),
    calls("create_event", title="Design", start="14:00"),
    say("Scheduled."),
    calls("manage_mail", request="Tell Ann"),
    calls("send_mail", to="Ann"),
    say("Told."),
    say("All done."),
]


def test_approved_steps_are_done_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Design on Tuesday, tell Ann", model=MODEL, oracle=approve_all())

    assert ["event Design", "mail to Ann"] == done
    assert "All done." == run.output


def test_rejected_steps_are_not_done(approvals: Approvals) -> None:
    approvals.run(build, "Design on Tuesday, tell Ann", model=MODEL, oracle=reject_all("not now"))

    assert [] == done


@pytest.mark.parametrize("stream", [False, True])
def test_each_step_has_its_answer(approvals: Approvals, stream: bool) -> None:
    oracle = first_of(on("send_mail", reject_all("I call her")), approve_all())
    approvals.run(build, "Design on Tuesday, tell Ann", model=MODEL, oracle=oracle, stream=stream)

    assert ["event Design"] == done


def test_the_requests_are_about_the_tools_of_the_agents(approvals: Approvals) -> None:
    run = approvals.run(build, "Design on Tuesday, tell Ann", model=MODEL, oracle=approve_all())

    assert ["create_event", "send_mail"] == [request.tool for request in run.requests]


@pytest.mark.parametrize("serialize", ["copy", "native.sqlite"])
def test_an_inner_request_survives_a_save(approvals: Approvals, serialize: Any) -> None:
    approvals.run(build, "Design on Tuesday, tell Ann", model=MODEL, oracle=approve_all(), serialize=serialize)

    assert ["event Design", "mail to Ann"] == done


def test_what_is_not_gated_runs_at_once(approvals: Approvals) -> None:
    model = [
        calls("schedule_event", request="When?"),
        calls("get_free_slots", day="Tuesday"),
        say("At 9."),
        say("Nine."),
    ]
    run = approvals.run(build, "When?", model=model)

    assert [] == run.requests
    assert "Nine." == run.output


def test_another_event_is_created(approvals: Approvals) -> None:
    caller = [send("Design on Tuesday, tell Ann"), edit("c2", title="Review", start="15:00"), approve("c4")]
    approvals.run(build, model=MODEL, caller=caller)

    assert ["event Review", "mail to Ann"] == done

"""A scheduler of meetings in AutoGen, after `core_async_human_in_the_loop` and the guide on workbenches.

https://github.com/microsoft/autogen/tree/main/python/samples/core_async_human_in_the_loop
https://microsoft.github.io/autogen/stable/user-guide/core-user-guide/components/workbench.html

The tools are classes in a workbench. `gated` is a function of the arguments: meetings at night are asked about.
"""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, StaticWorkbench
from pydantic import BaseModel, Field

from pytest_approvals import Approvals, approve, approve_all, call, calls, decide, edit, reject, reject_all, say, send

meetings: list[str] = []


@pytest.fixture(autouse=True)
def _no_meetings() -> None:
    meetings.clear()


class MeetingInput(BaseModel):
    recipient: str = Field(description="Name of the recipient")
    hour: int = Field(description="Hour of the day", ge=0, le=23)


class MeetingOutput(BaseModel):
    number: int


class ScheduleMeeting(BaseTool[MeetingInput, MeetingOutput]):
    def __init__(self) -> None:
        super().__init__(MeetingInput, MeetingOutput, "schedule_meeting", "Schedules a meeting.")

    async def run(self, args: MeetingInput, cancellation_token: CancellationToken) -> MeetingOutput:
        meetings.append(f"{args.recipient} at {args.hour}")
        return MeetingOutput(number=len(meetings))


class NameInput(BaseModel):
    name: str


class FindColleague(BaseTool[NameInput, str]):
    def __init__(self) -> None:
        super().__init__(NameInput, str, "find_colleague", "Finds a colleague.")

    async def run(self, args: NameInput, cancellation_token: CancellationToken) -> str:
        return args.name.title()


def build(client: Any) -> AssistantAgent:
    return AssistantAgent(
        "scheduler",
        model_client=client,
        workbench=StaticWorkbench([FindColleague(), ScheduleMeeting()]),
        system_message="You schedule meetings.",
        max_tool_iterations=5,
    )


def is_at_night(arguments: Any) -> bool:
    return not 8 <= int(arguments["hour"]) < 20


GATES = {"schedule_meeting": is_at_night}
AT_NIGHT = [calls("find_colleague", name="ann"), calls("schedule_meeting", recipient="Ann", hour=22), say("At 22.")]


def test_an_approved_meeting_is_scheduled_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Ann, at 22", model=AT_NIGHT, oracle=approve_all(), gated=GATES)

    assert ["Ann at 22"] == meetings
    assert ["Ann"] == [execution.result for execution in run.calls["find_colleague"].executions]


def test_a_rejected_meeting_is_not_scheduled(approvals: Approvals) -> None:
    approvals.run(build, "Ann, at 22", model=AT_NIGHT, oracle=reject_all("too late"), gated=GATES)

    assert [] == meetings


def test_another_hour_is_chosen(approvals: Approvals) -> None:
    model = [calls("schedule_meeting", recipient="Ann", hour=22), say("At 19.")]
    caller = [send("Ann"), edit("c1", {"recipient": "Ann", "hour": 19})]
    approvals.run(build, model=model, caller=caller, gated=GATES)

    assert ["Ann at 19"] == meetings


@pytest.mark.parametrize("stream", [False, True])
def test_meetings_by_day_are_not_asked_about(approvals: Approvals, stream: bool) -> None:
    model = [calls("schedule_meeting", recipient="Ann", hour=9), say("At 9.")]
    run = approvals.run(build, "Ann, at 9", model=model, gated=GATES, stream=stream)

    assert [] == run.requests
    assert ["Ann at 9"] == meetings


def test_each_of_two_meetings_has_its_answer(approvals: Approvals) -> None:
    both = calls(call("schedule_meeting", recipient="Ann", hour=6), call("schedule_meeting", recipient="Bob", hour=7))
    caller = [send("Both"), decide(reject("c1", "too early"), approve("c2"))]
    approvals.run(build, model=[both, say("One.")], caller=caller, gated=GATES)

    assert ["Bob at 7"] == meetings


def test_an_hour_that_is_not_valid_is_told_to_the_model(approvals: Approvals) -> None:
    """The framework refuses the arguments after the approval; the model calls again."""
    model = [
        calls(call("schedule_meeting", recipient="Ann", hour=25, invalid=True)),
        calls("schedule_meeting", recipient="Ann", hour=21),
        say("At 21."),
    ]
    approvals.run(build, "Ann", model=model, oracle=approve_all(), gated=GATES)

    assert ["Ann at 21"] == meetings


def test_arguments_that_are_no_object_are_told_to_the_model(approvals: Approvals) -> None:
    """The framework refuses them after the approval."""
    model = [calls(call("schedule_meeting", "[22]", invalid=True)), say("That did not work.")]
    approvals.run(build, "Ann", model=model, oracle=approve_all(), gated={"schedule_meeting"})

    assert [] == meetings


def test_an_approval_survives_a_save(approvals: Approvals, serialize_mode: str) -> None:
    approvals.run(build, "Ann, at 22", model=AT_NIGHT, oracle=approve_all(), gated=GATES)

    assert ["Ann at 22"] == meetings

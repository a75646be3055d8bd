"""A weather agent of the Agent Framework, after its page on approvals of tools.

https://learn.microsoft.com/en-us/agent-framework/agents/tools/tool-approval

The details of the weather need approval (`approval_mode="always_require"`), the weather does not.
"""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from agent_framework import Agent, tool

from pytest_approvals import Approvals, approve, approve_all, call, calls, decide, reject, reject_all, say, send

asked: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_asked() -> None:
    asked.clear()


@tool
def get_weather(location: Annotated[str, "A city"]) -> str:
    """Gets the weather of a location."""
    return f"cloudy in {location}"


@tool(approval_mode="always_require")
async def get_weather_detail(location: Annotated[str, "A city"]) -> str:
    """Gets details of the weather of a location."""
    asked.append(location)
    return f"cloudy in {location}, humidity 88 %"


def build(client: Any) -> Agent:
    return Agent(
        client=client,
        name="WeatherAgent",
        instructions="You are a helpful weather assistant.",
        tools=[get_weather, get_weather_detail],
    )


DETAIL = [calls("get_weather", location="Rome"), calls("get_weather_detail", location="Rome"), say("Humid.")]


def test_approved_details_are_asked_for_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Rome?", model=DETAIL, oracle=approve_all(), gated={"get_weather_detail"})

    assert ["Rome"] == asked
    assert "Humid." == run.output


def test_rejected_details_are_not_asked_for(approvals: Approvals) -> None:
    approvals.run(build, "Rome?", model=DETAIL, oracle=reject_all())

    assert [] == asked


@pytest.mark.parametrize("stream", [False, True])
def test_the_weather_itself_is_not_asked_about(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(build, "Rome?", model=DETAIL, oracle=approve_all(), stream=stream)

    assert ["get_weather_detail"] == [request.tool for request in run.requests]


def test_each_of_two_calls_has_its_answer(approvals: Approvals) -> None:
    both = calls(call("get_weather_detail", location="Rome"), call("get_weather_detail", location="Oslo"))
    approvals.run(build, model=[both, say("One.")], caller=[send("Both"), decide(approve("c1"), reject("c2"))])

    assert ["Rome"] == asked


def test_an_approval_survives_a_save(approvals: Approvals, serialize_mode: str) -> None:
    approvals.run(build, "Rome?", model=DETAIL, oracle=approve_all())

    assert ["Rome"] == asked


def test_an_approval_survives_a_restart(approvals: Approvals) -> None:
    run = approvals.run(build, "Rome?", model=DETAIL, oracle=approve_all(), serialize="json", resume="fresh")

    assert 1 == len(run.calls["get_weather_detail"].executions)

"""A weather agent of the OpenAI Agents SDK, after its examples `human_in_the_loop.py` and `agents_as_tools.py`.

https://github.com/openai/openai-agents-python/tree/main/examples/agent_patterns

The temperature of one city needs approval, which a function decides; a translator is an agent that is a tool.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from agents import Agent, RunContextWrapper, function_tool

from pytest_approvals import Approvals, approve, approve_all, calls, reject, reject_all, say, send, when


@dataclass
class Station:
    asked: list[str] = field(default_factory=list)


async def is_restricted(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
    return bool(arguments["city"] == "Oakland")


@function_tool(needs_approval=is_restricted)
async def get_temperature(context: RunContextWrapper[Station], city: str) -> str:
    """Returns the temperature of a city."""
    context.context.asked.append(city)
    return f"The temperature in {city} is 20 C"


@function_tool
def get_weather(city: str) -> str:
    """Returns the weather of a city."""
    return f"The weather in {city} is sunny"


def build(model: Any) -> Agent[Station]:
    return Agent[Station](name="Weather assistant", model=model, tools=[get_weather, get_temperature])


def build_with_translator(model: Any) -> Agent[Station]:
    translator = Agent[Station](name="translator", model=model, instructions="Translate to Spanish.")
    tool = translator.as_tool(tool_name="translate", tool_description="Translate a text", needs_approval=True)
    return Agent[Station](name="Weather assistant", model=model, tools=[get_weather, get_temperature, tool])


GATES = {"get_temperature": when("city", equals="Oakland")}
OAKLAND = [calls("get_temperature", city="Oakland"), say("20 C.")]


def test_an_approved_city_is_measured_once(approvals: Approvals) -> None:
    station = Station()
    approvals.run(build, "Oakland?", model=OAKLAND, run_options={"context": station}, oracle=approve_all(), gated=GATES)

    assert ["Oakland"] == station.asked


def test_a_rejected_city_is_not_measured(approvals: Approvals) -> None:
    station = Station()
    approvals.run(
        build, "Oakland?", model=OAKLAND, run_options={"context": station}, oracle=reject_all("private"), gated=GATES
    )

    assert [] == station.asked


def test_an_approval_survives_a_save(approvals: Approvals) -> None:
    run = approvals.run(
        build,
        "Oakland?",
        model=OAKLAND,
        run_options={"context": Station()},
        oracle=approve_all(),
        gated=GATES,
        serialize="json",
    )

    assert 1 == len(run.calls["get_temperature"].executions)


@pytest.mark.parametrize("stream", [False, True])
def test_other_cities_are_not_asked_about(approvals: Approvals, stream: bool) -> None:
    station = Station()
    model = [
        calls("get_weather", city="Oakland"),
        calls("get_temperature", city="Paris"),
        calls("get_temperature", city="Oakland"),
        say("20 C in Paris."),
    ]
    run = approvals.run(
        build,
        model=model,
        run_options={"context": station},
        caller=[send("Oakland and Paris?"), reject("c3", "private")],
        gated=GATES,
        stream=stream,
    )

    assert ["Paris"] == station.asked
    assert ["get_temperature"] == [request.tool for request in run.requests]


def test_an_agent_that_is_a_tool_runs_after_its_approval(approvals: Approvals) -> None:
    run = approvals.run(
        build_with_translator,
        model={
            "main": [calls("get_weather", city="Paris"), calls("translate", input="sunny"), say("Soleado.")],
            "translator": [say("soleado")],
        },
        run_options={"context": Station()},
        caller=[send("Weather of Paris, in Spanish"), approve("c2")],
    )

    assert "Soleado." == run.output
    assert 1 == len(run.requests)


def test_a_rejected_agent_does_not_run(approvals: Approvals) -> None:
    run = approvals.run(
        build_with_translator,
        model=[calls("translate", input="sunny"), say("Not translated.")],
        run_options={"context": Station()},
        caller=[send("Translate"), reject("c1", "no")],
    )

    assert [] == run.calls["translate"].executions

"""State that one run leaves to the next: stories are played in two orders in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.variants import plan_variants
from pytest_approvals.simulation import ReferenceAgent

ROOT = stock_folder()
STORIES = (
    "basics/approved",
    "basics/rejected-with-a-reason",
    "decisions/standing-approval",
    "failures/tool-raises",
    "mixed/two-hosted-calls",
    "nested/rejected-inside",
    "parallel/partial-answers-in-reverse",
    "policies/threshold",
)

FEW_STORIES = ("decisions/standing-approval", "failures/tool-raises", "parallel/partial-answers-in-reverse")

Story = tuple[Scenario, Variant]
Fields = list[dict[str, Any]]


def list_stories(source: InProcessSource, names: Iterable[str]) -> list[Story]:
    """The plainest and the fullest variant of each scenario that stay in this process."""
    stories: list[Story] = []
    for path in (path for name, path in find_scenarios([ROOT]).items() if name in names):
        scenario = load_scenario(path, root=ROOT)
        planned = plan_variants(scenario, source.facts, strength="1")
        here = [variant for variant in planned if variant.resume == "same" and not variant.saved_by]
        stories += [(scenario, variant) for variant in dict.fromkeys((*here[:1], *here[-1:]))]
    return stories


def play(source: InProcessSource, stories: Iterable[Story]) -> dict[tuple[str, str], Fields]:
    """The journals of stories that are played one after the other."""
    return {
        (scenario.id, variant.id): [
            comparable(event.to_dict()) for event in asyncio.run(run_scenario(scenario, variant, source)).events
        ]
        for scenario, variant in stories
    }


def comparable(event: dict[str, Any]) -> dict[str, Any]:
    # Frameworks write the time into their states.
    return {name: value for name, value in event.items() if name not in ("digest", "again", "size")}


def find_leaks(source: InProcessSource, names: Iterable[str] = STORIES) -> list[tuple[str, str]]:
    """The stories whose journals depend on what was played before."""
    stories = list_stories(source, names)
    forth, back = play(source, stories), play(source, reversed(stories))
    return [story for story in forth if forth[story] != back[story]]


def source_of(adapter: type[Agent], name: str) -> InProcessSource:
    return InProcessSource(name=name, adapter=adapter, facts=describe_adapter(adapter))


@pytest.mark.parametrize("name", ["pydantic_ai", "openai_agents"])
def test_runs_on_a_framework_leave_nothing_behind(name: str) -> None:
    """Journals of runs on a framework are the same in two orders."""
    adapter = import_module(f"pytest_approvals.agent_side.adapters.{name}").FLAVOURS[""]

    assert [] == find_leaks(source_of(adapter, name), FEW_STORIES)


def test_runs_on_the_reference_agent_leave_nothing_behind() -> None:
    """Journals of runs on the reference agent are the same in two orders, and there are some of every kind."""
    source = source_of(ReferenceAgent, "reference")

    assert ([], True) == (find_leaks(source), len(list_stories(source, STORIES)) > len(STORIES))


class Leaking(ReferenceAgent):
    """An agent that remembers in its class how many turns it has had."""

    turns: ClassVar[list[int]] = []

    async def turn(self, *args: Any, **named: Any) -> Any:
        Leaking.turns.append(len(self.turns))
        if len(self.turns) == 5:
            raise RuntimeError("the fifth turn of the process")
        return await super().turn(*args, **named)


def test_state_in_a_class_is_found() -> None:
    """An agent that keeps something between runs has other journals in another order."""
    assert find_leaks(source_of(Leaking, "leaking"))


def test_every_story_is_in_the_catalogue() -> None:
    """The stories exist."""
    assert [] == sorted({*STORIES} - {*find_scenarios([Path(ROOT)])})

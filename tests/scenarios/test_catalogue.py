"""
Every scenario of the catalogue can be loaded, says what it is about, and is a story that a correct agent passes.

By default each is played in its plainest variant and in two that are far from it; all variants, fresh processes
included, are slow.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence

import pytest

from pytest_approvals.checks import Verdict, judge, judge_group
from pytest_approvals.devtools.pages.catalogue import CATALOGUE_FAMILIES
from pytest_approvals.journal.coverage import count_reached
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.variants import plan_variants

CATALOGUE = load_catalogue([stock_folder()])

FRAMEWORKS = ("pydantic", "openai", "langgraph", "langchain", "adk", "strands", "agno", "autogen", "vercel", "mastra")
SOURCE = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+#[1-9][0-9]*|https://\S+")

each = pytest.mark.parametrize("scenario", CATALOGUE, ids=[scenario.id for scenario in CATALOGUE])


class TestWords:
    def test_there_are_many_in_every_family(self) -> None:
        """At least eighty scenarios, and no family without some or with an unknown name."""
        sizes = Counter(scenario.family for scenario in CATALOGUE)

        assert 80 <= len(CATALOGUE)
        assert set(CATALOGUE_FAMILIES) == set(sizes)
        assert 5 <= min(sizes.values())

    def test_no_two_have_one_title(self) -> None:
        """A title is enough to know which story is meant."""
        titles = Counter(scenario.title for scenario in CATALOGUE)

        assert [] == [title for title, count in titles.items() if count > 1]

    @each
    def test_its_id_is_a_family_and_a_name(self, scenario: Scenario) -> None:
        """Both are words of small letters and digits, joined by hyphens."""
        assert re.fullmatch(r"[a-z]+/[a-z0-9]+(-[a-z0-9]+)*", scenario.id)

    @each
    def test_its_title_is_whole(self, scenario: Scenario) -> None:
        """It begins with a capital, ends without a stop, has several words, and names no issue."""
        title = scenario.title

        assert title[0].isupper()
        assert title[-1].isalnum()
        assert 3 <= len(title.split())
        assert len(title) <= 110
        assert not re.search(r"#\d|\bbugs?\b|\bissue\b|\bregression\b", title, re.IGNORECASE)

    @each
    def test_its_prose_can_be_quoted(self, scenario: Scenario) -> None:
        """Whole sentences about agents in general: what should happen, in words that fit any framework."""
        prose = f"{scenario.title}. {scenario.about}".lower()

        assert 60 <= len(scenario.about)
        assert scenario.about.rstrip().endswith(".")
        assert [] == [name for name in FRAMEWORKS if name in prose]

    @each
    def test_its_sources_are_public(self, scenario: Scenario) -> None:
        """Each is an issue of a repository or an address, named once."""
        assert [] == [source for source in scenario.sources if not SOURCE.fullmatch(source)]
        assert len(set(scenario.sources)) == len(scenario.sources)


class TestStories:
    @each
    def test_it_has_a_point_to_reach(self, scenario: Scenario) -> None:
        """
        A story that need not reach anything proves nothing; only where the gate itself cannot be configured, an agent
        is right to refuse everything.
        """
        assert scenario.reaches or "gate" in scenario.options

    @each
    def test_a_correct_agent_passes(self, scenario: Scenario, reference: InProcessSource) -> None:
        """In a few variants nothing fails, nothing is unknown, and the story is told."""
        played = [play(scenario, variant, reference) for variant in a_few(scenario, reference)]

        assert [] == [wrong for history in played for wrong in findings(scenario, history)]

    @each
    def test_all_variants_but_the_first_add_something(self, scenario: Scenario, reference: InProcessSource) -> None:
        """No variant is there twice, and the plainest one comes first."""
        names = [variant.id for variant in plan_variants(scenario, reference.facts)]

        assert names
        assert len(set(names)) == len(names)

    def test_the_whole_catalogue_is_played_in_minutes(self, reference: InProcessSource) -> None:
        """Fewer than 4,300 runs stay in one process, which are played in about two minutes."""
        sizes = [
            sum(one.resume == "same" for one in plan_variants(scenario, reference.facts)) for scenario in CATALOGUE
        ]

        assert sum(sizes) < 4300


@pytest.mark.slow
@pytest.mark.timeout(300)
@each
def test_a_correct_agent_passes_in_every_variant(scenario: Scenario, reference: InProcessSource) -> None:
    """In all variants, in fresh and cold processes, too, and in what they must have in common."""
    played = [play(scenario, variant, reference) for variant in plan_variants(scenario, reference.facts)]

    assert [] == [wrong for history in played for wrong in findings(scenario, history)]
    assert [] == bad(judge_group(played))


def a_few(scenario: Scenario, reference: InProcessSource) -> list[Variant]:
    """The plainest variant, and the last streamed one and the last one at all that stay in this process."""
    here = [one for one in plan_variants(scenario, reference.facts) if one.resume == "same"]
    streamed = [one for one in here if one.stream]
    return list(dict.fromkeys((*here[:1], *streamed[-1:], *here[-1:])))


def play(scenario: Scenario, variant: Variant, reference: InProcessSource) -> History:
    run = asyncio.run(run_scenario(scenario, variant, reference, limit=RunLimits(seconds=30)))
    return read_history(run.events)


def findings(scenario: Scenario, history: History) -> list[str]:
    """What a check complains about, and what was not reached, which no complaint excuses here."""
    counts = count_reached(history)
    missing = [
        f"{word} {counts.get(word, 0)}x" for word, wanted in scenario.reaches.items() if counts.get(word, 0) < wanted
    ]
    return [*bad(judge(history)), *missing]


def bad(verdicts: Sequence[Verdict]) -> list[str]:
    shown = ("fail", "warning", "unknown", "harness-error")
    return [f"{one.check}: {one.expected}, not: {one.actual}" for one in verdicts if one.status in shown]

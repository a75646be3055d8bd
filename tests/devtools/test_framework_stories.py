"""Stories played on frameworks, in parts: on agents of this process, with a defect and without."""

from __future__ import annotations

from itertools import count

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.campaigns.exploration import Exploration, StoryPlayer
from pytest_approvals.devtools.framework_stories import (
    BEGIN,
    END,
    PAGE,
    FoundCause,
    PlayedStories,
    StoryCampaign,
    format_results,
    format_table,
    load_results,
    main,
    replace_table,
)
from pytest_approvals.errors import UsageError
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.event_loops import run_coroutine
from pytest_approvals.simulation.faults import FAULTS
from pytest_approvals.simulation.reference import ReferenceAgent

FOUND = FoundCause(
    check="asked-once", symptoms=["x"], title="A", story="title: A\n", variants=["none-held"], first=7, count=2,
    digest="abc", record="some-cause",
)  # fmt: skip


def campaign(fault: str = "", played: PlayedStories | None = None) -> StoryCampaign:
    """Return the stories of the reference agent, with a fault or without."""
    adapter = FAULTS[fault] if fault else ReferenceAgent
    source = InProcessSource(name="reference", adapter=adapter, facts=describe_adapter(adapter))
    player = StoryPlayer(source, run_coroutine, checks=["rejected-never-runs"])
    clock = map(float, count())
    return StoryCampaign(played, Exploration(player=player), lambda: next(clock))


def play(one: StoryCampaign, stories: int) -> PlayedStories:
    list(one.play(stories))
    return one.played


def test_a_later_part_goes_on_where_the_earlier_one_ended() -> None:
    """What the earlier one has reduced is counted, and not reduced again."""
    first = play(campaign("RejectedCallRuns"), 20)
    [before] = first.causes
    counted = before.count
    later = play(campaign("RejectedCallRuns", first), 20)

    assert (40, 40) == (later.next, later.stories)
    assert [before.story] == [found.story for found in later.causes]
    assert counted < later.causes[0].count
    assert [before.first] == [found.first for found in later.causes]


def test_stories_in_parts_are_those_of_one_part() -> None:
    """The counts are the same."""
    whole = play(campaign("RejectedCallRuns"), 40)
    parts = play(campaign("RejectedCallRuns", play(campaign("RejectedCallRuns"), 15)), 25)

    assert [(found.check, found.count) for found in whole.causes] == [(f.check, f.count) for f in parts.causes]
    assert (whole.stories, whole.next) == (parts.stories, parts.next)


def test_what_holds_now_is_forgotten() -> None:
    """What still fails is kept."""
    played = play(campaign("RejectedCallRuns"), 20)

    assert [] == list(campaign("RejectedCallRuns", played).replay())
    assert ["rejected-never-runs"] == [found.check for found in campaign("", played).replay()]
    assert [] == played.causes


def test_another_release_is_not_counted_with_the_first_one() -> None:
    """It begins anew, and only if that is said."""
    with pytest.raises(UsageError, match="1.0 was played before, and this is .*--fresh"):
        campaign("", PlayedStories(release="1.0"))


def test_results_are_read_as_they_are_written(tmp_path) -> None:
    """With the causes that were found."""
    results = {"agno": PlayedStories(release="3.1", next=9, stories=8, known=2, seconds=1.5, causes=[FOUND])}
    (tmp_path / "results.json").write_text(format_results(results))

    assert results == load_results(tmp_path / "results.json")
    assert {} == load_results(tmp_path / "absent.json")


def test_the_table_counts_causes_with_and_without_a_record() -> None:
    """In the order of the agents' names."""
    one = PlayedStories(release="3.1", stories=2400, known=12, seconds=1234.5, causes=[FOUND])
    lines = format_table({"b": one, "a": PlayedStories(release="1")}).splitlines()

    assert ["| `a` | 1 | 0 | 0 s | 0 | 0 | 0 |", "| `b` | 3.1 | 2,400 | 1,234 s | 12 | 1 | 1 |"] == lines[3:5]


def test_the_page_has_the_table_of_the_recorded_results() -> None:
    """The part of `docs/explore.md` between the marks is generated."""
    page = PAGE.read_text(encoding="utf-8")

    assert page.count(BEGIN) == page.count(END) == 1
    assert page == replace_table(page, format_table(load_results()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["agno", "--stories", "0"], "--stories: Invalid number 0: must be at least 1"),
        (["nope"], "Unknown agent 'nope'"),
    ],
)
def test_invalid_arguments_are_said(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With exit code 2, before anything is played."""
    assert 2 == main(arguments)
    assert message in capsys.readouterr().err

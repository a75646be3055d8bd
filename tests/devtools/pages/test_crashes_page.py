"""The page of crash points and stores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_approvals.devtools.pages import crashes as crashes_page
from pytest_approvals.devtools.pages.crashes import (
    AGENTS,
    POINTS,
    WAYS,
    StorePlayer,
    StoreRow,
    StoreSetting,
    describe_run,
    format_crashes_page,
    list_settings,
    list_stores,
    main,
    write_story,
)
from pytest_approvals.devtools.pages.forgetting_stores import LOSSES, describe_loss, write_loss
from pytest_approvals.devtools.pages.two_workers import MEETINGS, describe_meeting, write_meeting
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.scenario.model import TogetherStep

PAGE = Path(__file__).parents[3] / "docs" / "crashes.md"

ASKED = """
mode native.sqlite
send Pay 5
model c1 pay(amount=5)
pause c1
save a
approve c1
go
"""


def read_rows() -> list[StoreRow]:
    """What the page says, row by row."""
    lines = re.findall(
        r"^\| `(\S+)` \| ([a-z_]+(?:, [^|]+)?) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    cells = {}
    for agent, store, line in lines:
        cells.setdefault((agent, store), []).append(tuple(line.split(" | ")))
    return [
        StoreRow(
            agent=agent,
            store=store,
            recovered=recovered,
            messaged=messaged,
            met=met[0] if met else (),
            forgotten=forgotten,
        )
        for (agent, store), (recovered, messaged, *met, forgotten) in cells.items()
    ]


def test_the_committed_page_is_what_the_command_writes_of_its_rows() -> None:
    """No word of it is written by hand."""
    assert format_crashes_page(read_rows()) == PAGE.read_text(encoding="utf-8")


def test_every_agent_has_a_row() -> None:
    """None is left out."""
    assert list(AGENTS) == list(dict.fromkeys(row.agent for row in read_rows()))


def test_the_reference_agent_doubles_and_forgets_nothing() -> None:
    """Neither if the application answers or resumes, nor if it sends a message."""
    row = next(row for row in read_rows() if row.agent == "reference")

    cells = (*row.recovered, *row.messaged, *row.met, *row.forgotten)
    assert [] == [cell for cell in cells if "**" in cell or "again, runs again" in cell]
    assert ("refused, runs once",) * len(MEETINGS) == row.met


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.title)
@pytest.mark.parametrize("way", WAYS)
def test_each_point_has_a_story_for_each_way_to_go_on(point, way) -> None:
    """It is valid, and kills the process once."""
    story = write_story(point, way)

    assert [point.first or point.second] == [step.crashes for step in story.caller if getattr(step, "crashes", None)]


def test_a_cell_is_played() -> None:
    """On the reference agent, a call that was cut off is told as unknown, as the page says."""
    player = StorePlayer("reference", StoreSetting(serialize="native.sqlite"))

    assert ["native.sqlite"] == list_stores(player.source)
    assert "resume: unknown, told" == player.describe_recovery(POINTS[4])


def test_a_setting_of_a_store_follows_that_store(monkeypatch) -> None:
    """And is played with its options; one of a store that is not there is left out."""
    fast = StoreSetting(serialize="native.sqlite", words="fast", options={"speed": 1})
    away = StoreSetting(serialize="native.postgres", words="fast")
    monkeypatch.setattr(crashes_page, "SETTINGS", {"reference": (away, fast)})

    assert ["sqlite", "sqlite, fast"] == [setting.title for setting in list_settings("reference")]
    assert {"speed": 1} == StorePlayer("reference", fast).story(POINTS[0], "answer").options


@pytest.mark.parametrize(
    ("journal", "words"),
    [
        ("crash before c1\nrestore a:\ngo\nrun c1 -> paid 5\ndone", "runs once"),
        ("start c1\ncrash c1\nrestore a:\ngo\nrun c1 -> paid 5\ndone", "**runs twice**"),
        ("start c1\ncrash c1\nrestore a: c1\napprove c1\ngo\nrun c1 -> paid 5\ndone", "runs again"),
        ("crash before c1\nrestore a:\nforget c1\nsend Is it paid?\ndone", "**forgotten**"),
        ("crash before c1\nrestore a: c1\nend left: c1", "waits"),
        ("run c1 -> paid 5\ncrash\nrestore a:\ngo\ndone", "runs once"),
        ("run c1 -> paid 5\ncrash write c1\nrestore a: c1\napprove c1\ngo\nrun c1 -> paid 5\ndone", "runs again"),
        ("done", "not reached"),
    ],
)
def test_a_run_is_told_in_the_words_of_the_page(journal: str, words: str) -> None:
    """By what had an effect, what the model was told, and what waits."""
    assert words == describe_run(read_history(parse_notation(ASKED + journal)))


@pytest.mark.parametrize("meeting", MEETINGS, ids=lambda meeting: meeting.title)
def test_each_meeting_of_two_workers_has_a_story(meeting) -> None:
    """It is valid, and stops the first one."""
    (together,) = [step for step in write_meeting(meeting).caller if isinstance(step, TogetherStep)]

    assert [meeting.stops, None] == [step.stops for step in together.steps]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("approve c1\ngo\nfail Busy: no\nwake 2\nrun c1 -> paid 5\ndone", "refused, runs once"),
        ("approve c1\ngo\nrun c1 -> paid 5\ndone\nwake 2\nrun c1 -> paid 5\ndone", "**runs twice**"),
        ("reject c1\ngo\ntell c1 no\ndone\nwake 2\nrun c1 -> paid 5\ndone", "**rejected, but runs once**"),
        ("reject c1\ngo\ntell c1 no\ndone\nwake 2\ntell c1 no\ndone", "rejected, not run"),
        ("send Is it paid?\ndone\nwake 2\ndone\nsave b\nrestore a\nsend Bye\ndone", "answered, **forgotten**, not run"),
    ],
)
def test_a_meeting_is_told_in_the_words_of_the_page(second, words) -> None:
    """By what the second worker was told, and by what had an effect."""
    assert words == describe_meeting(read_history(parse_notation(f"{ASKED}stop before c1\nrestore a: c1\n{second}")))


def test_a_meeting_without_a_stop_says_nothing() -> None:
    """The first worker was not where it was to be stopped."""
    assert "" == describe_meeting(read_history(parse_notation(f"{ASKED}run c1 -> paid 5\ndone")))


def test_the_command_prints_the_rows_of_an_agent(monkeypatch, tmp_path, capsys) -> None:
    """Without writing the page."""
    monkeypatch.setattr(crashes_page, "PAGE", tmp_path / "crashes.md")
    monkeypatch.setattr(crashes_page, "POINTS", POINTS[4:5])
    monkeypatch.setattr(crashes_page, "MEETINGS", MEETINGS[:1])
    monkeypatch.setattr(crashes_page, "LOSSES", LOSSES[:1])

    assert 0 == main(["--agent", "reference"])
    words = "resume: unknown, told / unknown, told / refused, runs once / runs again"
    assert f"reference sqlite: {words}\n" == capsys.readouterr().out
    assert not (tmp_path / "crashes.md").exists()


def test_an_unknown_agent_is_named(capsys) -> None:
    """With exit code 2 and no traceback."""
    assert 2 == main(["--agent", "nobody"])
    assert "nobody" in capsys.readouterr().err


PAID = (
    ASKED
    + """
run c1 -> paid 5
done
"""
)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.title)
def test_each_loss_has_a_story(loss) -> None:
    """It is valid, and one turn is lost or not read."""
    story = write_loss(loss)

    assert 1 == sum(bool(getattr(step, "loses", None) or getattr(step, "reads", None)) for step in story.caller)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ("lose\nrestore a: c1\napprove c1\ngo\nrun c1 -> paid 5\ndone", "runs again"),
        ("lose\nrestore a: c1\nsend Thank you\nrun c1 -> paid 5\ndone", "**runs unapproved**"),
        ("stale\nrestore a: c1\nsend Thank you\ntell c1 not executed\ndone", "runs once"),
        ("lose\nrestore a: c1\nsend Thank you\nfail Refused: c1 waits\nend left: c1", "refused, runs once, waits"),
        (
            "lose\nrestore a: c1\nsend Thank you\ndown 400\nfail BadRequest: c1 has no result\nend left",
            "runs once, waits, **stuck**",
        ),
    ],
    ids=["again", "unapproved", "once", "refused", "stuck"],
)
def test_a_loss_is_described_by_what_follows(after: str, words: str) -> None:
    """What the call has done before stays done."""
    assert words == describe_loss(read_history(parse_notation(PAID + after)))


def test_a_store_that_forgot_nothing_has_no_words() -> None:
    """The page says that this was not reached."""
    assert "" == describe_loss(read_history(parse_notation(PAID)))

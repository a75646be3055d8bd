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
    describe_run,
    format_crashes_page,
    list_stores,
    main,
    write_story,
)
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation

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
    lines = re.findall(r"^\| `(\S+)` \| (\w+) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    half = len(lines) // 2
    return [
        StoreRow(agent=agent, store=store, recovered=tuple(one.split(" | ")), messaged=tuple(other.split(" | ")))
        for (agent, store, one), (_, _, other) in zip(lines[:half], lines[half:], strict=True)
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

    assert [] == [cell for cell in (*row.recovered, *row.messaged) if "**" in cell or "again, runs again" in cell]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.title)
@pytest.mark.parametrize("way", WAYS)
def test_each_point_has_a_story_for_each_way_to_go_on(point, way) -> None:
    """It is valid, and kills the process once."""
    story = write_story(point, way)

    assert [point.first or point.second] == [step.crashes for step in story.caller if getattr(step, "crashes", None)]


def test_a_cell_is_played() -> None:
    """On the reference agent, a call that was cut off is told as unknown, as the page says."""
    player = StorePlayer("reference", "native.sqlite")

    assert ["native.sqlite"] == list_stores(player.source)
    assert "resume: unknown, told" == player.describe_recovery(POINTS[3])


@pytest.mark.parametrize(
    ("journal", "words"),
    [
        ("crash before c1\nrestore a:\ngo\nrun c1 -> paid 5\ndone", "runs once"),
        ("start c1\ncrash c1\nrestore a:\ngo\nrun c1 -> paid 5\ndone", "**runs twice**"),
        ("start c1\ncrash c1\nrestore a: c1\napprove c1\ngo\nrun c1 -> paid 5\ndone", "runs again"),
        ("crash before c1\nrestore a:\nforget c1\nsend Is it paid?\ndone", "**forgotten**"),
        ("crash before c1\nrestore a: c1\nend left: c1", "waits"),
        ("run c1 -> paid 5\ncrash\nrestore a:\ngo\ndone", "runs once"),
        ("done", "not reached"),
    ],
)
def test_a_run_is_told_in_the_words_of_the_page(journal: str, words: str) -> None:
    """By what had an effect, what the model was told, and what waits."""
    assert words == describe_run(read_history(parse_notation(ASKED + journal)))


def test_the_command_prints_the_rows_of_an_agent(monkeypatch, tmp_path, capsys) -> None:
    """Without writing the page."""
    monkeypatch.setattr(crashes_page, "PAGE", tmp_path / "crashes.md")
    monkeypatch.setattr(crashes_page, "POINTS", POINTS[3:4])

    assert 0 == main(["--agent", "reference"])
    assert "reference sqlite: resume: unknown, told / unknown, told\n" == capsys.readouterr().out
    assert not (tmp_path / "crashes.md").exists()


def test_an_unknown_agent_is_named(capsys) -> None:
    """With exit code 2 and no traceback."""
    assert 2 == main(["--agent", "nobody"])
    assert "nobody" in capsys.readouterr().err

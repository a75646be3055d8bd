"""Every mistake in a scenario file is named: its line, what it is, and the nearest valid word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_approvals.errors import ScenarioError
from pytest_approvals.scenario.load import parse_scenario

STORY = """\
title: A payment and a helper
tools:
  pay: {approval: always, parameters: {amount: integer, note: string?}}
  ask: {runs: helper}
  helper/wipe: {approval: always, parameters: {path: string}}
agents:
  helper:
    model:
      - calls: [{id: c1, tool: wipe, arguments: {path: a.txt}}]
      - say: Wiped.
model:
  - calls:
      - {id: c1, tool: pay, arguments: {amount: 5}}
      - {id: o1, tool: ask, arguments: {input: Wipe}}
  - say: Done.
caller:
  - send: Pay and wipe
  - decide: {c1: approve, o1/c1: reject}
"""

ENTRY = re.compile(r"^  (?P<old>.*)\n→ (?P<new>.*)\n! (?P<line>\d+): (?P<what>.*)$", re.MULTILINE)


def entries() -> Iterator[tuple[str, str, int, str]]:
    """Reads `mistakes.txt`: what is replaced by what, and the line and the mistake that are then named."""
    text = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8")
    for entry in ENTRY.finditer(text):
        old, new = (entry[side].replace("⏎", "\n").replace("∅", "") for side in ("old", "new"))
        yield old, new, int(entry["line"]), entry["what"]


def refused(old: str, new: str) -> ScenarioError:
    """The error that the changed story is refused with."""
    assert old in STORY

    with pytest.raises(ScenarioError) as error:
        parse_scenario(STORY.replace(old, new, 1), name="family/story", path="story.approval.yaml")
    return error.value


@pytest.mark.parametrize(("old", "new", "line", "what"), list(entries()))
def test_a_mistake_is_named(old: str, new: str, line: int, what: str) -> None:
    """The error says where the mistake is and what would be right."""
    error = refused(old, new)

    assert (line, what) == (error.line, error.what.partition("\n    ")[0])


def test_all_entries_are_read() -> None:
    """No entry of the list is left out because it is written differently."""
    text = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8")

    assert sum(row.startswith("!") for row in text.splitlines()) == len(list(entries()))


def test_the_story_itself_has_no_mistake() -> None:
    """What the mistakes are put into is a scenario."""
    assert "family/story" == parse_scenario(STORY, name="family/story", path="story.approval.yaml").id


def test_an_error_begins_with_file_and_line_and_quotes_the_line() -> None:
    """An error reads `file:line: what`, with the line itself below."""
    error = refused("say: Done.", "says: Done.")

    assert "story.approval.yaml:15: a reply has no key 'says'; did you mean 'say'?\n    - says: Done." == str(error)


def test_the_first_of_several_mistakes_is_named() -> None:
    """Where a file has several mistakes, the first one from the top is named."""
    title = "title: A payment and a helper\n"

    assert 2 == refused(title, f"{title}reaches: {{pausd: 1}}\nrequires: [paralel]\n").line

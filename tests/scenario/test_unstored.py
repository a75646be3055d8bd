"""Changes of what no framework stores with a conversation."""

from __future__ import annotations

import pytest

from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder
from pytest_approvals.scenario.generation.grafts import finalize_for, release
from pytest_approvals.scenario.generation.unstored import UNSTORED, change_unstored
from pytest_approvals.scenario.load import load_scenario, parse_scenario
from pytest_approvals.scenario.model import Scenario, ScriptedDecision, TurnStep
from pytest_approvals.scenario.validation import validate_scenario

STORY = """\
title: A draft is published and a note is filed
tools:
  publish: {approval: always, parameters: {draft: string, pages: integer}, returns: "published"}
  file_note: {parameters: {text: string}, returns: "filed"}
model:
  - calls:
      - {id: c1, tool: publish, arguments: {draft: "false", pages: 12}}
      - {id: c2, tool: publish, arguments: {draft: "true", pages: 30}}
  - calls: [{id: c3, tool: file_note, arguments: {text: Two are published}}]
  - say: Done.
caller:
  - send: Publish both
  - decide: {c1: approve, c2: approve}
"""

OPEN = STORY.replace("decide: {c1: approve, c2: approve}", "oracle: true")
"""The same with requests that nobody has answered yet."""


@pytest.fixture
def story() -> Scenario:
    """A story in which each change finds a place."""
    return parse_scenario(STORY, name="made/story", path="made/story.approval.yaml")


@pytest.mark.parametrize("name", UNSTORED)
def test_each_change_has_a_valid_form(name: str, story: Scenario) -> None:
    """All its forms can be completed, and differ from the story."""
    if name == "answers that are not stored":
        story = parse_scenario(OPEN, name="made/story", path="made/story.approval.yaml")
    plain = release(story, "A story")
    forms = list(UNSTORED[name].forms(plain))
    grown = [finalize_for(form, plain, None) for form in forms]

    assert forms
    assert [] == [form for form, whole in zip(forms, grown, strict=True) if whole is None or whole == plain]


def test_stories_of_the_catalogue_stay_valid() -> None:
    """Whatever is changed."""
    found = find_scenarios([stock_folder()])
    some = [load_scenario(found[name], root=stock_folder()) for name in sorted(found)[::40]]
    changed = [grown for one in some for grown in change_unstored(one, None)]

    assert len(some) < len(changed)
    assert [] == [str(found) for grown in changed for found in list(validate_scenario(grown))[:1]]


def test_wanted_checks_choose_the_changes(story: Scenario) -> None:
    """What shows none of them is left out."""
    [first, *_] = change_unstored(story, None, ["only-model-calls-run"])
    forged = [
        answer
        for step in first.caller or ()
        if isinstance(step, TurnStep)
        for answer in step.answers
        if answer.unknown_id is not None
    ]

    assert [
        ScriptedDecision(unknown_id="forged-1", shows={"draft": "941", "pages": 941}, shows_tool="publish")
    ] == forged
    assert [] == list(change_unstored(story, None, ["stream-shows-everything"]))


def test_nothing_is_changed_that_an_agent_cannot_play(story: Scenario) -> None:
    """An agent without nested agents gets none."""
    assert any(len(grown.agents) > 1 for grown in change_unstored(story, None))
    assert not any(len(grown.agents) > 1 for grown in change_unstored(story, frozenset()))

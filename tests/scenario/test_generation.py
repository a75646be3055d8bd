"""Stories made by machine."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pytest
from hypothesis import find, settings

from pytest_approvals.errors import UsageError
from pytest_approvals.scenario.generation import stories, story_from_seed
from pytest_approvals.scenario.generation.features import find_features
from pytest_approvals.scenario.model import Scenario, ScriptedDecision, TurnStep
from pytest_approvals.scenario.validation import validate_scenario

QUIET = settings(max_examples=3000, database=None, derandomize=True)


def invalid(drawn: Iterable[Scenario]) -> list[str]:
    """The first diagnostic of each invalid story."""
    return [str(diagnostic) for story in drawn for diagnostic in list(validate_scenario(story))[:1]]


@pytest.mark.parametrize("profile", ["realistic", "adversarial"])
def test_drawn_stories_are_valid(profile: str) -> None:
    """At least 99 in 100 stories are valid as they are drawn."""
    drawn = [story_from_seed(seed, profile=profile) for seed in range(500)]

    assert len(invalid(drawn)) <= 5, invalid(drawn)


def test_an_invalid_story_counts() -> None:
    """A story whose model has no reply is invalid."""
    broken = Scenario(id="drawn/broken", title="Broken", agents=story_from_seed(0).agents, caller=())

    assert 1 == len(invalid([broken]))


def test_the_smallest_story_is_one_approved_call() -> None:
    """Stories shrink towards a gated call that is approved."""
    smallest = find(stories(), lambda story: True, settings=QUIET)

    assert (
        TurnStep(text="Go ahead."),
        TurnStep(answers=(ScriptedDecision(label="c1"),)),
    ) == smallest.caller
    assert ["pay"] == [tool.name for tool in smallest.tools]


def test_a_story_shrinks_to_the_feature_that_is_asked_for() -> None:
    """What a failure does not need is left out."""
    smallest = find(stories(), lambda story: "hangs_up_at_model" in find_features(story), settings=QUIET)

    assert {"hangs_up_at_model", "hang_up"} >= find_features(smallest) - {"several_turns"}


def test_a_seed_has_one_story() -> None:
    """The same seed draws the same story, another seed another one."""
    assert story_from_seed(7) == story_from_seed(7)
    assert story_from_seed(7) != story_from_seed(8)


def test_without_hypothesis_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)

    with pytest.raises(UsageError) as caught:
        stories()

    assert "Hypothesis is missing; install it with `pip install 'pytest-approvals[explore]'`." == str(caught.value)


def test_an_unknown_profile_is_refused() -> None:
    """The error names the profile and a near one."""
    with pytest.raises(UsageError) as caught:
        stories(profile="realstic")

    assert "Unknown profile 'realstic'; did you mean 'realistic'?" == str(caught.value)

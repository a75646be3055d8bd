"""Stories made by machine: drawn from nothing, crossed, and varied.

They are values like those of files and builders. `stories` is a strategy of Hypothesis, so its stories shrink; a story
can also be drawn from a seed alone, with `story_from_seed`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.scenario.generation.choices import Choices
from pytest_approvals.scenario.generation.features import FEATURES, PROFILES, available_features
from pytest_approvals.scenario.generation.features import feature_pairs as feature_pairs
from pytest_approvals.scenario.generation.features import find_features as find_features
from pytest_approvals.scenario.generation.grafts import change_once, cross, vary
from pytest_approvals.scenario.generation.grammar import draw_story
from pytest_approvals.scenario.model import Scenario

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = [
    "FEATURES",
    "PROFILES",
    "change_once",
    "choices_from_seed",
    "crossings",
    "feature_pairs",
    "find_features",
    "neighbours",
    "stories",
    "story_from_seed",
]


def stories(capabilities: frozenset[str] | None = None, *, profile: str = "adversarial") -> SearchStrategy[Scenario]:
    """Return a strategy of stories that shrink towards one gated call that is approved.

    Args:
        capabilities: What the agent claims, so that it can play the stories; None for an agent that can do everything.
        profile: `realistic` for what providers are known to send and callers to do, or `adversarial` for everything.

    Raises:
        UsageError: Hypothesis is not installed.
        UnknownName: The profile is unknown.
    """
    available_features(capabilities, profile)
    return _build_strategy(lambda choices: draw_story(choices, capabilities, profile))


def crossings(catalogue: Iterable[Scenario], capabilities: frozenset[str] | None = None) -> SearchStrategy[Scenario]:
    """Return a strategy of catalogue stories that have a feature of another one.

    Args:
        catalogue: The stories to cross, at least one.
        capabilities: What the agent claims; no feature is added that it cannot play.

    Raises:
        UsageError: Hypothesis is not installed, or there is no story.
    """
    known = tuple(catalogue)
    if not known:
        raise UsageError("No stories to cross; give at least one.")
    return _build_strategy(lambda choices: cross(choices, known, capabilities))


def neighbours(scenario: Scenario, capabilities: frozenset[str] | None = None) -> SearchStrategy[Scenario]:
    """Return a strategy of stories that differ from *scenario* in one to three places.

    Args:
        scenario: The story.
        capabilities: What the agent claims; nothing is added that it cannot play.

    Raises:
        UsageError: Hypothesis is not installed.
    """
    return _build_strategy(lambda choices: vary(choices, scenario, capabilities))


def story_from_seed(
    seed: int,
    capabilities: frozenset[str] | None = None,
    *,
    profile: str = "adversarial",
    features: Collection[str] = (),
) -> Scenario:
    """Return the story of a seed: the same on every machine and in every release of Python.

    Args:
        seed: The seed.
        capabilities: What the agent claims; None for everything.
        profile: A name in `PROFILES`.
        features: Those that it has in any case, if the agent can play them.

    Raises:
        UnknownName: The profile or a feature is unknown.
    """
    for name in features:
        if name not in FEATURES:
            raise UnknownName("feature", name, FEATURES)
    return draw_story(choices_from_seed(seed), capabilities, profile, features)


def choices_from_seed(seed: int) -> Choices:
    """Return the choices that follow from a seed, for `draw_story`, `cross` and `vary`."""
    return _SeededChoices(seed)


def _build_strategy(draw_from: Callable[[Choices], Scenario]) -> SearchStrategy[Scenario]:
    strategies = _import_strategies()

    def draw_one(draw: DrawFn) -> Scenario:
        return draw_from(_DrawnChoices(draw, strategies))

    strategy: SearchStrategy[Scenario] = strategies.composite(draw_one)()
    return strategy


def _import_strategies() -> Any:
    try:
        from hypothesis import strategies
    except ImportError:
        raise UsageError("Hypothesis is missing; install it with `pip install 'pytest-approvals[explore]'`.") from None
    return strategies


class _DrawnChoices:
    """Choices that Hypothesis makes."""

    def __init__(self, draw: DrawFn, strategies: Any) -> None:
        self._draw = draw
        self._integers = strategies.integers

    def below(self, bound: int) -> int:
        """Return an integer from 0 to *bound* - 1."""
        return int(self._draw(_integers_below(bound, self._integers)))


_BELOW: dict[int, Any] = {}


def _integers_below(bound: int, integers: Any) -> Any:
    # A strategy is built once for each bound: building one costs more than drawing from it.
    if bound not in _BELOW:
        _BELOW[bound] = integers(0, bound - 1)
    return _BELOW[bound]


class _SeededChoices:
    """Choices that follow from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        """Return an integer from 0 to *bound* - 1."""
        # `random()` is the one method whose values are the same in every release of Python.
        return int(self._random.random() * bound)

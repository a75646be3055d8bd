"""Neighbours of a conversation, tried on agents.

A stored conversation does not show everything that happened: a client that sent its answer twice, a process that was
restarted, a gate that was misconfigured. If the conversation itself does not fail, one such change is tried after the
other, those first that may show the symptom, then two at a time, then several.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pytest_approvals.campaigns.story_shrinking import shrink_story
from pytest_approvals.conversations.reproduce.trials import TrialAgent
from pytest_approvals.errors import ScenarioError
from pytest_approvals.scenario.generation import change_once, choices_from_seed
from pytest_approvals.scenario.generation.grafts import vary
from pytest_approvals.scenario.generation.unstored import change_unstored
from pytest_approvals.scenario.model import Scenario, Variant

DEFAULT_NEIGHBOURS = 200
"""How many stories are tried at most."""

DEFAULT_SECONDS = 120.0
"""How long they are tried."""

_PAST_NEAREST = 3
"""After a failure without the symptom, so many times as many stories are tried for one with it."""

_LEAST_STORIES = 60
"""But at least so many."""

_MAX_PAIRS = 12
"""How many second changes are tried after a first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingNeighbour:
    """A story that fails.

    Attributes:
        story: The smallest one that was found.
        check: The check that fails.
        variant: The variant in which it fails.
        changed: The number of stories that were tried before it, and it.
        trials: The number of smaller ones that were tried.
    """

    story: Scenario
    check: str
    variant: Variant
    changed: int
    trials: int = 0


class NeighbourSearch:
    """Search for a neighbour that fails on an agent, and not on the others.

    Args:
        agent: The agent on which it has to fail.
        others: Agents on which the check has to hold, such as a release that is known to be sound.
        reference: The agent on which nothing may fail.
        most: How many stories are tried at most.
        seconds: How long.
        most_trials: How many smaller stories are tried at most.
        report_progress: Called with a line about every step.
    """

    def __init__(
        self,
        agent: TrialAgent,
        others: Sequence[TrialAgent],
        reference: TrialAgent,
        *,
        most: int,
        seconds: float,
        most_trials: int,
        report_progress: Callable[[str], None],
    ) -> None:
        self._agent = agent
        self._others = others
        self._reference = reference
        self._most = most
        self._seconds = seconds
        self._most_trials = most_trials
        self._report_progress = report_progress

    def find(self, scenario: Scenario, wanted: Collection[str]) -> FailingNeighbour | None:
        """Return the smallest story near *scenario* on which a check fails.

        Args:
            scenario: The whole conversation.
            wanted: The checks that have to fail. If none of them does, another failure is returned; any if empty.
        """
        nearest: FailingNeighbour | None = None
        end = time.monotonic() + self._seconds
        for number, story in enumerate(self._iter_stories(scenario, wanted), 1):
            is_late = nearest is not None and number > max(_PAST_NEAREST * nearest.changed, _LEAST_STORIES)
            if number > self._most or time.monotonic() > end or is_late:
                break
            for check, variant in self._find_failures(story):
                found = FailingNeighbour(story=story, check=check, variant=variant, changed=number)
                if not self._tells_apart(found):
                    continue
                if not wanted or check in wanted:
                    return self._shrink(found)
                nearest = nearest or found
        return None if nearest is None else self._shrink(nearest)

    def _iter_stories(self, scenario: Scenario, wanted: Collection[str]) -> Iterator[Scenario]:
        """Yield stories with one change each, then with two, then with up to three."""
        seen = {repr(replace(scenario, title=""))}
        for story in self._iter_all_stories(scenario, tuple(wanted)):
            if _is_new(story, seen):
                yield story

    def _iter_all_stories(self, scenario: Scenario, wanted: tuple[str, ...]) -> Iterator[Scenario]:
        capabilities = self._agent.capabilities
        likely = list(change_unstored(scenario, capabilities, wanted))
        yield from likely
        yield from change_once(choices_from_seed(_seed(0)), scenario, capabilities)
        for story in likely:
            yield from islice(change_unstored(story, capabilities, wanted), _MAX_PAIRS)
        yield from change_unstored(scenario, capabilities)
        for number in range(1, 10 * self._most):
            yield vary(choices_from_seed(_seed(number)), scenario, capabilities)

    def _find_failures(self, story: Scenario) -> Iterator[tuple[str, Variant]]:
        """Yield the checks that fail on the agent, and not on the others."""
        variants = self._agent.plainest_variants(story)
        for variant in variants:
            for check in self._agent.failing_checks(story, variant):
                if self._holds_elsewhere(story, check, variant):
                    yield check, variant

    def _holds_elsewhere(self, story: Scenario, check: str, variant: Variant) -> bool:
        """Return whether the story is sound on the reference agent, and the check holds on the others."""
        return self._reference.is_sound(story, variant) and all(
            other.plays(story, variant) and check not in other.failing_checks(story, variant) for other in self._others
        )

    def _shrink(self, found: FailingNeighbour) -> FailingNeighbour:
        self._report_progress(f"{found.check} fails on neighbour {found.changed} of the conversation")
        trials = 0

        def still_fails(story: Scenario) -> bool:
            nonlocal trials
            trials += 1
            try:
                fails = found.check in self._agent.failing_checks(story, found.variant)
                return fails and self._holds_elsewhere(story, found.check, found.variant)
            except ScenarioError:
                return False

        small = replace(
            found, story=shrink_story(found.story, still_fails, max_trials=self._most_trials), trials=trials
        )
        return small if self._tells_apart(small) else replace(found, trials=trials)

    def _tells_apart(self, found: FailingNeighbour) -> bool:
        """Return whether the check fails on the agent only, in all the variants in which the scenario is played."""
        if not self._others:
            return True
        return found.check in self._agent.find_failing_checks_of(found.story) and all(
            found.check not in other.find_failing_checks_of(found.story) for other in self._others
        )


def _is_new(story: Scenario, seen: set[str]) -> bool:
    key = repr(replace(story, title=""))
    is_new = key not in seen
    seen.add(key)
    return is_new


def _seed(number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"neighbour {number}".encode()).digest()[:8], "big")

"""Bisection of releases: find a run that distinguishes two releases, then search between them with that run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from pytest_approvals.campaigns.agent_runs import AgentRuns
from pytest_approvals.errors import AgentUnavailable, UsageError
from pytest_approvals.scenario.model import Scenario, Variant

ProgressCallback = Callable[[str, str], None]
"""Called with every release that was tried, and its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinguishingRun:
    """A run in which a check fails on one release and not on the other; *variant* is None for all variants together."""

    check: str
    scenario: str
    variant: Variant | None

    def fails_on(self, suspect: AgentRuns) -> bool | None:
        """Return whether the check fails there; None if `why_unplayed` names a problem."""
        if self.variant is None:
            return self.check in suspect.failed_group_checks(self.scenario)
        if self.check in suspect.broken(self.scenario, self.variant):
            return True
        return None if self.why_unplayed(suspect) is not None else False

    def why_unplayed(self, suspect: AgentRuns) -> str | None:
        """Return what keeps the run from being played there; None if nothing does."""
        return None if self.variant is None else suspect.why_unplayed(self.scenario, self.variant)

    def __str__(self) -> str:
        return f"{self.scenario} [{self.variant.id if self.variant is not None else '*'}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictChange:
    """The releases between which the verdict changed.

    Attributes:
        last, first: The last release on the good side, and the first on the bad side.
        between: The releases in between, which could not be judged.
    """

    witness: DistinguishingRun
    last: str
    first: str
    between: tuple[str, ...] = field(default=())


def find_distinguishing_run(
    check: str, good: AgentRuns, bad: AgentRuns, catalogue: Mapping[str, Scenario], *, together: bool
) -> DistinguishingRun:
    """Find a run that distinguishes two releases, plain variants first.

    Args:
        check: The slug of the check.
        good: The release in which it holds.
        bad: The release in which it fails.
        catalogue: The scenarios, by id.
        together: Whether the check judges all variants of a scenario together.

    Raises:
        AgentUnavailable: One of them cannot be started.
        UsageError: No run distinguishes them; the message says on which of them the check fails, or why it cannot be
            played.
    """
    # Started before the search, so that an agent that cannot start is an error and not the answer.
    for suspect in (good, bad):
        _ = suspect.source
    failed_on_both = False
    unplayed: list[str] = []
    for witness in _possible_runs(check, bad, catalogue, together):
        if not witness.fails_on(bad):
            continue
        if witness.variant is not None and witness.variant not in good.variants(witness.scenario):
            continue
        fails_on_good = witness.fails_on(good)
        if fails_on_good is None:
            unplayed.append(f"{witness} cannot be played on {good.release}: {witness.why_unplayed(good)}")
        elif not fails_on_good:
            return witness
        failed_on_both = failed_on_both or bool(fails_on_good)
    if failed_on_both:
        raise UsageError(f"{check} fails on {good.release}, too, wherever it fails on {bad.release}")
    if unplayed:
        raise UsageError(unplayed[0])
    raise UsageError(f"{check} does not fail on {bad.release} in any of these scenarios")


def _possible_runs(check: str, bad: AgentRuns, catalogue: Iterable[str], together: bool) -> Iterator[DistinguishingRun]:
    if together:
        yield from (DistinguishingRun(check=check, scenario=scenario, variant=None) for scenario in catalogue)
        return
    # The first variant of every scenario, then the second of every one: variants are planned plainest first.
    names = list(catalogue)
    for rank in zip_longest(*(bad.variants(scenario) for scenario in names)):
        for scenario, variant in zip(names, rank, strict=True):
            if variant is not None:
                yield DistinguishingRun(check=check, scenario=scenario, variant=variant)


def bisect_releases(
    witness: DistinguishingRun, versions: Sequence[str], suspect: Callable[[str], AgentRuns], step: ProgressCallback
) -> VerdictChange:
    """Find the releases between which the verdict changes.

    Args:
        witness: The run that distinguishes the first release from the last one.
        versions: From the good release to the bad one, both included.
        suspect: Returns the runs of a release.
        step: Called with every release that was tried.
    """
    low, high = 0, len(versions) - 1
    unknown: set[int] = set()
    while (middle := _nearest_untried(low, high, unknown)) is not None:
        try:
            fails = witness.fails_on(suspect(versions[middle]))
        except AgentUnavailable as error:
            # Like `git bisect skip`: the search continues with the releases around it.
            unknown.add(middle)
            step(versions[middle], f"cannot be judged: {error}")
            continue
        if fails is None:
            unknown.add(middle)
            step(versions[middle], f"cannot be judged: {witness.why_unplayed(suspect(versions[middle]))}")
            continue
        step(versions[middle], f"{witness.check} {'fails' if fails else 'holds'}")
        low, high = (low, middle) if fails else (middle, high)
    return VerdictChange(
        witness=witness, last=versions[low], first=versions[high], between=tuple(versions[low + 1 : high])
    )


def _nearest_untried(low: int, high: int, unknown: set[int]) -> int | None:
    """Return the untried position nearest to the middle; None if there is none."""
    middle = (low + high) / 2
    return min((at for at in range(low + 1, high) if at not in unknown), key=lambda at: abs(at - middle), default=None)

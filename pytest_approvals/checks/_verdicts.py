"""What checks say: a verdict a check where it holds or cannot be decided, one a check and call where it does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Status = Literal["pass", "fail", "warning", "unknown", "not-applicable", "not-observable", "harness-error"]

FAILING_STATUSES: frozenset[str] = frozenset({"fail", "unknown", "harness-error"})
"""The statuses that fail a run."""

SHOWN_STATUSES: frozenset[str] = FAILING_STATUSES | {"warning"}
"""The statuses that are shown as findings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    What one check says about one journal, or about one call in it.

    Attributes:
        check: The slug.
        status: `pass`, `fail`, `warning` (a `should` that does not hold), `unknown` (the journal cannot decide it),
            `not-applicable` (nothing in it is concerned), `not-observable` (its maker could not record what the check
            needs), `harness-error` (the check crashed, or the run is no evidence).
        label: The call that it is about; None where it is about the whole journal.
        session: The session of that call.
        call: The call as people read it: `c1 pay(amount=5)`.
        expected, actual: What should have been seen, and what was, in a few words.
        witness: The positions of the events that show it, in order.
        implied_by: The slug of the failure that this one follows from; None where it stands for itself.
    """

    check: str
    status: Status
    label: str | None = None
    session: str = ""
    call: str = ""
    expected: str = ""
    actual: str = ""
    witness: tuple[int, ...] = ()
    implied_by: str | None = None

    @property
    def fails(self) -> bool:
        """Whether it fails the run."""
        return self.status in FAILING_STATUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    A verdict that stands for itself, with those that follow from it.

    Attributes:
        requirement: The sentence of the check.
        implied: The verdicts that would not be there without it.
    """

    verdict: Verdict
    requirement: str
    implied: tuple[Verdict, ...] = ()


def count_statuses(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Counts verdicts by status, in the order in which the statuses first come."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.status] = counts.get(verdict.status, 0) + 1
    return counts


def worst_status(verdicts: Sequence[Verdict]) -> Status:
    """Gives the status of several verdicts together: the worst of them, `not-applicable` where there is none."""
    return min((verdict.status for verdict in verdicts), key=_SEVERITY_ORDER.index, default="not-applicable")


_SEVERITY_ORDER: tuple[Status, ...] = (
    "harness-error",
    "fail",
    "unknown",
    "warning",
    "pass",
    "not-observable",
    "not-applicable",
)

"""
How many mutants there are, how many are equivalent, and how many of the others are noticed.

`python -m pytest_approvals.simulation.mutants` makes the page `docs/mutants.md` of a survey of the whole catalogue.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_approvals.checks import SHOWN, judge
from pytest_approvals.journal.events import Event

from . import OPERATORS, Mutant, equivalent, mutants
from .survivors import CLASSES, class_of

Signature = frozenset[tuple[str, str, str | None, str, str]]
"""What the checks say about a journal: slugs, statuses, calls, sessions and what was seen."""


@dataclass(slots=True, kw_only=True)
class Survey:
    """
    What came of mutants, by operator.

    Attributes:
        made: All mutants.
        equivalent: Those that tell the same story; see `equivalence.py`.
        survivors: Those of the others that no check noticed.
        noticed_by: How many mutants each check noticed, equivalent or not.
    """

    made: Counter[str] = field(default_factory=Counter)
    equivalent: Counter[str] = field(default_factory=Counter)
    survivors: list[Mutant] = field(default_factory=list)
    noticed_by: Counter[str] = field(default_factory=Counter)

    @property
    def share_of_equivalents(self) -> float:
        """How many of all mutants are equivalent, from 0 to 1."""
        return self.equivalent.total() / self.made.total()

    @property
    def share_noticed(self) -> float:
        """How many of those that are not equivalent are noticed, from 0 to 1."""
        return 1 - len(self.survivors) / (self.made.total() - self.equivalent.total())

    def classes(self) -> Counter[str | None]:
        """Counts the survivors by the name of their class; None where they have none."""
        found = (class_of(mutant.operator, mutant.what) for mutant in self.survivors)
        return Counter(each.name if each is not None else None for each in found)

    def take(self, journal: Sequence[Event], *, one_in: int = 1) -> None:
        """Judges the mutants of a journal, or one of so many."""
        before = signature(journal)
        for mutant in mutants(journal, one_in=one_in):
            self._judge(journal, mutant, before)

    def _judge(self, journal: Sequence[Event], mutant: Mutant, before: Signature) -> None:
        self.made[mutant.operator] += 1
        new = signature(mutant.events) - before
        self.noticed_by.update({check for check, *_ in new})
        if equivalent(journal, mutant.events):
            self.equivalent[mutant.operator] += 1
        elif not new:
            self.survivors.append(mutant)


def signature(events: Sequence[Event]) -> Signature:
    """Gives what the checks do not accept about a journal."""
    shown = (verdict for verdict in judge(events) if verdict.status in SHOWN)
    return frozenset((one.check, one.status, one.label, one.session, one.actual) for one in shown)


def clean_journals(folder: Path) -> Iterator[list[Event]]:
    """Runs the scenarios of a folder on the reference agent, each plainly and, where it can be, stored and streamed."""
    from pytest_approvals.harness.run import run_scenario
    from pytest_approvals.harness.sources import InThisProcess, facts_of
    from pytest_approvals.scenario.load import load_catalogue
    from pytest_approvals.scenario.variants import variants
    from pytest_approvals.simulation import ReferenceAgent

    source = InThisProcess(name="reference", adapter=ReferenceAgent, facts=facts_of(ReferenceAgent))
    for scenario in load_catalogue([folder]):
        possible = [variant for variant in variants(scenario, source.facts) if variant.resume == "same"]
        stored = [variant for variant in possible[1:] if variant.stream and variant.serialize == "json"]
        for variant in (*possible[:1], *stored[:1]):
            events = asyncio.run(run_scenario(scenario, variant, source)).events
            if events[-1].to_dict().get("how") in ("completed", "left"):
                yield events


def surveyed(journals: Iterable[Sequence[Event]], *, one_in: int = 1) -> Survey:
    """Surveys the mutants of several journals."""
    survey = Survey()
    for journal in journals:
        survey.take(journal, one_in=one_in)
    return survey


def page(survey: Survey) -> str:
    """Gives a survey as a page of the documentation."""
    lines = [_TOP, "| operator | mutants | equivalent | of the others, noticed |", "|---|---:|---:|---:|"]
    alive = Counter(mutant.operator for mutant in survey.survivors)
    for operator in OPERATORS:
        made, same = survey.made[operator], survey.equivalent[operator]
        lines.append(
            f"| {operator} | {made:,} | {_share(same, made)} | {_share(made - same - alive[operator], made - same)} |"
        )
    made, same = survey.made.total(), survey.equivalent.total()
    noticed = _share(made - same - len(survey.survivors), made - same)
    lines.append(f"| **all** | **{made:,}** | **{_share(same, made)}** | **{noticed}** |")
    classes = survey.classes()
    lines += ["", "## What is not noticed, and why\n"]
    for each in CLASSES:
        if classes[each.name]:
            lines.append(f"- **{each.name}** ({_share(classes[each.name], made - same)}). {each.why}")
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


_TOP = """\
# Mutants of journals

A check that does not notice what it forbids is worth nothing. So the journals of correct runs, those of the reference
agent on the whole catalogue, are changed in one place each, numbered anew, and judged: events are dropped, doubled,
swapped, referred to something else, changed, made up, or cut off. A mutant that tells the same story is *equivalent*;
what that means is one function, `equivalent` in `pytest_approvals/simulation/mutants/equivalence.py`, which sees no
verdicts. Of all others the checks have to notice 95 in 100.

This page is made by `python -m pytest_approvals.simulation.mutants`.
"""

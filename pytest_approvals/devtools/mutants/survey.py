"""Survey of mutants: how many are equivalent, and how many of the others the checks notice.

The mutants that no check notices are sorted into classes, each with the reason why that is right or acceptable. A
survivor that belongs to no class is a gap in the checks. `python -m pytest_approvals.devtools.mutants.survey` surveys
the whole catalogue and writes the page `docs/mutants.md`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.checks import SHOWN_STATUSES, judge
from pytest_approvals.devtools.mutants import OPERATORS, Mutant, generate_mutants, is_equivalent
from pytest_approvals.journal.events import Event
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.scenario.variants import plan_variants
from pytest_approvals.simulation import ReferenceAgent


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivorClass:
    """A class of mutants that may live.

    Attributes:
        name: Its name on the page.
        why: Why no check notices them.
        mutants: Patterns of operator and change: `drop caller.shown`.
    """

    name: str
    why: str
    mutants: tuple[str, ...]

    def holds(self, operator: str, what: str) -> bool:
        """Return whether a mutant belongs to the class."""
        return any(fnmatchcase(f"{operator} {what}", pattern) for pattern in self.mutants)


SURVIVOR_CLASSES = (
    SurvivorClass(
        name="the last model request of a turn",
        why="A turn may end without asking its model again: after a rejection, at a limit, or because a tool ends "
        "it. So a missing last exchange, or a failed one that happens twice, makes a different run, not a "
        "wrong one.",
        mutants=("drop model.request + model.*", "duplicate model.request + model.*", "duplicate model.request"),
    ),
    SurvivorClass(
        name="calls in streams",
        why="Streams differ in the calls that they show (those of other agents, hosted ones, those whose ids come "
        "twice) and in the order of what they show. Nothing is compared in a turn that failed or overlaps "
        "another one.",
        mutants=("* caller.shown*", "swap caller.shown, *", "swap *, caller.shown"),
    ),
    SurvivorClass(
        name="turns that fail or finish instead",
        why="Refusing a decision, failing visibly and finishing with nothing left to do are all acceptable if a "
        "decision was not in order; which of them was seen is a trait.",
        mutants=("change turn.end failed", "change turn.end finished"),
    ),
    SurvivorClass(
        name="decisions without effect",
        why="A decision that was refused, came too late, repeats another one or contradicts it has no effect, so "
        "nothing shows whether it was a different one, about another call, or was made at all.",
        mutants=(
            "forge a decision, *",
            "* caller.decide*",
            "swap caller.decide, *",
            "* turn.start decisions",
            "swap caller.stage, *",
        ),
    ),
    SurvivorClass(
        name="requests that come later",
        why="An agent may ask for several approvals one after the other, in a later turn; and a request that the "
        "outcome of a turn does not list may be in its stream or in the saved state.",
        mutants=("change turn.end requests: *", "change store.restore pending: *", "change run.end pending: *"),
    ),
    SurvivorClass(
        name="shorter runs",
        why="A run that ends after a settled turn, and one that was not saved or restored at its end, are valid runs.",
        mutants=(
            "truncate after a turn",
            "drop turn",
            "duplicate turn",
            "drop store.save",
            "drop agent.start + store.restore",
            "drop store.restore",
            "change store.restore failed",
        ),
    ),
    SurvivorClass(
        name="overlapping turns and conversations",
        why="Turns may overlap, agents may run in parallel, an agent may leave a tool running when it ends a "
        "turn, and a policy may be asked early; so consecutive events of this kind may change places.",
        mutants=(
            "swap turn.end, *",
            "swap *, turn.end",
            "swap model.*, model.*",
            "swap model.*, tool.*",
            "swap tool.*, model.*",
            "swap tool.*, tool.*",
            "swap tool.start, *",
            "swap *, caller.signal",
            "swap caller.signal, *",
            "swap store.save, *",
            "swap *, store.*",
            "swap *, caller.decide",
        ),
    ),
    SurvivorClass(
        name="inputs without a comparison",
        why="After a failed turn, a rewind, a trimming or an edit a model input may differ from the previous one. "
        "Hosted results are the provider's own words.",
        mutants=("* model.request items: *",),
    ),
    SurvivorClass(
        name="texts without effect",
        why="What an agent says next to a request, or to another agent, and the reason of a rejection that has no "
        "effect.",
        mutants=(
            "change turn.start text",
            "change turn.end text",
            "change turn.end output",
            "change model.answer say",
            "* model.answer hosted: *",
        ),
    ),
    SurvivorClass(
        name="policies",
        why="When a policy is asked, and how often, is up to the framework; only its answers bind.",
        mutants=("* tool.gate", "* tool.gate *"),
    ),
    SurvivorClass(
        name="ids that arguments replace",
        why="Calls are recognized by id, tool and arguments together; if the arguments are unique, a tool may be "
        "given another id, or a save with the same content may be restored.",
        mutants=(
            "retarget tool.start call_id",
            "retarget store.restore name",
            "change store.restore again",
            "change agent.start tools: *",
        ),
    ),
    SurvivorClass(
        name="leftovers of failed turns",
        why="A call in a reply whose turn failed need not be asked about, run or answered; an execution whose "
        "turn is tried again may be missing the first time; and the model is not told what it returned.",
        mutants=(
            "forge model.answer calls: *",
            "change model.answer calls: arguments",
            "drop tool.start + tool.end",
            "change tool.end result",
            "drop tool.end",
            "* tool.end how",
        ),
    ),
    SurvivorClass(
        name="steps of the caller",
        why="What the caller does twice, or not at all, between two turns changes nothing that the agent did.",
        mutants=(
            "swap caller.cancel, turn.start",
            "* caller.cancel",
            "* caller.signal",
            "* caller.stage",
            "* caller.skip",
            "* caller.stuck",
            "* store.trim",
            "duplicate store.rewrite",
        ),
    ),
    SurvivorClass(
        name="the moment of a disconnect",
        why="What the caller disconnects from ends by itself a moment before or after: a model request that is on "
        "its way, a tool that is cancelled.",
        mutants=(
            "swap model.request, caller.hang_up",
            "swap caller.hang_up, model.failure",
            "swap caller.hang_up, tool.end",
        ),
    ),
)
"""All classes, the largest first."""


def find_survivor_class(operator: str, what: str) -> SurvivorClass | None:
    """Return the first class to which a mutant belongs; None if there is none."""
    return next((known for known in SURVIVOR_CLASSES if known.holds(operator, what)), None)


Signature = frozenset[tuple[str, str, str | None, str, str]]
"""What the checks say about a journal: slugs, statuses, calls, sessions and what was seen."""


@dataclass(slots=True, kw_only=True)
class Survey:
    """Counts of mutants by operator.

    Attributes:
        made: All mutants.
        equivalent: Those that mean the same as their journal; see `equivalence.py`.
        survivors: Those of the others that no check noticed.
        noticed_by: How many mutants each check noticed, equivalent or not.
    """

    made: Counter[str] = field(default_factory=Counter)
    equivalent: Counter[str] = field(default_factory=Counter)
    survivors: list[Mutant] = field(default_factory=list)
    noticed_by: Counter[str] = field(default_factory=Counter)

    @property
    def share_of_equivalents(self) -> float:
        """The share of equivalent mutants, from 0 to 1."""
        return self.equivalent.total() / self.made.total()

    @property
    def share_noticed(self) -> float:
        """The share of noticed mutants among those that are not equivalent, from 0 to 1."""
        return 1 - len(self.survivors) / (self.made.total() - self.equivalent.total())

    def classes(self) -> Counter[str | None]:
        """Return the number of survivors by the name of their class; None for those without a class."""
        classes = (find_survivor_class(mutant.operator, mutant.what) for mutant in self.survivors)
        return Counter(known.name if known is not None else None for known in classes)

    def take(self, journal: Sequence[Event], *, one_in: int = 1) -> None:
        """Judge the mutants of a journal, or every *one_in*-th of them."""
        before = failure_signature(journal)
        for mutant in generate_mutants(journal, one_in=one_in):
            self._judge(journal, mutant, before)

    def _judge(self, journal: Sequence[Event], mutant: Mutant, before: Signature) -> None:
        self.made[mutant.operator] += 1
        new = failure_signature(mutant.events) - before
        self.noticed_by.update({check for check, *_ in new})
        if is_equivalent(journal, mutant.events):
            self.equivalent[mutant.operator] += 1
        elif not new:
            self.survivors.append(mutant)


def failure_signature(events: Sequence[Event]) -> Signature:
    """Return what the checks object to in a journal."""
    shown = (verdict for verdict in judge(events) if verdict.status in SHOWN_STATUSES)
    return frozenset(
        (verdict.check, verdict.status, verdict.label, verdict.session, verdict.actual) for verdict in shown
    )


def record_clean_journals(folder: Path) -> Iterator[list[Event]]:
    """Yield journals of the reference agent on the scenarios of a folder.

    Each scenario runs once plainly and, if possible, once stored and streamed.
    """
    source = InProcessSource(name="reference", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent))
    for scenario in load_catalogue([folder]):
        possible = [variant for variant in plan_variants(scenario, source.facts) if variant.resume == "same"]
        # Stored and streamed, a journal has the kinds of events that the plain one lacks.
        stored = [variant for variant in possible[1:] if variant.stream and variant.serialize == "json"]
        for variant in (*possible[:1], *stored[:1]):
            events = asyncio.run(run_scenario(scenario, variant, source)).events
            # The journal of a run that did not end by itself is not a correct one.
            if events[-1].to_dict().get("how") in ("completed", "left"):
                yield events


def survey_mutants(journals: Iterable[Sequence[Event]], *, one_in: int = 1) -> Survey:
    """Return the survey of the mutants of several journals."""
    survey = Survey()
    for journal in journals:
        survey.take(journal, one_in=one_in)
    return survey


def render_mutants_page(survey: Survey) -> str:
    """Return a survey as a page of the documentation."""
    lines = [_INTRODUCTION, "| operator | mutants | equivalent | of the others, noticed |", "|---|---:|---:|---:|"]
    alive = Counter(mutant.operator for mutant in survey.survivors)
    for operator in OPERATORS:
        made, same = survey.made[operator], survey.equivalent[operator]
        noticed = _format_share(made - same - alive[operator], made - same)
        lines.append(f"| {operator} | {made:,} | {_format_share(same, made)} | {noticed} |")
    made, same = survey.made.total(), survey.equivalent.total()
    noticed = _format_share(made - same - len(survey.survivors), made - same)
    lines.append(f"| **all** | **{made:,}** | **{_format_share(same, made)}** | **{noticed}** |")
    classes = survey.classes()
    lines += ["", "## Unnoticed mutants\n"]
    for known in SURVIVOR_CLASSES:
        if classes[known.name]:
            lines.append(f"- **{known.name}** ({_format_share(classes[known.name], made - same)}). {known.why}")
    return "\n".join(lines) + "\n"


def _format_share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


_INTRODUCTION = """\
# Mutants of journals

A check that does not notice what it forbids is worth nothing. So the journals of correct runs, those of the reference
agent on the whole catalogue, are changed in one place each, renumbered, and judged: events are dropped, repeated,
swapped, retargeted, changed, forged, or cut off. A mutant that means the same as its journal is *equivalent*; the
definition is one function, `is_equivalent` in `pytest_approvals/devtools/mutants/equivalence.py`, which sees no
verdicts. The checks must notice 95 % of all others.

This page is generated by `python -m pytest_approvals.devtools.mutants.survey`.
"""


if __name__ == "__main__":
    # It takes about a minute.
    Path("docs/mutants.md").write_text(
        render_mutants_page(survey_mutants(record_clean_journals(stock_folder()))), encoding="utf-8"
    )

"""Mutants of journals: the journal of a correct run, changed in one place, so that it tells of a wrong one.

A check that does not notice what it forbids lets mutants live. Seven operators change what was recorded:

    drop        an event, or events that belong together, are left out
    duplicate   they are there twice
    swap        two consecutive events change places
    retarget    something refers to another call, request, execution or save than it did
    change      arguments, results, messages, verdicts or outcomes are different
    forge       something is there that did not happen
    truncate    the run ends early

Everything is renumbered, so that a mutant is as plausible as possible: validation can only find what is wrong with the
events themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pytest_approvals.devtools.mutants.equivalence import is_equivalent
from pytest_approvals.devtools.mutants.operators import (
    Edit,
    SerializedEvent,
    change_contents,
    drop_events,
    duplicate_events,
    forge_events,
    renumber,
    retarget_references,
    swap_events,
    truncate_run,
)
from pytest_approvals.journal.events import Event, event_from_dict

__all__ = ["OPERATORS", "Mutant", "generate_mutants", "is_equivalent"]

OPERATORS: dict[str, Callable[[Sequence[SerializedEvent]], Iterable[Edit]]] = {
    "drop": drop_events,
    "duplicate": duplicate_events,
    "swap": swap_events,
    "retarget": retarget_references,
    "change": change_contents,
    "forge": forge_events,
    "truncate": truncate_run,
}
"""By name: what gives all changes of one kind that a journal allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A changed journal.

    Attributes:
        operator: One of `OPERATORS`.
        what: What was changed, by kinds and fields: `tool.start + tool.end`, `turn.end requests`.
        n: Where, in the journal that was changed.
        events: The changed journal.
    """

    operator: str
    what: str
    n: int
    events: list[Event]


def generate_mutants(events: Sequence[Event], *, one_in: int = 1) -> Iterator[Mutant]:
    """Yield the mutants of a journal, in a fixed order.

    Args:
        events: The journal.
        one_in: Yield every so many-th mutant only, beginning with the first.
    """
    written = [event.to_dict() for event in events]
    edits = ((operator, edit) for operator, make in OPERATORS.items() for edit in make(written))
    for operator, edit in islice(edits, 0, None, one_in):
        changed = [event_from_dict(event) for event in renumber(edit.events)]
        yield Mutant(operator=operator, what=edit.what, n=edit.n, events=changed)

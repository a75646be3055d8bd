"""Journals with what the checks say about them, chosen because each tells some clauses of the checks apart.

They notice a change of a check. `python -m pytest_approvals.devtools.check_mutants --renew` stores the verdicts that
the checks give now, for a change that was meant.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_approvals.devtools.check_mutants import describe_verdicts, renew_journals
from pytest_approvals.journal.events import event_from_dict
from pytest_approvals.journal.validation import find_violations

FILE = Path(__file__).with_name("judged_journals.jsonl")
STORED = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("stored", STORED, ids=[f"journal-{number}" for number in range(len(STORED))])
def test_the_verdicts_on_a_journal_stay(stored):
    """The checks say about each journal what is stored with it: what holds, and what each failure says."""
    assert stored["verdicts"] == describe_verdicts([event_from_dict(event) for event in stored["events"]])


def test_each_could_have_been_recorded():
    """No journal breaks the rules of journals."""
    broken = [find_violations([event_from_dict(event) for event in stored["events"]]) for stored in STORED]

    assert [] == [violations for violations in broken if violations]


def test_a_changed_verdict_is_noticed_and_renewed():
    """A stored verdict that the checks do not give is another one, and `--renew` puts theirs in its place."""
    stored = STORED[0] | {"verdicts": {"holds": [], "told": []}}
    renewed = json.loads(renew_journals(json.dumps(stored)))

    assert stored["verdicts"] != describe_verdicts([event_from_dict(event) for event in stored["events"]])
    assert STORED[0] == renewed

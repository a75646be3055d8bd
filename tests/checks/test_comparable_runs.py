"""Which runs of a scenario have to come to the same."""

from __future__ import annotations

from pytest_approvals.checks import judge_group
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation

KEPT = """
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    save
    restore
    approve c1
    go
    run c1 -> paid 5
    done
"""

LOST = KEPT.replace("run c1 -> paid 5", "tell c1 lost")


def fails(*runs):
    return any(verdict.fails for verdict in judge_group([read_history(run) for run in runs]))


def saved_by(release, lines):
    events = parse_notation(lines)
    events[0].variant = {**events[0].variant, "saved_by": release}
    return events


def test_what_another_release_saved():
    """A run that restores what another release saved is not compared with one that saved it itself."""
    assert fails(parse_notation(KEPT), parse_notation(LOST))
    assert not fails(parse_notation(KEPT), saved_by("1.0", LOST))
    assert fails(saved_by("1.0", KEPT), saved_by("1.0", LOST))

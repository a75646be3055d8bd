"""A check of somebody's own."""

from __future__ import annotations

from pytest_approvals.checks import OK, Evaluations, Failure, check
from pytest_approvals.journal.history import History


@check("speaks-at-the-end", level="should")
def speaks_at_the_end(history: History) -> Evaluations:
    """
    A conversation should end with some words.

    Whoever asked wants to know what became of it.

    Passes:
        send Hello
        done

    Warns:
        send Hello
        model
        finish
    """
    for turn in history.turns:
        if turn.end is not None and turn.end.outcome == "finished":
            if turn.end.output:
                yield OK
            else:
                yield Failure(expected="words", actual="silence", witness=[turn.end.n])

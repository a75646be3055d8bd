"""What is pending at a point of a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_approvals.journal.calls import CallSeen
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import TurnSeen

from .circumstances import cancellations


@dataclass(slots=True, kw_only=True)
class Open:
    """The calls that are asked about at a point, and the position of the event that listed them last."""

    calls: Sequence[CallSeen]
    n: int


def open_after(history: History, turn: TurnSeen | None, n: int) -> Open | None:
    """
    Gives what is pending at position *n*, after *turn* and before the next one; None where the journal does not say.

    A paused turn lists it. A refused turn leaves it as it was. After a turn that failed half-way nobody knows; nor
    after one that may have reached a limit, since it can have taken decisions before it came to a model or a tool.
    """
    limited = history.header is not None and history.header.limits
    while turn is not None and turn.refused and not (limited and turn.decisions):
        turn = turn.before
    if turn is None:
        return Open(calls=(), n=0)
    end = turn.end
    if end is None or end.n > n or turn.overlaps or end.outcome in ("failed", "timeout"):
        return None
    if any(end.n < event.n < n and event.session == turn.session for event in cancellations(history)):
        return Open(calls=(), n=end.n)
    return Open(calls=turn.listed, n=end.n)


def open_before(history: History, turn: TurnSeen) -> Open | None:
    """Gives what is pending when *turn* begins."""
    return open_after(history, turn.before, turn.start.n)

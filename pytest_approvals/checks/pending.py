"""What is pending at a point of a history."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_approvals.journal.calls import CallSeen
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import TurnSeen

from .circumstances import cancellations, same_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """The calls that are asked about at a point, and the position of the event that listed them last."""

    calls: tuple[CallSeen, ...]
    n: int


def open_at(history: History, n: int, session: str) -> Open | None:
    """
    Gives what is pending at position *n* of a session; None where the journal does not say.

    A paused turn lists it. A refused turn leaves it as it was. After a turn that failed half-way nobody knows.
    """
    turns = [turn for turn in history.turns if turn.session == session and turn.start.n < n]
    return _open_after(history, turns, n)


def open_before(history: History, turn: TurnSeen) -> Open | None:
    """Gives what is pending when *turn* begins."""
    past = [other for other in history.turns if other.start.n < turn.start.n and same_line(history, other, turn)]
    return _open_after(history, past, turn.start.n)


def _open_after(history: History, turns: list[TurnSeen], n: int) -> Open | None:
    for turn in reversed(turns):
        if turn.refused:
            continue
        if turn.end is None or turn.end.n > n or turn.overlaps or turn.outcome in ("failed", "timeout"):
            return None
        if any(turn.end.n < event.n < n and event.session == turn.session for event in cancellations(history)):
            return Open(calls=(), n=turn.end.n)
        labels = [str(entry.get("label")) for entry in turn.requests]
        found = (_in_fork(history, label, turn) for label in labels)
        return Open(calls=tuple(call for call in found if call is not None), n=turn.end.n)
    return Open(calls=(), n=0)


def _in_fork(history: History, label: str, turn: TurnSeen) -> CallSeen | None:
    return next((call for call in history.calls_of(label, turn.session) if call.fork == turn.fork), None)

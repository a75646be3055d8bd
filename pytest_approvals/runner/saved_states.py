"""
Where the text of a save says something, and which of these places say what a person is shown.

A state may say the same thing in several places. Which of them a framework shows is found out by trial: one place after
the other is changed, and what the agent lists then is compared with what it listed before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.scenario.model import RewriteStep

StateParts = Sequence[str]
"""What an agent dumped."""

ListPending = Callable[[StateParts], Awaitable[Any]]
"""Gives what an agent lists that has taken up these parts; None where it refuses them."""


@dataclass(frozen=True, slots=True)
class StatePosition:
    """A place in the text of a save: the number of its part, and where it begins there."""

    part: int
    start: int


def find_positions(parts: StateParts, old: str) -> list[StatePosition]:
    """Gives the places that say *old*, from the first to the last."""
    return [StatePosition(number, start) for number, part in enumerate(parts) for start in _find_all(part, old)]


def _find_all(text: str, old: str) -> list[int]:
    starts, start = [], text.find(old)
    while start >= 0:
        starts.append(start)
        start = text.find(old, start + len(old))
    return starts


def replace_text(parts: StateParts, step: RewriteStep, chosen: Collection[StatePosition]) -> tuple[str, ...]:
    """Gives *parts* with the new text in the chosen places."""
    changed = list(parts)
    for place in sorted(chosen, key=lambda one: (one.part, one.start), reverse=True):
        text = changed[place.part]
        changed[place.part] = text[: place.start] + step.new + text[place.start + len(step.old) :]
    return tuple(changed)


async def select_positions(parts: StateParts, step: RewriteStep, listed: ListPending) -> list[StatePosition]:
    """
    Gives the places that *step* means.

    Where no place alone changes what is shown, those count as shown whose change is refused.
    """
    known = find_positions(parts, step.old)
    if step.where == "every" or not known:
        return known
    before = await listed(parts)
    after = [await listed(replace_text(parts, step, [place])) for place in known]
    shown = [place for place, now in zip(known, after, strict=True) if now is not None and now != before]
    shown = shown or [place for place, now in zip(known, after, strict=True) if now is None]
    return shown if step.where == "shown" else [place for place in known if place not in shown]

"""What is seen on the store's side: saves and restores, and what was cut off the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .event import Event, event


@event
@dataclass(slots=True, kw_only=True)
class Saved(Event):
    """The state was saved; *error* where that failed."""

    kind: ClassVar[str] = "store.save"
    name: str
    mode: str
    size: int | None = None
    digest: str | None = None
    error: list[str] | None = None


@event
@dataclass(slots=True, kw_only=True)
class Restored(Event):
    """
    A save was taken up; *pending* is what the agent lists right after, as in `TurnEnd.requests`; *again* is the digest
    of saving at once again.
    """

    kind: ClassVar[str] = "store.restore"
    name: str
    mode: str
    pending: list[dict[str, Any]] = field(default_factory=list)
    again: str | None = None
    error: list[str] | None = None


@event
@dataclass(slots=True, kw_only=True)
class Rewritten(Event):
    """The text of a save says *new* in place of *old*, in so many *places*: everywhere, where it is shown, or not."""

    kind: ClassVar[str] = "store.rewrite"
    name: str
    old: str
    new: str
    where: str
    places: int


@event
@dataclass(slots=True, kw_only=True)
class Trimmed(Event):
    """The framework trimmed its history to the last *keep* messages; *error* where that failed."""

    kind: ClassVar[str] = "store.trim"
    keep: int
    error: list[str] | None = None

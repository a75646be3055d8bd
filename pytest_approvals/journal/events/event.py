"""What every event has, and the way between events and lines of a journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

FORMAT = 1
"""The version of the journal format, in every header."""


@dataclass(slots=True, kw_only=True)
class Event:
    """The root of all events."""

    kind: ClassVar[str] = ""
    names: ClassVar[tuple[str, ...]] = ()
    n: int = 0
    session: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Gives the event as it stands in a journal; fields that hold None or an empty text are left out."""
        written: dict[str, Any] = {"event": self.kind, "n": self.n}
        for name in self.names:
            value = getattr(self, name)
            if value is not None and value != "":
                written[name] = value
        return written


EVENTS: dict[str, type[Event]] = {}
"""The event classes by their names in a journal."""


def event(cls: type[Event]) -> type[Event]:
    """Puts a class among the events, and notes the names of its fields once."""
    cls.names = tuple(part.name for part in fields(cls) if part.name != "n")
    EVENTS[cls.kind] = cls
    return cls


def event_from_dict(written: Mapping[str, Any]) -> Event:
    """
    Makes an event of what `Event.to_dict` gave.

    Errors:
        KeyError: No event has that name.
        TypeError: A field is unknown or missing.
    """
    given = dict(written)
    cls = EVENTS[given.pop("event")]
    return cls(**given)

"""What the topics of the grammar have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .events import Event

Listener = Callable[[Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenGrammar:
    """
    A place where a journal breaks the grammar.

    Attributes:
        text: What is wrong, in one sentence.
        witness: The positions of the events that show it.
    """

    text: str
    witness: tuple[int, ...]


class Topic:
    """
    Some rules of the grammar.

    Attributes:
        cut: The run did not come to its own end, so what it had open may stay open.
    """

    def __init__(self, found: list[BrokenGrammar], *, cut: bool) -> None:
        self.found = found
        self.cut = cut

    def listeners(self) -> Mapping[type[Event], Listener]:
        """Gives, by event class, what is told about its events."""
        raise NotImplementedError

    def end(self) -> None:
        """Is told that the journal ends."""

    def broken(self, text: str, *witness: int) -> None:
        self.found.append(BrokenGrammar(text=text, witness=witness))

    def word(self, event: Event, given: str, valid: Iterable[str]) -> None:
        if given not in valid:
            self.broken(f"{event.kind} says {given!r}; valid: {', '.join(valid)}", event.n)

    def next_number(self, event: Event, what: str, number: int, count: int) -> None:
        if number != count:
            self.broken(f"{what} {number} begins where {what} {count} is next", event.n)

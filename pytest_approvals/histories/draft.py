"""
What a reader fills while it goes through a document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pytest_approvals.errors import HistoryError

from .conversation import Conversation, Entry, Note, Path, Section
from .shapes import word_of

ReadContent = Callable[[dict[str, Any], int, int], Entry | Sequence[Entry]]
"""Reads one content, given the numbers of its message and of itself."""


class Draft:
    """A conversation that is being read."""

    __slots__ = ("_end", "conversation", "entries", "sections")

    def __init__(self, form: str, *, tells_decisions: bool = True) -> None:
        self.entries: list[Entry] = []
        self.sections: list[Section] = []
        self._end = 0
        self.conversation = Conversation(
            format=form, entries=self.entries, sections=self.sections, tells_decisions=tells_decisions
        )

    def section(self, path: Path, messages: Sequence[Any], *, contents: Path = (), beside: bool = False) -> Section:
        """Begins a run of messages, those beside the conversation after all others."""
        section = Section(start=self._end, path=path, contents=contents, beside=beside)
        self.sections.append(section)
        self._end += len(messages)
        if not beside:
            self.conversation.length = self._end
        return section

    def messages(
        self, path: Path, messages: list[Any], read: Callable[[dict[str, Any], int], None], **where: Any
    ) -> None:
        """
        Reads a run of messages.

        Errors:
            HistoryError: A message is no object, or *read* finds a mistake; told as seen from the document.
        """
        section = self.section(path, messages, **where)
        number = section.start
        try:
            for message in messages:
                if type(message) is not dict:
                    raise HistoryError(f"must be an object, and is {word_of(message)}")
                read(message, number)
                number += 1
        except HistoryError as mistake:
            raise within((*path, number - section.start), mistake) from None

    def note(self, path: Path, what: str) -> None:
        """Remembers something odd."""
        self.conversation.notes.append(Note(path, what))


def within(path: Path, mistake: HistoryError) -> HistoryError:
    """Gives a mistake as it is seen from further out."""
    return HistoryError(mistake.what, at=(*path, *mistake.at))

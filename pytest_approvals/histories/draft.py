"""
What a reader fills while it goes through a document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pytest_approvals.errors import HistoryError

from .conversation import Conversation, Entry, Note, Path, Section
from .shapes import word_of

ReadContent = Callable[[dict[str, Any], int, int], Sequence[Entry]]
"""Reads one content, given the numbers of its message and of itself; one content may say several things."""


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

    def section(self, path: Path, count: int, contents: Path = ()) -> Section:
        """Begins a run of messages."""
        section = Section(start=self._end, path=path, contents=contents)
        self.sections.append(section)
        self._end += count
        self.conversation.length = self._end
        return section

    def place_beside(self, path: Path) -> int:
        """Gives a number to something that stands beside the messages, after all of them were begun."""
        number, self._end = self._end, self._end + 1
        self.conversation.beside[number] = path
        return number

    def beside(self, path: Path, items: list[Any], read: Callable[[dict[str, Any], int], None]) -> None:
        """
        Reads a list that stands beside the messages.

        Errors:
            HistoryError: As for `messages`.
        """
        for place, item in enumerate(items):
            at = (*path, place)
            if type(item) is not dict:
                raise HistoryError(f"must be an object, and is {word_of(item)}", at=at)
            try:
                read(item, self.place_beside(at))
            except HistoryError as mistake:
                raise within(at, mistake) from None

    def messages(
        self, path: Path, messages: list[Any], read: Callable[[dict[str, Any], int], None], contents: Path = ()
    ) -> None:
        """
        Reads a run of messages.

        Errors:
            HistoryError: A message is no object, or *read* finds a mistake; told as seen from the document.
        """
        section = self.section(path, len(messages), contents)
        number = section.start
        try:
            for number, message in enumerate(messages, section.start):
                if type(message) is not dict:
                    raise HistoryError(f"must be an object, and is {word_of(message)}")
                read(message, number)
        except HistoryError as mistake:
            raise within((*path, number - section.start), mistake) from None

    def contents(self, names: Path, contents: Any, number: int, read: ReadContent) -> None:
        """
        Reads the contents of a message, which may have none.

        Errors:
            HistoryError: As for `messages`; told as seen from the message.
        """
        if contents is None:
            return
        place = -1
        try:
            if type(contents) is not list:
                raise HistoryError(f"must be a list, and is {word_of(contents)}")
            for content in contents:
                place += 1
                if type(content) is not dict:
                    raise HistoryError(f"must be an object, and is {word_of(content)}")
                self.entries += read(content, number, place)
        except HistoryError as mistake:
            raise within(names if place < 0 else (*names, place), mistake) from None

    def note(self, path: Path, what: str) -> None:
        """Remembers something odd."""
        self.conversation.notes.append(Note(path, what))


def within(path: Path, mistake: HistoryError) -> HistoryError:
    """Gives a mistake as it is seen from further out."""
    return HistoryError(mistake.what, at=(*path, *mistake.at))

"""Parts of an untrusted JSON document, taken out with a look at their shape.

What a reader fills while it goes through a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from pytest_approvals.conversations.histories.conversation import (
    ConversationEntry,
    DocumentNote,
    JsonPath,
    MessageSection,
    StoredConversation,
)
from pytest_approvals.errors import HistoryError

_TYPE_NAMES = {bool: "true or false", str: "a text", dict: "an object", list: "a list", type(None): "null"}


def require_text(item: Mapping[str, Any], name: str) -> str:
    """
    Gives a text that must be there.

    Errors:
        HistoryError: It is missing, or is no text.
    """
    value = item.get(name)
    if type(value) is str:
        return value
    raise _shape_error(item, name, "a text")


def optional_text(item: Mapping[str, Any], name: str) -> str | None:
    """Gives a text, or None where it is missing or null."""
    value = item.get(name)
    if value is None or type(value) is str:
        return value
    raise _shape_error(item, name, "a text")


def optional_flag(item: Mapping[str, Any], name: str) -> bool | None:
    """Gives a truth value, or None where it is missing or null."""
    value = item.get(name)
    if value is None or type(value) is bool:
        return value
    raise _shape_error(item, name, "true or false")


def discriminator_of(item: Any, name: str = "type") -> str | None:
    """Gives the text by which an object tells what it is; None for anything else."""
    value = item.get(name) if type(item) is dict else None
    return value if type(value) is str else None


def require_flag(item: Mapping[str, Any], name: str) -> bool:
    """Gives a truth value that must be there."""
    value = item.get(name)
    if type(value) is bool:
        return value
    raise _shape_error(item, name, "true or false")


def require_object(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Gives an object that must be there."""
    value = item.get(name)
    if type(value) is dict:
        return value
    raise _shape_error(item, name, "an object")


def optional_objects(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Gives a list of objects; an empty one where it is missing or null."""
    value = item.get(name)
    if value is None:
        return []
    if type(value) is not list:
        raise _shape_error(item, name, "a list")
    return require_objects(value, (name,))


def require_objects(value: list[Any], at: tuple[str | int, ...] = ()) -> list[dict[str, Any]]:
    """Gives the list if all its elements are objects."""
    for place, element in enumerate(value):
        if type(element) is not dict:
            raise HistoryError(f"must be an object, and is {describe_type(element)}", at=(*at, place))
    return value


def is_object_list(value: Any) -> TypeGuard[list[Any]]:
    """Says whether it is a list that has elements, the first an object."""
    return type(value) is list and bool(value) and type(value[0]) is dict


def describe_type(value: Any) -> str:
    """Says what kind of JSON value it is."""
    return _TYPE_NAMES.get(type(value), "a number")


def _shape_error(item: Mapping[str, Any], name: str, wanted: str) -> HistoryError:
    if name not in item:
        return HistoryError("is missing", at=(name,))
    return HistoryError(f"must be {wanted}, and is {describe_type(item[name])}", at=(name,))


def iter_messages(document: Any) -> Iterator[dict[str, Any]]:
    """Gives the objects in the list that a document is, or that it holds as its messages; none for anything else."""
    messages = document.get("messages") if type(document) is dict else document
    return (each for each in messages if type(each) is dict) if type(messages) is list else iter(())


def require_messages(document: Any) -> tuple[tuple[str, ...], list[Any]]:
    """
    Gives the list that a document is, or that it holds as its messages, and where that stands.

    Errors:
        HistoryError: It is neither.
    """
    at = ("messages",) if type(document) is dict else ()
    messages = document.get("messages") if type(document) is dict else document
    if type(messages) is list:
        return at, messages
    raise HistoryError(f"must be a list of messages, and is {describe_type(messages)}", at=at)


ContentReader = Callable[[dict[str, Any], int, int], Sequence[ConversationEntry]]
"""Reads one content, given the numbers of its message and of itself; one content may say several things."""


class ConversationBuilder:
    """A conversation that is being read."""

    __slots__ = ("_end", "conversation", "entries", "sections")

    def __init__(self, form: str, *, tells_decisions: bool = True) -> None:
        self.entries: list[ConversationEntry] = []
        self.sections: list[MessageSection] = []
        self._end = 0
        self.conversation = StoredConversation(
            format=form, entries=self.entries, sections=self.sections, tells_decisions=tells_decisions
        )

    def section(self, path: JsonPath, count: int, contents: JsonPath = ()) -> MessageSection:
        """Begins a run of messages."""
        section = MessageSection(start=self._end, path=path, contents=contents)
        self.sections.append(section)
        self._end += count
        self.conversation.length = self._end
        return section

    def add_beside(self, path: JsonPath) -> int:
        """Gives a number to something that stands beside the messages, after all of them were begun."""
        number, self._end = self._end, self._end + 1
        self.conversation.beside[number] = path
        return number

    def beside(self, path: JsonPath, items: list[Any], read: Callable[[dict[str, Any], int], None]) -> None:
        """
        Reads a list that stands beside the messages.

        Errors:
            HistoryError: As for `messages`.
        """
        for place, item in enumerate(items):
            at = (*path, place)
            if type(item) is not dict:
                raise HistoryError(f"must be an object, and is {describe_type(item)}", at=at)
            try:
                read(item, self.add_beside(at))
            except HistoryError as mistake:
                raise prefix_error(at, mistake) from None

    def messages(
        self, path: JsonPath, messages: list[Any], read: Callable[[dict[str, Any], int], None], contents: JsonPath = ()
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
                    raise HistoryError(f"must be an object, and is {describe_type(message)}")
                read(message, number)
        except HistoryError as mistake:
            raise prefix_error((*path, number - section.start), mistake) from None

    def contents(self, names: JsonPath, contents: Any, number: int, read: ContentReader) -> None:
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
                raise HistoryError(f"must be a list, and is {describe_type(contents)}")
            for content in contents:
                place += 1
                if type(content) is not dict:
                    raise HistoryError(f"must be an object, and is {describe_type(content)}")
                self.entries += read(content, number, place)
        except HistoryError as mistake:
            raise prefix_error(names if place < 0 else (*names, place), mistake) from None

    def note(self, path: JsonPath, what: str) -> None:
        """Remembers something odd."""
        self.conversation.notes.append(DocumentNote(path, what))


def prefix_error(path: JsonPath, mistake: HistoryError) -> HistoryError:
    """Gives a mistake as it is seen from further out."""
    return HistoryError(mistake.what, at=(*path, *mistake.at))

"""Toolkit of readers: checked access to JSON, and the conversation that they build."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from pytest_approvals.conversations.histories.conversation import (
    ConversationEntry,
    DocumentNote,
    JsonPath,
    MessageSection,
    ResultOutcome,
    StoredConversation,
)
from pytest_approvals.errors import HistoryError
from pytest_approvals.protocols.text import json_type_name

# Types are compared with `is`: it is faster than `isinstance`, which would also take a boolean for a number.


def require_text(item: Mapping[str, Any], name: str) -> str:
    """Return a required string.

    Raises:
        HistoryError: It is missing, or is not a string.
    """
    value = item.get(name)
    if type(value) is str:
        return value
    raise _shape_error(item, name, "a string")


def optional_text(item: Mapping[str, Any], name: str) -> str | None:
    """Return a string, or None if it is missing or null."""
    value = item.get(name)
    if value is None or type(value) is str:
        return value
    raise _shape_error(item, name, "a string")


def optional_flag(item: Mapping[str, Any], name: str) -> bool | None:
    """Return a boolean, or None if it is missing or null."""
    value = item.get(name)
    if value is None or type(value) is bool:
        return value
    raise _shape_error(item, name, "a boolean")


def discriminator_of(item: Any, name: str = "type") -> str | None:
    """Return the string that names an object's type; None for anything else."""
    value = item.get(name) if type(item) is dict else None
    return value if type(value) is str else None


def require_flag(item: Mapping[str, Any], name: str) -> bool:
    """Return a required boolean."""
    value = item.get(name)
    if type(value) is bool:
        return value
    raise _shape_error(item, name, "a boolean")


def require_object(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a required object."""
    value = item.get(name)
    if type(value) is dict:
        return value
    raise _shape_error(item, name, "an object")


def optional_list(item: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list; an empty one if it is missing or null."""
    value = item.get(name)
    if value is None:
        return []
    if type(value) is not list:
        raise _shape_error(item, name, "an array")
    return value


def optional_objects(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of objects; an empty one if it is missing or null."""
    return require_objects(optional_list(item, name), (name,))


def require_objects(value: list[Any], at: tuple[str | int, ...] = ()) -> list[dict[str, Any]]:
    """Return the list if all its elements are objects.

    Raises:
        HistoryError: One is not.
    """
    for index, element in enumerate(value):
        if type(element) is not dict:
            raise HistoryError(expected_error("an object", element), at=(*at, index))
    return value


def is_object_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether *value* is a non-empty list whose first element is an object."""
    return type(value) is list and bool(value) and type(value[0]) is dict


def expected_error(expected: str, value: Any) -> str:
    """Return the message for a value of another type."""
    return f"expected {expected}, got {json_type_name(value)}"


def _shape_error(item: Mapping[str, Any], name: str, expected: str) -> HistoryError:
    if name not in item:
        return HistoryError(f"missing: expected {expected}", at=(name,))
    return HistoryError(expected_error(expected, item[name]), at=(name,))


_INTERRUPTED = re.compile(
    r"The tool call was interrupted before a result was produced\.\s*$"  # Pydantic AI
    r"|Tool was interrupted\.\s*$"  # Strands
    r"|Invocation was aborted by client\.\s*$"  # Google ADK
    r"|Error: Missing tool result \(tool execution may have been interrupted"  # Google ADK, for models of LiteLLM
    r"|Error: Tool call was cancelled\.\s*$"  # workflows of Agent Framework
    r"|Tool call \S+ with id \S+ was cancelled - another message came in"  # Deep Agents, of LangChain
)
"""What frameworks tell a model of a call that was never answered."""

_REFUSED = re.compile(r"(?:Error: )?Tool call invocation (?:was )?rejected")
_TOLD_OF_REJECTION = re.compile(
    r"Tool execution was not approved\.\s*$"  # OpenAI Agents
    r"|The tool call was denied\.\s*$"  # Pydantic AI
    r"|User rejected the tool call for `"  # LangChain
    rf"|{_REFUSED.pattern}"  # Agent Framework
)
"""What frameworks tell a model of a call that a person rejected, unless they are given other words."""

_MAY_BE_REFUSED = re.compile(r"reject|refus|den(?:y|ied)|declin|not (?:approved|allowed|permitted)", re.IGNORECASE)


def read_outcome(value: Any) -> ResultOutcome:
    """Return the outcome of a result of the frameworks of Microsoft, which a text tells.

    >>> [read_outcome(text) for text in ("Tool call invocation rejected. no", "paid 5", "That is not allowed.")]
    ['denied', 'returned', 'unknown']
    """
    text = value if type(value) is str else ""
    if _REFUSED.match(text):
        return "denied"
    if is_interruption(text):
        return "interrupted"
    return "unknown" if may_be_refusal(value) else "returned"


def is_interruption(value: Any) -> bool:
    """Return whether a result is what a framework tells in place of one that does not exist.

    >>> [is_interruption(value) for value in ("Tool was interrupted.", {"error": "Tool was interrupted."}, "paid 5")]
    [True, True, False]
    """
    if type(value) is dict and len(value) == 1:
        value = value.get("error")
    return type(value) is str and _INTERRUPTED.match(value) is not None


def unmarked_outcome(value: Any) -> ResultOutcome:
    """Return the outcome of a result in a format that does not mark outcomes.

    >>> [unmarked_outcome(text) for text in ("Tool execution was not approved.", "paid 5")]
    ['denied', 'unknown']
    """
    if type(value) is str and _TOLD_OF_REJECTION.match(value):
        return "denied"
    return "interrupted" if is_interruption(value) else "unknown"


def may_be_refusal(value: Any) -> bool:
    """Return whether a result may be what an application tells of a refused call in its own words.

    >>> [may_be_refusal(value) for value in ("Not permitted by Ann.", "paid 5", 5)]
    [True, False, False]
    """
    return type(value) is str and _MAY_BE_REFUSED.search(value) is not None


def iter_messages(document: Any) -> Iterator[dict[str, Any]]:
    """Iterate over the objects in a list of messages, or in `messages` of a document."""
    messages = document.get("messages") if type(document) is dict else document
    return (message for message in messages if type(message) is dict) if type(messages) is list else iter(())


def require_messages(document: Any) -> tuple[tuple[str, ...], list[Any]]:
    """Return a list of messages, or `messages` of a document, with its path.

    Raises:
        HistoryError: The document is neither.
    """
    at = ("messages",) if type(document) is dict else ()
    messages = document.get("messages") if type(document) is dict else document
    if type(messages) is list:
        return at, messages
    raise HistoryError(expected_error("an array of messages", messages), at=at)


ContentReader = Callable[[dict[str, Any], int, int], ConversationEntry]
"""Return the entry of one content, whose message and place in it are given by number."""

GroupReader = Callable[[dict[str, Any], int, int], Sequence[ConversationEntry]]
"""The same for a content that may be several entries, or none."""


class ConversationBuilder:
    """Builder of the conversation that a reader reads."""

    __slots__ = ("_end", "conversation", "entries", "sections")

    def __init__(self, format_name: str, *, shows_decisions: bool = True, has_whole_responses: bool = False) -> None:
        self.entries: list[ConversationEntry] = []
        self.sections: list[MessageSection] = []
        self._end = 0
        self.conversation = StoredConversation(
            format=format_name,
            entries=self.entries,
            sections=self.sections,
            shows_decisions=shows_decisions,
            has_whole_responses=has_whole_responses,
        )

    def begin_section(self, path: JsonPath, count: int, contents: JsonPath = ()) -> MessageSection:
        """Begin a list of messages."""
        section = MessageSection(start=self._end, path=path, contents=contents)
        self.sections.append(section)
        self._end += count
        self.conversation.length = self._end
        return section

    def add_state_path(self, path: JsonPath) -> int:
        """Return a number for something outside of messages, after all lists of messages were begun."""
        number, self._end = self._end, self._end + 1
        self.conversation.state_paths[number] = path
        return number

    def read_state_list(self, path: JsonPath, items: list[Any], read: Callable[[dict[str, Any], int], None]) -> None:
        """Read a list outside of messages.

        Raises:
            HistoryError: As for `read_messages`.
        """
        for index, item in enumerate(items):
            at = (*path, index)
            if type(item) is not dict:
                raise HistoryError(expected_error("an object", item), at=at)
            try:
                read(item, self.add_state_path(at))
            except HistoryError as error:
                raise prefix_error(at, error) from None

    def read_messages(
        self, path: JsonPath, messages: list[Any], read: Callable[[dict[str, Any], int], None], contents: JsonPath = ()
    ) -> None:
        """Read a list of messages.

        Raises:
            HistoryError: A message is not an object, or *read* raises one; the path is relative to the document.
        """
        section = self.begin_section(path, len(messages), contents)
        number = section.start
        try:
            for number, message in enumerate(messages, section.start):
                if type(message) is not dict:
                    raise HistoryError(expected_error("an object", message))
                read(message, number)
        except HistoryError as error:
            raise prefix_error((*path, number - section.start), error) from None

    def read_contents(self, names: JsonPath, contents: Any, number: int, read: ContentReader) -> None:
        """Read the contents of a message, which may have none.

        Raises:
            HistoryError: As for `read_messages`; the path is relative to the message.
        """
        if contents is None:
            return
        add = self.entries.append
        # -1 in an error's path stands for the list of contents itself.
        place = -1
        try:
            if type(contents) is not list:
                raise HistoryError(expected_error("an array", contents))
            for content in contents:
                place += 1
                if type(content) is not dict:
                    raise HistoryError(expected_error("an object", content))
                add(read(content, number, place))
        except HistoryError as error:
            raise prefix_error(names if place < 0 else (*names, place), error) from None

    def read_groups(self, names: JsonPath, contents: Any, number: int, read: GroupReader) -> None:
        """Read contents of which each may be several entries; see `read_contents`."""
        with errors_within(names):
            if contents is not None and type(contents) is not list:
                raise HistoryError(expected_error("an array", contents))
            for place, content in enumerate(require_objects(contents or [])):
                with errors_within((place,)):
                    self.entries += read(content, number, place)

    def add_note(self, path: JsonPath, text: str, rule: str = "") -> None:
        """Add a note about an irregularity.

        Args:
            path: Its place in the document.
            text: The irregularity, in a sentence.
            rule: The rule of the linter that it breaks; empty if it is not a mistake.
        """
        self.conversation.notes.append(DocumentNote(path, text, rule))


def prefix_error(path: JsonPath, error: HistoryError) -> HistoryError:
    """Return an error with a path that begins further out."""
    return HistoryError(error.what, at=(*path, *error.at))


@contextmanager
def errors_within(path: JsonPath) -> Iterator[None]:
    """Prefix the paths of errors that are raised inside with *path*."""
    try:
        yield
    except HistoryError as error:
        raise prefix_error(path, error) from None


@dataclass(frozen=True, slots=True)
class FormatReader:
    """Reader of one format.

    Attributes:
        matches: Return whether a document is of the format; None if it only may be.
        read: Read one conversation; raises `HistoryError` if something has the wrong shape.
        is_spread: A conversation may be spread over documents and files, which are collected first.
        split: Return the paths of the conversations in a document that holds several; none if it is one.
        read_each: Read the conversations of a document whose parts belong to several; None if it is always one.
        is_line_of: Return whether a line of a file is of this format, whose document are all lines; None if a line is a
            document, or a message.
        nothing_read: What is told of a document in which `read_each` finds no conversation.
    """

    matches: Callable[[Any], bool | None]
    read: Callable[[Any], StoredConversation]
    is_spread: bool = False
    split: Callable[[Any], list[JsonPath]] = field(default=lambda document: [])
    read_each: Callable[[Any], Sequence[StoredConversation]] | None = None
    is_line_of: Callable[[Any], bool] | None = None
    nothing_read: str = ""

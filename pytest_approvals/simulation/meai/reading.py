"""
Messages from JSON, of either generation, with notes about what is odd. No two contents that are read share anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_approvals.errors import ContentError, nearest

from .contents import Content, Message, Opaque, ToolApprovalRequest, ToolApprovalResponse, Unknown
from .notations import MCP_CALL, OPAQUE, PLAIN_FUNCTION, REQUIRED, Field, Spec, known_types, spec_to_read

_SHAPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "text": (str, "a text"),
    "flag": (bool, "true or false"),
    "arguments": (Mapping, "an object"),
    "contents": (list, "a list"),
    "call": (Mapping, "an object"),
    "function": (Mapping, "an object"),
    "server": (Mapping, "an object"),
    "value": (object, "anything"),
}
_WORDS = {bool: "true or false", str: "a text", dict: "an object", list: "a list", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a document that is no mistake, and that somebody may want to know."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(slots=True)
class Reader:
    """
    Reads messages, and keeps notes.

    Attributes:
        notes: What was odd: a `$type` that is unknown, missing or not first; a decision whose call nobody tells.
    """

    notes: list[Note] = field(default_factory=list)

    def messages(self, given: Any, where: str = "messages") -> list[Message]:
        """
        Gives the messages of a JSON list. A decision of the earlier generation that does not say its call gets that of
        the request before it.

        Errors:
            ContentError: Something has the wrong shape.
        """
        items = expected(given, list, where)
        return self._joined([self.message(item, f"{where}[{place}]") for place, item in enumerate(items)], where)

    def message(self, given: Any, where: str) -> Message:
        """Gives one message."""
        item = expected(given, Mapping, where)
        optional = {
            attribute: _optional_text(item, name, where)
            for name, attribute in (
                ("messageId", "message_id"),
                ("authorName", "author_name"),
                ("createdAt", "created_at"),
            )
        }
        role = _optional_text(item, "role", where)
        contents = item.get("contents")
        return Message(
            role="user" if role is None else role,
            contents=self.contents([] if contents is None else contents, f"{where}.contents"),
            source=item,
            **optional,
        )

    def contents(self, given: Any, where: str) -> tuple[Content, ...]:
        """Gives the contents of a JSON list."""
        items = expected(given, list, where)
        return tuple(self.content(item, f"{where}[{place}]") for place, item in enumerate(items))

    def content(self, given: Any, where: str) -> Content:
        """Gives one content, whose type its `$type` says."""
        item = expected(given, Mapping, where)
        if "$type" not in item:
            if item:
                self._note(where, "has no $type; kept as it is, and nothing in it is understood")
            return Opaque(source=item)
        kind = expected(item["$type"], str, f"{where}.$type")
        if next(iter(item)) != "$type":
            self._note(where, "$type is not the first name, which .NET refuses by default")
        known = spec_to_read(kind, frozenset(item))
        if known is None:
            return self._untyped(kind, item, where)
        spec, notation = known
        return replace(self._filled(spec, item, where), notation=notation)

    def _untyped(self, kind: str, item: Mapping[str, Any], where: str) -> Content:
        if kind in OPAQUE:
            return Opaque(kind=kind, source=item)
        self._note(where, f"$type {kind!r} is not known, and kept as it is{nearest(kind, known_types())}")
        return Unknown(kind=kind, source=item)

    def _filled(self, spec: Spec, item: Mapping[str, Any], where: str) -> Content:
        values = {each.attribute: self._value(each, item, where) for each in spec.fields}
        try:
            return spec.content(source=item, **values)
        except ContentError as error:
            raise ContentError(f"{where}.{error.where}", error.what) from None

    def _value(self, each: Field, item: Mapping[str, Any], where: str) -> Any:
        place = f"{where}.{each.name}"
        value = item.get(each.name)
        if value is None:
            if each.default is REQUIRED:
                raise ContentError(place, "is missing" if each.name not in item else "is null, and must not be")
            return each.default
        shape, words = _SHAPES[each.kind]
        if not isinstance(value, shape):
            raise _wrong(place, words, value)
        return self._read_value(each, value, place)

    def _read_value(self, each: Field, value: Any, place: str) -> Any:
        match each.kind:
            case "arguments":
                return deepcopy(value)
            case "contents":
                return self.contents(value, place)
            case "call":
                return self.content(value, place)
            case "function":
                return self._filled(PLAIN_FUNCTION, value, place)
            case "server":
                return replace(self._filled(MCP_CALL, value, place), notation="earlier")
            case _:
                return value

    def _joined(self, messages: list[Message], where: str) -> list[Message]:
        asked: dict[str, Content] = {}
        for place, message in enumerate(messages):
            contents: list[Content] = []
            for index, content in enumerate(message.contents):
                if isinstance(content, ToolApprovalRequest):
                    asked[content.request_id] = content.tool_call
                contents.append(self._with_call(content, asked, f"{where}[{place}].contents[{index}]"))
            if any(one is not other for one, other in zip(contents, message.contents, strict=True)):
                messages[place] = replace(message, contents=tuple(contents))
        return messages

    def _with_call(self, content: Content, asked: Mapping[str, Content], where: str) -> Content:
        if not isinstance(content, ToolApprovalResponse) or content.tool_call is not None:
            return content
        if content.request_id not in asked:
            self._note(
                where, f"no request before it has the id {content.request_id!r}, so nobody tells which call it is"
            )
            return content
        return replace(content, tool_call=asked[content.request_id])

    def _note(self, where: str, what: str) -> None:
        self.notes.append(Note(where, what))


def expected(value: Any, shape: type, where: str) -> Any:
    """Gives the value if it has the shape."""
    if not isinstance(value, shape):
        words = {list: "a list", Mapping: "an object", str: "a text", bool: "true or false"}[shape]
        raise _wrong(where, words, value)
    return value


def read_messages(given: Sequence[Any]) -> list[Message]:
    """Gives the messages of a JSON list, without the notes."""
    return Reader().messages(given)


def _optional_text(item: Mapping[str, Any], name: str, where: str) -> str | None:
    value = item.get(name)
    return None if value is None else str(expected(value, str, f"{where}.{name}"))


def _wrong(where: str, words: str, value: Any) -> ContentError:
    return ContentError(where, f"must be {words}, and is {_WORDS.get(type(value), 'a number')}")

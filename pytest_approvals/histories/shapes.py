"""
Parts of an untrusted JSON document, taken out with a look at their shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from pytest_approvals.errors import HistoryError

_WORDS = {bool: "true or false", str: "a text", dict: "an object", list: "a list", type(None): "null"}


def text_in(item: Mapping[str, Any], name: str) -> str:
    """
    Gives a text that must be there.

    Errors:
        HistoryError: It is missing, or is no text.
    """
    value = item.get(name)
    if type(value) is str:
        return value
    raise _wrong(item, name, "a text")


def optional_text(item: Mapping[str, Any], name: str) -> str | None:
    """Gives a text, or None where it is missing or null."""
    value = item.get(name)
    if value is None or type(value) is str:
        return value
    raise _wrong(item, name, "a text")


def optional_flag(item: Mapping[str, Any], name: str) -> bool | None:
    """Gives a truth value, or None where it is missing or null."""
    value = item.get(name)
    if value is None or type(value) is bool:
        return value
    raise _wrong(item, name, "true or false")


def kind_in(item: Any, name: str = "type") -> str | None:
    """Gives the text by which an object tells what it is; None for anything else."""
    value = item.get(name) if type(item) is dict else None
    return value if type(value) is str else None


def flag_in(item: Mapping[str, Any], name: str) -> bool:
    """Gives a truth value that must be there."""
    value = item.get(name)
    if type(value) is bool:
        return value
    raise _wrong(item, name, "true or false")


def object_in(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Gives an object that must be there."""
    value = item.get(name)
    if type(value) is dict:
        return value
    raise _wrong(item, name, "an object")


def objects_in(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Gives a list of objects; an empty one where it is missing or null."""
    value = item.get(name)
    if value is None:
        return []
    if type(value) is not list:
        raise _wrong(item, name, "a list")
    return objects(value, (name,))


def objects(value: list[Any], at: tuple[str | int, ...] = ()) -> list[dict[str, Any]]:
    """Gives the list if all its elements are objects."""
    for place, element in enumerate(value):
        if type(element) is not dict:
            raise HistoryError(f"must be an object, and is {word_of(element)}", at=(*at, place))
    return value


def is_objects(value: Any) -> TypeGuard[list[Any]]:
    """Says whether it is a list that has elements, the first an object."""
    return type(value) is list and bool(value) and type(value[0]) is dict


def word_of(value: Any) -> str:
    """Says what kind of JSON value it is."""
    return _WORDS.get(type(value), "a number")


def _wrong(item: Mapping[str, Any], name: str, wanted: str) -> HistoryError:
    if name not in item:
        return HistoryError("is missing", at=(name,))
    return HistoryError(f"must be {wanted}, and is {word_of(item[name])}", at=(name,))


def messages_in(document: Any) -> Iterator[dict[str, Any]]:
    """Gives the objects in the list that a document is, or that it holds as its messages; none for anything else."""
    messages = document.get("messages") if type(document) is dict else document
    return (each for each in messages if type(each) is dict) if type(messages) is list else iter(())


def listed_messages(document: Any) -> tuple[tuple[str, ...], list[Any]]:
    """
    Gives the list that a document is, or that it holds as its messages, and where that stands.

    Errors:
        HistoryError: It is neither.
    """
    at = ("messages",) if type(document) is dict else ()
    messages = document.get("messages") if type(document) is dict else document
    if type(messages) is list:
        return at, messages
    raise HistoryError(f"must be a list of messages, and is {word_of(messages)}", at=at)

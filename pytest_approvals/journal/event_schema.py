"""Schema of events: what their fields must hold when a journal is read from a file.

It comes from the annotations of the event classes, so that types are written once. The dicts inside some fields have
no class of their own, because in the hot path they would cost too much; their keys are listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from pytest_approvals.errors import suggest_name
from pytest_approvals.journal.events import EVENTS, Event

FieldCheck = Callable[[Any], str | None]
"""A function that returns what is wrong with a value, or None."""

_TYPE_NAMES = {str: "text", int: "a number", bool: "true or false", dict: "an object", list: "a list", NoneType: "null"}

_REQUEST_KEYS = {"q", "id", "call_id", "tool", "arguments", "kind", "server", "agent", "label"}
_NESTED_KEYS: dict[tuple[str, str], tuple[set[str], set[str]]] = {
    ("turn.end", "requests"): (_REQUEST_KEYS, {"q", "id", "tool"}),
    ("store.restore", "pending"): (_REQUEST_KEYS, {"q", "id", "tool"}),
    ("run.end", "pending"): (_REQUEST_KEYS, {"q", "id", "tool"}),
    ("model.request", "items"): (
        {"kind", "id", "tool", "arguments", "text", "approved", "message"},
        {"kind"},
    ),
    ("model.answer", "calls"): ({"label", "id", "tool", "arguments", "kind", "server"}, {"tool"}),
    ("model.answer", "hosted"): ({"label", "output", "error"}, set()),
    ("model.refusal", "broken"): ({"rule", "ids", "text"}, {"rule"}),
}
"""By event and field: the keys that its dicts may have, and those that they must have."""


def find_field_error(cls: type[Event], values: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the fields of an event of class *cls*, or None.

    >>> find_field_error(EVENTS["tool.end"], {"x": "one"})
    "tool.end: field 'x' must be a number, not text"
    """
    form = (cls, *values, *map(type, values.values()))
    # Type hints are slow to look at; events come in few forms.
    if form not in _valid_forms:
        if error := _find_type_error(cls, values):
            return error
        _valid_forms.add(form)
    for name, wrong in _element_checks(cls.kind):
        if (value := values.get(name)) and (error := wrong(value)):
            return f"{cls.kind}: field {name!r}: {error}"
    return None


_valid_forms: set[tuple[Any, ...]] = set()
"""The combinations of class, field names and types that were found right: there are few, and looking up is fast."""


def _find_type_error(cls: type[Event], values: Mapping[str, Any]) -> str | None:
    hints = get_type_hints(cls)
    known = (*cls.names, "n")
    for name, value in values.items():
        if name not in known:
            return f"{cls.kind}: unknown field {name!r}{suggest_name(name, known)}"
        types = _runtime_types(hints[name])
        if types and type(value) not in types:
            return f"{cls.kind}: field {name!r} must be {describe_types(types)}, not {_describe_type(type(value))}"
    return None


def required_fields(cls: type[Event]) -> tuple[str, ...]:
    """Return the names of the fields without a default."""
    no_default = (MISSING, MISSING)
    return tuple(part.name for part in fields(cls) if (part.default, part.default_factory) == no_default)


def describe_types(types: Iterable[type]) -> str:
    """Return JSON types as words: `text or null`."""
    return " or ".join(_describe_type(each) for each in types)


def _describe_type(cls: type) -> str:
    return _TYPE_NAMES.get(cls, "a fraction" if cls is float else cls.__name__)


def _runtime_types(hint: Any) -> tuple[type, ...]:
    if hint is Any:
        return ()
    if isinstance(hint, UnionType):
        return tuple(get_origin(part) or part for part in get_args(hint))
    return (get_origin(hint) or hint,)


@cache
def _element_checks(kind: str) -> tuple[tuple[str, FieldCheck], ...]:
    """Return, by field, how to check the elements of lists."""
    cls = EVENTS[kind]
    checks = (
        (name, _element_check(kind, name, hint)) for name, hint in get_type_hints(cls).items() if name in cls.names
    )
    return tuple((name, wrong) for name, wrong in checks if wrong is not None)


def _element_check(kind: str, name: str, hint: Any) -> FieldCheck | None:
    if (kind, name) in _NESTED_KEYS:
        return _check_dicts(*_NESTED_KEYS[kind, name])
    for part in get_args(hint) if isinstance(hint, UnionType) else (hint,):
        if get_origin(part) is list:
            return _check_elements(get_args(part)[0])
    return None


def _check_elements(of: type) -> FieldCheck:
    def wrong(values: list[Any]) -> str | None:
        for value in values:
            if type(value) is not of:
                return f"each element must be {_describe_type(of)}, not {_describe_type(type(value))}"
        return None

    return wrong


def _check_dicts(known: set[str], needed: set[str]) -> FieldCheck:
    good = set[tuple[str, ...]]()

    def wrong(values: list[Any]) -> str | None:
        for value in values:
            if type(value) is not dict:
                return f"each element must be an object, not {_describe_type(type(value))}"
            # Dicts of one field have few sets of keys; each is compared once.
            if (keys := tuple(value)) not in good:
                if unknown := value.keys() - known:
                    return f"unknown key {min(unknown)!r}{suggest_name(min(unknown), known)}"
                if missing := needed - value.keys():
                    return f"missing key {min(missing)!r}"
                good.add(keys)
        return None

    return wrong

"""
What the fields of events hold, as the reader of journals checks it.

Shapes come from the annotations of the event classes, so that they are written once. The dicts inside some fields have
no class of their own, in the hot path they would cost too much; their keys are listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from pytest_approvals.errors import nearest

from .events import EVENTS, Event

Wrong = Callable[[Any], str | None]
"""Says what is wrong with a value, or nothing."""

_WORDS = {str: "text", int: "a number", bool: "true or false", dict: "an object", list: "a list", NoneType: "null"}

_REQUEST = {"q", "id", "call_id", "tool", "arguments", "kind", "server", "agent", "label"}
_NESTED: dict[tuple[str, str], tuple[set[str], set[str]]] = {
    ("turn.end", "requests"): (_REQUEST, {"q", "id", "tool"}),
    ("store.restore", "pending"): (_REQUEST, {"q", "id", "tool"}),
    ("run.end", "pending"): (_REQUEST, {"q", "id", "tool"}),
    ("model.request", "items"): (
        {"kind", "id", "tool", "arguments", "text", "approved", "message"},
        {"kind"},
    ),
    ("model.answer", "calls"): ({"label", "id", "tool", "arguments", "kind", "server"}, {"tool"}),
    ("model.answer", "hosted"): ({"label", "output", "error"}, set()),
    ("model.refusal", "broken"): ({"rule", "ids", "text"}, {"rule"}),
}
"""By event and field: the keys that its dicts may have, and those that they must have."""


def wrong_field(cls: type[Event], given: Mapping[str, Any]) -> str | None:
    """
    Says what is wrong with the fields of an event of class *cls*, or nothing.

    >>> wrong_field(EVENTS["tool.end"], {"x": "one"})
    "tool.end: field 'x' must be a number, not text"
    """
    form = (cls, *given, *map(type, given.values()))
    if form not in _good_forms:
        if what := _wrong_type(cls, given):
            return what
        _good_forms.add(form)
    for name, wrong in _insides(cls.kind):
        if (value := given.get(name)) and (what := wrong(value)):
            return f"{cls.kind}: field {name!r}: {what}"
    return None


_good_forms: set[tuple[Any, ...]] = set()
"""The combinations of class, field names and types that were found right: there are few, and looking up is fast."""


def _wrong_type(cls: type[Event], given: Mapping[str, Any]) -> str | None:
    hints = get_type_hints(cls)
    known = (*cls.names, "n")
    for name, value in given.items():
        if name not in known:
            return f"{cls.kind}: no field is called {name!r}{nearest(name, known)}"
        types = _types(hints[name])
        if types and type(value) not in types:
            return f"{cls.kind}: field {name!r} must be {words(types)}, not {_word(type(value))}"
    return None


def required(cls: type[Event]) -> tuple[str, ...]:
    """Names the fields that have no default."""
    made_up = (MISSING, MISSING)
    return tuple(part.name for part in fields(cls) if (part.default, part.default_factory) == made_up)


def words(types: Iterable[type]) -> str:
    """Names JSON types in a sentence: `text or null`."""
    return " or ".join(_word(each) for each in types)


def _word(cls: type) -> str:
    return _WORDS.get(cls, "a fraction" if cls is float else cls.__name__)


def _types(hint: Any) -> tuple[type, ...]:
    if hint is Any:
        return ()
    if isinstance(hint, UnionType):
        return tuple(get_origin(part) or part for part in get_args(hint))
    return (get_origin(hint) or hint,)


@cache
def _insides(kind: str) -> tuple[tuple[str, Wrong], ...]:
    """Gives, by field, what to look at inside of lists."""
    cls = EVENTS[kind]
    found = ((name, _inside(kind, name, hint)) for name, hint in get_type_hints(cls).items() if name in cls.names)
    return tuple((name, wrong) for name, wrong in found if wrong is not None)


def _inside(kind: str, name: str, hint: Any) -> Wrong | None:
    if (kind, name) in _NESTED:
        return _dicts(*_NESTED[kind, name])
    for part in get_args(hint) if isinstance(hint, UnionType) else (hint,):
        if get_origin(part) is list:
            return _elements(get_args(part)[0])
    return None


def _elements(of: type) -> Wrong:
    def wrong(values: list[Any]) -> str | None:
        for value in values:
            if type(value) is not of:
                return f"each element must be {_word(of)}, not {_word(type(value))}"
        return None

    return wrong


def _dicts(known: set[str], needed: set[str]) -> Wrong:
    good = set[tuple[str, ...]]()

    def wrong(values: list[Any]) -> str | None:
        for value in values:
            if type(value) is not dict:
                return f"each element must be an object, not {_word(type(value))}"
            if (keys := tuple(value)) not in good:
                if unknown := value.keys() - known:
                    return f"no key is called {min(unknown)!r}{nearest(min(unknown), known)}"
                if missing := needed - value.keys():
                    return f"an element lacks {min(missing)!r}"
                good.add(keys)
        return None

    return wrong

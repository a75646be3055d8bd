"""Schema of events: what their fields must hold when a journal is read from a file.

It comes from type hints: of the event classes, so that types are written once, of the contract's data types, and of the
classes here. They describe the dicts inside some fields, which have no class of their own, because in the hot path it
would cost too much.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Required, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

from pytest_approvals.agent_side.contract.types import Condition, Item, Parameter
from pytest_approvals.errors import suggest_name
from pytest_approvals.errors.printable import quote
from pytest_approvals.journal.events import Event


class RequestEntry(TypedDict, total=False):
    """An approval request as it surfaced."""

    q: Required[str]
    id: Required[str | None]
    call_id: str | None
    tool: Required[str]
    arguments: Any
    kind: str | None
    server: str | None
    agent: str | None
    label: str | None
    session: str


class CallEntry(TypedDict, total=False):
    """A call of the model."""

    label: str | None
    id: str | None
    tool: Required[str]
    arguments: Any
    kind: str | None
    server: str | None


class ThoughtEntry(TypedDict, total=False):
    """A piece of the model's reasoning."""

    id: Required[str]
    text: str | None
    signature: str | None
    before: str | None


class HostedEntry(TypedDict, total=False):
    """The provider's report of a hosted call."""

    label: str | None
    output: str | None
    error: str | None


class ViolationEntry(TypedDict, total=False):
    """A rule that an input of the model breaks."""

    rule: Required[str]
    ids: list[str | None]
    text: str | None


class ShownEntry(TypedDict, total=False):
    """What the request that was handed over shows."""

    tool: str | None
    arguments: Any


class ToolEntry(TypedDict, total=False):
    """A tool as the header declares it."""

    approval: Literal["always", "never"] | Condition
    parameters: dict[str, Parameter]
    kind: str | None
    server: str | None
    agent: str | None
    runs: str | None
    hands_over_to: str | None
    called: str | None


class ExpectEntry(TypedDict, total=False):
    """What the scenario expects of the run."""

    runs: list[str] | None
    output: str | None


class VariantEntry(TypedDict, total=False):
    """The variant that was played."""

    serialize: str
    resume: Literal["same", "fresh", "cold"]
    history: Literal["whole", "append"]
    stream: bool
    source: str
    oracle: str
    chunking: str
    protocol: str
    saved_by: str


_FIELDS: dict[tuple[str, str], Any] = {
    ("header", "variant"): VariantEntry,
    ("header", "tools"): dict[str, ToolEntry],
    ("header", "answer"): dict[str, Parameter] | None,
    ("header", "expect"): ExpectEntry,
    ("agent.start", "parameters"): dict[str, dict[str, Parameter]] | None,
    ("agent.start", "approvals"): dict[str, Literal["always", "never"]] | None,
    ("turn.end", "requests"): list[RequestEntry],
    ("store.restore", "pending"): list[RequestEntry],
    ("run.end", "pending"): list[RequestEntry],
    ("caller.decide", "shows"): ShownEntry | None,
    ("model.request", "items"): list[Item],
    ("model.answer", "thoughts"): list[ThoughtEntry] | None,
    ("model.answer", "calls"): list[CallEntry],
    ("model.answer", "hosted"): list[HostedEntry],
    ("model.refusal", "broken"): list[ViolationEntry],
}
"""By event and field: what its dicts hold, in place of the hint of the event class."""

_MAX_FORMS = 1_000
"""How many forms of a record are remembered: those of real journals are few, those of a hostile file are not."""

_TYPE_NAMES = {str: "text", int: "a number", bool: "true or false", dict: "an object", list: "a list", NoneType: "null"}


def find_field_error(cls: type[Event], values: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the fields of an event of class *cls*, or None.

    >>> from pytest_approvals.journal.events import ToolEnd
    >>> find_field_error(ToolEnd, {"x": "one"})
    "tool.end: field 'x' must be a number, not text"
    """
    check = _EVENT_CHECKS.get(cls)
    if check is None:
        check = _EVENT_CHECKS[cls] = _build_event_check(cls)
    error = check.find_error(values)
    return f"{cls.kind}: {error}" if error else None


def required_fields(cls: type[Event]) -> tuple[str, ...]:
    """Return the names of the fields without a default."""
    return tuple(part.name for part in fields(cls) if _has_no_default(part))


def _has_no_default(part: Any) -> bool:
    return (part.default, part.default_factory) == (MISSING, MISSING)


def _describe_type(cls: type) -> str:
    return _TYPE_NAMES.get(cls, "a fraction" if cls is float else cls.__name__)


class _Check(ABC):
    """Check of a value.

    Attributes:
        types: The types that the value may have; empty if it may be anything.
        is_deep: The type alone does not tell whether the value is right.
    """

    types: tuple[type, ...] = ()
    is_deep = False

    @abstractmethod
    def find_error(self, value: Any) -> str | None:
        """Return what is wrong with a value, or None."""

    def find_type_error(self, value: Any) -> str | None:
        """Return that a value has a wrong type, or None."""
        if not self.types or type(value) in self.types:
            return None
        return f"must be {' or '.join(map(_describe_type, self.types))}, not {_describe_type(type(value))}"


class _TypeCheck(_Check):
    def __init__(self, *types: type) -> None:
        # JSON of other languages has no decimal point in whole numbers.
        self.types = (*types, int) if float in types else types

    def find_error(self, value: Any) -> str | None:
        return self.find_type_error(value)


class _WordCheck(_Check):
    """Check of a text that must be one of some words."""

    types = (str,)
    is_deep = True

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)

    def find_error(self, value: Any) -> str | None:
        if error := self.find_type_error(value):
            return error
        return None if value in self.words else f"must be {' or '.join(map(repr, self.words))}, not {quote(value)}"


class _ListCheck(_Check):
    types = (list,)
    is_deep = True

    def __init__(self, element: _Check) -> None:
        self.element = element

    def find_error(self, value: Any) -> str | None:
        if error := self.find_type_error(value):
            return error
        for element in value:
            if error := self.element.find_error(element):
                return f"each element {error}" if error.startswith("must ") else error
        return None


class _MappingCheck(_Check):
    types = (dict,)
    is_deep = True

    def __init__(self, held: _Check) -> None:
        self.held = held

    def find_error(self, value: Any) -> str | None:
        if error := self.find_type_error(value):
            return error
        for key, held in value.items():
            if error := self.held.find_error(held):
                return _locate(quote(key), error)
        return None


class _UnionCheck(_Check):
    is_deep = True

    def __init__(self, options: Iterable[_Check]) -> None:
        self.options = tuple(options)
        self.types = tuple(each for option in self.options for each in option.types)

    def find_error(self, value: Any) -> str | None:
        # The options have different types, so that the type selects one of them.
        option = next((option for option in self.options if type(value) in option.types), None)
        return option.find_error(value) if option else self.find_type_error(value)


class _RecordCheck(_Check):
    """Check of a dict with known keys.

    Args:
        noun: What a key is called in errors.
        checks: The checks of the values.
        required: The keys that must be there.
    """

    types = (dict,)
    is_deep = True

    def __init__(self, noun: str, checks: Mapping[str, _Check], required: Iterable[str] = ()) -> None:
        self._noun = noun
        self._checks = checks
        self._required = tuple(required)
        self._valid_forms: dict[tuple[Any, ...], tuple[tuple[str, _Check], ...]] = {}

    def find_error(self, value: Any) -> str | None:
        if type(value) is not dict:
            return self.find_type_error(value)
        # Keys and types are compared once for each form: dicts of one kind have few, and looking up is fast.
        form = (*value, *map(type, value.values()))
        deep = self._valid_forms.get(form)
        if deep is None:
            if error := self._find_form_error(value):
                return error
            deep = self._list_deep_checks(value)
            if len(self._valid_forms) < _MAX_FORMS:
                self._valid_forms[form] = deep
        for name, check in deep:
            held = value[name]
            # Many lists of events are empty, and nothing can be wrong with these.
            if held != [] and (error := check.find_error(held)):
                return _locate(f"{self._noun} {name!r}", error)
        return None

    def _list_deep_checks(self, value: Mapping[str, Any]) -> tuple[tuple[str, _Check], ...]:
        """Return the checks of those values of a dict whose type does not tell whether they are right."""
        checks = self._checks.items()
        return tuple((name, check) for name, check in checks if check.is_deep and value.get(name) is not None)

    def _find_form_error(self, value: Mapping[str, Any]) -> str | None:
        for name, held in value.items():
            if name not in self._checks:
                return f"unknown {self._noun} {quote(name)}{suggest_name(name, self._checks)}"
            if error := self._checks[name].find_type_error(held):
                return _locate(f"{self._noun} {name!r}", error)
        missing = next((name for name in self._required if name not in value), None)
        return f"missing {self._noun} {missing!r}" if missing else None


def _locate(place: str, error: str) -> str:
    return f"{place} {error}" if error.startswith("must ") else f"{place}: {error}"


_EVENT_CHECKS: dict[type[Event], _RecordCheck] = {}


def _build_event_check(cls: type[Event]) -> _RecordCheck:
    hints = get_type_hints(cls)
    # Missing fields are found when the event is built.
    return _RecordCheck(
        "field", {name: _build_check(_FIELDS.get((cls.kind, name), hints[name])) for name in (*cls.names, "n")}
    )


def _build_check(hint: Any) -> _Check:
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return _TypeCheck()
    if origin in (UnionType, Union):
        options = [_build_check(part) for part in parts]
        is_plain = not any(option.is_deep for option in options)
        return _TypeCheck(*(each for option in options for each in option.types)) if is_plain else _UnionCheck(options)
    if origin is Literal:
        return _WordCheck(parts)
    if origin in (list, tuple):
        return _ListCheck(_build_check(parts[0]))
    if origin is dict:
        # Keys of JSON are text; values that may be anything need no look.
        return _TypeCheck(dict) if parts[1] is Any else _MappingCheck(_build_check(parts[1]))
    if is_typeddict(hint):
        checks = {name: _build_check(part) for name, part in get_type_hints(hint).items()}
        marked = get_type_hints(hint, include_extras=True)
        return _RecordCheck("key", checks, [name for name in checks if get_origin(marked[name]) is Required])
    if is_dataclass(hint) and isinstance(hint, type):
        checks = {name: _build_check(part) for name, part in get_type_hints(hint).items()}
        return _RecordCheck("key", checks, [part.name for part in fields(hint) if _has_no_default(part)])
    return _TypeCheck(hint)

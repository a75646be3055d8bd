"""YAML reader that returns plain values and their lines.

A word is a number, a bool or null only if YAML 1.1, YAML 1.2 and JSON agree on it; every other word without quotes is
text: `no`, `on`, `1e3`, `0x1F`, `12:30` and dates. If any JSON value is valid in its place, such a word is an
`AmbiguousScalar`, so that a schema can reject it there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isinf
from typing import Any, cast

import yaml

from pytest_approvals.yaml_files import Diagnostic, KeyPath, join_path

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_KEYWORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_AMBIGUOUS = re.compile(
    r"[-+]?(\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+)"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF"
    r"|True|TRUE|False|FALSE|Null|NULL|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*|[0-9]+(:[0-9]+)+"
)
_MAX_VALUES = 100_000  # aliases can make a small file explode
_MAX_DEPTH = 100  # libyaml's composer recurses without a limit of its own, and overflows the stack
_MAX_PATHS = 20_000_000  # characters; a long key stands in the path of every value below it
_MAX_DIGITS = 640  # the lowest limit of digits that Python can be started with


class AmbiguousScalar(str):
    """Text without quotes that some version of YAML reads as a number, a bool, null or a date."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlDocument:
    """A parsed YAML text.

    Attributes:
        value: Plain value; keys are always text.
        lines: Line of each key and element by dotted path; `""` is the first line of the document.
    """

    value: Any
    lines: dict[str, int] = field(default_factory=dict)


# libyaml's loader is much faster, but not every build of PyYAML has it.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Loader that composes nodes without resolving plain words."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own attribute

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def descend_resolver(self, parent: yaml.Node | None, index: object) -> None:
        """Count a level; both composers call this before they compose a value, and `ascend_resolver` after it.

        Raises:
            Diagnostic: The value is nested too deep.
        """
        self._depth += 1
        if self._depth > _MAX_DEPTH and parent is not None:
            raise _depth_error(parent)

    def ascend_resolver(self) -> None:
        """Leave a level."""
        self._depth -= 1


def parse_yaml(text: str) -> YamlDocument:
    """Parse one YAML document.

    Raises:
        Diagnostic: The text is invalid or empty, repeats a key, uses tags, or is beyond a limit: of depth, values, or
            digits.
    """
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as problem:
        raise _syntax_error(problem, text) from None
    except UnicodeEncodeError as problem:
        line = text.count("\n", 0, problem.start) + 1
        raise Diagnostic((), "invalid text: half of a surrogate pair is not a character", line=line) from None
    if node is None:
        raise Diagnostic((), "the file is empty", line=1)
    lines = {"": _line_number(node)}
    return YamlDocument(value=_NodeConverter(lines).convert(node, (), ()), lines=lines)


def _syntax_error(problem: yaml.YAMLError, text: str) -> Diagnostic:
    mark = getattr(problem, "problem_mark", None) or getattr(problem, "context_mark", None)
    if mark is None:
        position = getattr(problem, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
        return Diagnostic((), f"invalid YAML: {getattr(problem, 'reason', problem)}", line=line)
    reason = ": ".join(part for part in (getattr(problem, "context", None), getattr(problem, "problem", None)) if part)
    hint = (
        "; text that holds { } [ ] , # or ': ' needs quotes" if re.search("flow|mapping values|alias", reason) else ""
    )
    if "cannot start any token" in reason and text.splitlines()[mark.line].lstrip(" ").startswith("\t"):
        hint = "; lines are indented with spaces, not with tabs"
    return Diagnostic((), f"invalid YAML: {reason}{hint}", line=cast("int", mark.line) + 1)


def _line_number(node: yaml.Node) -> int:
    return cast("int", node.start_mark.line) + 1


def _depth_error(node: yaml.Node) -> Diagnostic:
    return Diagnostic((), f"values are nested deeper than {_MAX_DEPTH} levels", _line_number(node))


class _NodeConverter:
    """Converter of nodes to plain values that records their lines."""

    def __init__(self, lines: dict[str, int]) -> None:
        self.lines = lines
        self.count = 0
        self.paths = 0

    def convert(self, node: yaml.Node, path: KeyPath, above: tuple[yaml.Node, ...]) -> Any:
        """Return the plain value of *node*; *above* are the nodes that contain it."""
        self._reject_unsupported(node, path, above)
        if isinstance(node, yaml.ScalarNode):
            return _parse_scalar(node)
        inside = (*above, node)
        if isinstance(node, yaml.SequenceNode):
            return [self._element(child, (*path, at), inside) for at, child in enumerate(node.value)]
        return {key: self._value(key_node, child, (*path, key), inside) for key, key_node, child in self._pairs(node)}

    def _element(self, node: yaml.Node, path: KeyPath, above: tuple[yaml.Node, ...]) -> Any:
        self._add_line(path, node)
        return self.convert(node, path, above)

    def _value(self, key: yaml.Node, node: yaml.Node, path: KeyPath, above: tuple[yaml.Node, ...]) -> Any:
        self._add_line(path, key)
        return self.convert(node, path, above)

    def _add_line(self, path: KeyPath, node: yaml.Node) -> None:
        joined = join_path(path)
        self.paths += len(joined)
        if self.paths > _MAX_PATHS:
            raise Diagnostic((), "the keys are too long for so many values", _line_number(node))
        self.lines[joined] = _line_number(node)

    def _pairs(self, node: yaml.Node) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        seen: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise Diagnostic(
                    (),
                    "invalid key: expected text, not a list or a mapping; text with braces needs quotes",
                    _line_number(key),
                )
            name = str(key.value)
            if name in seen:
                raise Diagnostic((), f"duplicate key {name!r}, first in line {seen[name]}", _line_number(key))
            seen[name] = _line_number(key)
            yield name, key, value

    def _reject_unsupported(self, node: yaml.Node, path: KeyPath, above: tuple[yaml.Node, ...]) -> None:
        self.count += 1
        if self.count > _MAX_VALUES:
            raise Diagnostic(
                (), "the file holds more than 100,000 values when its aliases are followed", _line_number(node)
            )
        # Aliases can nest what the composer has seen on one level.
        if len(above) > _MAX_DEPTH:
            raise _depth_error(node)
        # An alias is the very node of its anchor.
        if any(node is parent for parent in above):
            raise Diagnostic((), "an alias refers to a value that contains it", _line_number(node))
        if node.tag not in _PLAIN_TAGS:
            raise Diagnostic((), f"unsupported tag {node.tag!r}; write plain values", _line_number(node))


_PLAIN_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")


def _parse_scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    # Quoted and block scalars have a style, and are text always.
    if node.style:
        return text
    if text in _KEYWORDS:
        return _KEYWORDS[text]
    if _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
        return _parse_number(text, node)
    return AmbiguousScalar(text) if _AMBIGUOUS.fullmatch(text) else text


def _parse_number(text: str, node: yaml.ScalarNode) -> int | float:
    if len(text) > _MAX_DIGITS:
        message = f"a number of {len(text)} characters is too long: expected at most {_MAX_DIGITS}"
        raise Diagnostic((), message, _line_number(node))
    if "." not in text:
        return int(text)
    number = float(text)
    if isinf(number):
        raise Diagnostic((), "the number is too large for a fraction", _line_number(node))
    return number

"""
The text of a scenario file, written as people write one: a line for what is small, a block for what is not.

Text stands without quotes only where every reader of YAML takes it for text; otherwise in double quotes, and what a
terminal or an editor would act on is escaped. No tags, anchors or aliases are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any

WIDTH = 118

_PLAIN = re.compile(r"[A-Za-z_](?:[A-Za-z0-9 _./'!?()+;$@-]|,(?= ))*(?<! )")
_PLAIN_IN_LINE = re.compile(r"[A-Za-z_](?:[A-Za-z0-9 _./'!?()+;$@-])*(?<! )")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off"))
_BLOCKS = {"model", "caller", "tools"}


def yaml_text(document: Mapping[str, Any]) -> str:
    """Gives the text."""
    lines: list[str] = []
    for key, value in document.items():
        if key == "about":
            lines += ["about: >", *(f"  {line}" for line in _wrapped(value))]
        elif isinstance(value, Mapping) and key in _BLOCKS:
            lines += [f"{key}:", *(f"  {line}" for line in _mapping(value))]
        elif isinstance(value, list) and key in _BLOCKS:
            lines += [f"{key}:", *(f"  {line}" for element in value for line in _element(element))]
        else:
            lines.append(f"{key}: {_in_line(value) if isinstance(value, Mapping | list) else _scalar(value)}")
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    """Gives prose in lines; no line may look as if it were more than prose."""
    return wrap(" ".join(shown(text).split()), WIDTH - 2, break_long_words=False, break_on_hyphens=False)


def _mapping(value: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for key, inner in value.items():
        name = _scalar(str(key), in_line=True)
        one = f"{name}: {_in_line(inner)}" if isinstance(inner, Mapping | list) else f"{name}: {_scalar(inner)}"
        if len(one) <= WIDTH or not inner or not isinstance(inner, Mapping | list):
            lines.append(one)
        elif isinstance(inner, Mapping):
            lines += [f"{name}:", *(f"  {line}" for line in _mapping(inner))]
        else:
            lines += [f"{name}:", *(f"  {line}" for each in inner for line in _element(each))]
    return lines


def _element(value: Any) -> list[str]:
    """Gives an element of a list: `- ` and the lines of a mapping, or all in one line."""
    if not isinstance(value, Mapping) or not value:
        return [f"- {_in_line(value)}"]
    lines = _mapping(value)
    if "tool" in value and len(_in_line(value)) <= WIDTH:
        return [f"- {_in_line(value)}"]
    return [f"{'  ' if number else '- '}{line}" for number, line in enumerate(lines)]


def _in_line(value: Any) -> str:
    match value:
        case Mapping():
            pairs = (f"{_scalar(str(key), in_line=True)}: {_in_line(inner)}" for key, inner in value.items())
            return f"{{{', '.join(pairs)}}}"
        case str():
            return _scalar(value, in_line=True)
        case Sequence():
            return f"[{', '.join(map(_in_line, value))}]"
        case _:
            return _scalar(value)


def _scalar(value: Any, *, in_line: bool = False) -> str:
    match value:
        case str():
            plain = _PLAIN_IN_LINE if in_line else _PLAIN
            return value if plain.fullmatch(value) and value.lower() not in _WORDS else _quoted(value)
        case float():
            digits = format(Decimal(repr(value)), "f")
            return digits if "." in digits else f"{digits}.0"
        case _:
            return json.dumps(value)


def _quoted(text: str) -> str:
    return '"' + shown(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def shown(text: str) -> str:
    """
    Gives a text with every character escaped that is not printed, as YAML and JSON write that in double quotes.

    >>> print(shown("a\\x1b[2J"))
    a\\u001b[2J
    """
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(letter)
    return short or (f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}")

"""Texts that the model is told: what they hold as JSON, in blocks or in XML, and whether they convey a result."""

from __future__ import annotations

import ast
import html
import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_approvals.journal.arguments import are_same_values

_PLACEHOLDER_PREFIX = "<not JSON: "
"""How a journal marks a value that JSON cannot hold."""

_MAX_NESTING = 6
"""How many times a text may be JSON that holds a text."""


def list_told_texts(text: str | None) -> list[str]:
    r"""Return a text, and those that it holds if it is JSON: in blocks, in objects, and in texts that are JSON.

    A tool's result may also be told as Python shows it, in which letters are escaped in other ways, or in an element
    of XML.

    >>> list_told_texts('[{"type": "text", "text": "paid 5"}]')[1:]
    ['text', 'paid 5']
    >>> list_told_texts(r"{'note': 'one\ntwo'}")[1:]
    ['one\ntwo']
    >>> list_told_texts("<result>1 &lt; 2</result>")[1:]
    ['<result>1 < 2</result>']
    >>> list_told_texts("It was edited. <result>1 &lt; 2</result>")[1:]
    ['It was edited. <result>1 < 2</result>']
    """
    if text is None:
        return []
    unescaped = html.unescape(text) if "&" in text and _ELEMENT.search(text) else text
    held = [unescaped, *(inner for _, inner in iterate_texts(_decode_text(text)))]
    return [text, *(inner for inner in held if inner != text)]


_ELEMENT = re.compile(r"\s*<([A-Za-z][\w.:-]*)(?: [^<>]*)?>(.*)</\1>\s*", re.DOTALL)
"""An element of XML, with the blanks around it."""


def iterate_texts(value: Any, name: str = "", depth: int = _MAX_NESTING) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value, each with the name of its field, also those in texts that are JSON."""
    if isinstance(value, str):
        yield name, value
        decoded = _decode_text(value) if depth else value
        if decoded != value:
            yield from iterate_texts(decoded, name, depth - 1)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from iterate_texts(inner, str(key), depth)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from iterate_texts(inner, name, depth)


def _decode_text(text: str) -> Any:
    """Return what a text is as JSON, or as Python shows a value; else the text."""
    if not text.strip().startswith(("{", "[", '"')):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _decode_python(text) if "'" in text else text


def _decode_python(text: str) -> Any:
    """Return the value of which a text is Python's `repr`, or the text."""
    try:
        # A text that is none may hold what Python warns of.
        with warnings.catch_warnings(action="ignore"):
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def is_empty_text(text: str | None) -> bool:
    """Return whether a text says nothing: no letter, or only the frame of one.

    >>> [is_empty_text(text) for text in ("{}", '[{"type": "text", "text": ""}]', "None", '{"result": null}', "no")]
    [True, True, True, True, False]
    >>> is_empty_text("<result></result>"), is_empty_text("<result>no</result>")
    (True, False)
    """
    element = _ELEMENT.fullmatch(text or "")
    if element is not None:
        return is_empty_text(element[2])
    if text is None or text.strip() in ("None", "null", "''"):
        return True
    leaves = (leaf for name, leaf in _iterate_fields(_decode_text(text)) if name not in ("type", "id"))
    return not any(str(leaf).strip() and leaf is not None for leaf in leaves)


def _iterate_fields(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _iterate_fields(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _iterate_fields(inner, name)
    else:
        yield name, value


def contains_text(text: str | None, part: str) -> bool:
    r"""Return whether a text, or one that it holds, contains another one as a whole: not within a word or a number.

    Lines that end as on Windows may be told with plain line ends.

    >>> contains_text("paid 50", "paid 5"), contains_text('{"a": "paid 5"}', "paid 5")
    (False, True)
    >>> contains_text("one\ntwo", "one\r\ntwo"), contains_text("one\r\ntwo", "one\ntwo")
    (True, False)
    """
    return is_told(list_told_texts(text), part)


def is_told(texts: Sequence[str], part: str) -> bool:
    part = part.strip()
    begins, ends = _WORD.match(part), _WORD.match(part[-1:])
    plain = part.replace("\r\n", "\n")
    for written in dict.fromkeys((part, json.dumps(part)[1:-1], plain, json.dumps(plain)[1:-1])):
        for told in texts:
            start = told.find(written)
            while start >= 0:
                is_begin = not begins or _BEFORE_WORD.match(told, start)
                if is_begin and (not ends or _AFTER_WORD.match(told, start + len(written))):
                    return True
                start = told.find(written, start + 1)
    return False


_WORD = re.compile(r"[A-Za-z0-9_]")
# The ends of escaped characters in what is no JSON count as no letters of a word.
_BEFORE_WORD = re.compile(r"(?<![A-Za-z0-9_])|(?<=\\[nrtbf])")
_AFTER_WORD = re.compile(r"(?![A-Za-z0-9_]|\.[0-9])")


def conveys_result(text: str | None, result: Any) -> bool:
    """Return whether *text* says *result*: as text, as JSON, or as Python writes it.

    A tool that returned None may be reported in any words.

    >>> conveys_result('{"paid":5}', {"paid": 5}), conveys_result("paid 6", "paid 5")
    (True, False)
    """
    if result is None:
        return True
    if text is None:
        return False
    if all(_contains_leaf(text, leaf) for leaf in _iterate_leaves(result)):
        return True
    return _is_json_equal(text, result) or _is_told_in_blocks(text, result)


def _is_told_in_blocks(text: str, result: Any) -> bool:
    """Return whether a list was told as a block for each element; a journal has the text of all blocks as one."""
    if not isinstance(result, list | tuple):
        return False
    written = (leaf if isinstance(leaf, str) else json.dumps(leaf) for leaf in _iterate_leaves(result))
    return "".join("".join(written).split()) == "".join(text.split())


def _is_json_equal(text: str, result: Any) -> bool:
    try:
        return are_same_values(json.loads(text), result)
    except (ValueError, RecursionError):
        return False


def _iterate_leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, Mapping):
        for key, value in result.items():
            yield key
            yield from _iterate_leaves(value)
    elif isinstance(result, list | tuple):
        for value in result:
            yield from _iterate_leaves(value)
    else:
        yield result


def _contains_leaf(text: str, leaf: Any) -> bool:
    if isinstance(leaf, str):
        return leaf.startswith(_PLACEHOLDER_PREFIX) or contains_text(text, leaf)
    if leaf is None or isinstance(leaf, bool):
        return contains_text(text.lower(), str(leaf).lower()) or contains_text(text, json.dumps(leaf))
    if contains_text(text, str(leaf)):
        return True
    # A whole number may be too large for a fraction.
    return abs(leaf) < sys.float_info.max and contains_text(text, f"{leaf:g}")

"""Whether a text that the model reads says what a tool returned, however the framework writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_UNREADABLE = "<not JSON: "
"""How a journal marks a value that JSON cannot hold."""


def conveys(text: str | None, result: Any) -> bool:
    """
    Says whether *text* says *result*: as text, as JSON, or as Python writes it.

    Nothing conveys everything of nothing: a tool that returned None may be reported in any words.

    >>> conveys('{"paid":5}', {"paid": 5}), conveys("paid 6", "paid 5")
    (True, False)
    """
    if result is None:
        return True
    if text is None:
        return False
    if isinstance(result, str) and result.strip() in text:
        return True
    if _is_json_of(text, result):
        return True
    return all(_says(text, leaf) for leaf in _leaves(result))


def tells_of(text: str | None, result: Any) -> bool:
    """Says whether *text* is exactly *result*, and *result* long enough that this is no accident."""
    return isinstance(result, str) and len(result) > 3 and text is not None and text.strip() == result.strip()


def _is_json_of(text: str, result: Any) -> bool:
    try:
        return bool(json.loads(text) == result)
    except ValueError:
        return False


def _leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, Mapping):
        for key, value in result.items():
            yield key
            yield from _leaves(value)
    elif isinstance(result, list | tuple):
        for value in result:
            yield from _leaves(value)
    else:
        yield result


def _says(text: str, leaf: Any) -> bool:
    if isinstance(leaf, str):
        return leaf.startswith(_UNREADABLE) or leaf.strip() in text or json.dumps(leaf)[1:-1] in text
    if leaf is None or isinstance(leaf, bool):
        return str(leaf).lower() in text.lower() or json.dumps(leaf) in text
    return str(leaf) in text or json.dumps(leaf) in text or f"{leaf:g}" in text

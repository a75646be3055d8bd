"""Arguments of calls as JSON text and as objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def parse_arguments(arguments: Any) -> Any:
    """Return arguments parsed if they are the text of a JSON object, and unchanged otherwise.

    >>> parse_arguments('{"amount": 5}'), parse_arguments('[5]'), parse_arguments(None)
    ({'amount': 5}, '[5]', None)
    """
    try:
        value = json.loads(arguments)
    except (TypeError, ValueError):
        return arguments
    return value if isinstance(value, dict) else arguments


def is_object_text(text: Any) -> bool:
    """Return whether *text* is the text of a JSON object.

    >>> is_object_text('{"amount": 5}'), is_object_text('[5]')
    (True, False)
    """
    return isinstance(parse_arguments(text), dict)


def write_arguments(arguments: Mapping[str, Any] | str, *, ensure_ascii: bool = True) -> str:
    """Return arguments as the model writes them: an object as JSON, a raw text as it is."""
    return arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=ensure_ascii)

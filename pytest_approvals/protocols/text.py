"""Text and arguments as they stand in the bodies of every protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_approvals.agent_side.contract.types import ModelCall


def text_of(content: Any) -> str:
    """
    Gives the text of a message or a result: a string, or a list of parts.

    >>> text_of([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    'ab'
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(map(_part_text, content)) if isinstance(content, list) else json.dumps(content, sort_keys=True)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        for name in ("text", "refusal"):
            if isinstance(part.get(name), str):
                return str(part[name])
    return json.dumps(part, sort_keys=True)


def parse_object(arguments: Any) -> Any:
    """
    Gives arguments parsed where they are the text of a JSON object, else as they are.

    >>> object_of('{"amount": 5}'), object_of('[5]')
    ({'amount': 5}, '[5]')
    """
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    return value if isinstance(value, dict) else arguments


def arguments_text(call: ModelCall) -> str:
    """Gives arguments as the model writes them: JSON text, or the raw text of broken ones."""
    return call.arguments if isinstance(call.arguments, str) else to_json(dict(call.arguments))


def to_json(value: Any) -> str:
    """Gives a value as JSON."""
    return _encode(value)


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def to_sorted_json(value: Any) -> str:
    """Gives a value as JSON with the keys of its objects in order; one that was taken up may have them in another."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def list_objects(value: Any) -> list[Mapping[str, Any]]:
    """Gives the objects among a list's elements; nothing for what is no list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def json_type_name(value: Any) -> str:
    """
    Says what kind of JSON value it is, as OpenAI's messages do.

    >>> [name_of(value) for value in (None, True, 1, 0.5, "a", [], {})]
    ['null', 'a boolean', 'an integer', 'a decimal', 'a string', 'an array', 'an object']
    """
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a decimal", str: "a string", list: "an array"}
    return names.get(type(value), "an object")

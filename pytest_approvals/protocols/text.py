"""Text, JSON and arguments in request bodies, shared by all protocols."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.types import Item, ModelCall


def text_of(content: Any) -> str:
    """Return the text of a message or a result: a string, or a list of parts.

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
    """Return arguments parsed if they are the text of a JSON object, else as they are.

    >>> parse_object('{"amount": 5}'), parse_object('[5]')
    ({'amount': 5}, '[5]')
    """
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def arguments_text(call: ModelCall) -> str:
    """Return arguments as the model writes them: JSON text, or the raw text of invalid ones."""
    return call.arguments if isinstance(call.arguments, str) else to_json(dict(call.arguments))


def to_json(value: Any) -> str:
    """Return a value as JSON."""
    return _encode(value)


def to_json_bytes(value: Any) -> bytes:
    """Return a value as JSON that can be sent.

    What is not Unicode, such as half of a surrogate pair that a request holds, becomes an escape of JSON.
    """
    return _encode(value).encode(errors="backslashreplace")


def _create_encoder() -> Callable[[Any], str]:
    encoder = json.JSONEncoder(ensure_ascii=False, check_circular=False)
    create: Any = getattr(json.encoder, "c_make_encoder", None)
    if create is None:
        return encoder.encode
    # `JSONEncoder.encode` creates its encoder in C anew for each value, which takes half of the time of an event.
    separators = (encoder.key_separator, encoder.item_separator)
    parts = create(None, encoder.default, json.encoder.encode_basestring, None, *separators, False, False, True)
    return lambda value: "".join(parts(value, 0))


_encode = _create_encoder()


def to_sorted_json(value: Any) -> str:
    """Return a value as JSON with sorted keys, since a restored value may have them in another order."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def optional_text(value: Any) -> str | None:
    """Return an id or a name, which must be text; anything else as JSON, because it is recorded and compared as text.

    >>> optional_text("call_1"), optional_text(None), optional_text([1])
    ('call_1', None, '[1]')
    """
    return value if value is None or isinstance(value, str) else to_sorted_json(value)


def list_objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects among a list's elements; none for what is not a list."""
    # Nearly all are of `dict`, which is cheaper to ask for than the abstract class.
    if type(value) is not list:
        return []
    return [element for element in value if type(element) is dict or isinstance(element, Mapping)]


def object_or_empty(value: Any) -> Mapping[str, Any]:
    """Return *value* if it is an object, else an empty one."""
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def property_names(schema: Any) -> frozenset[str]:
    """Return the names of the properties that a JSON Schema declares."""
    return frozenset(object_or_empty(object_or_empty(schema).get("properties")))


def is_json_format(value: Any) -> bool:
    """Return whether a response format of OpenAI's protocols asks for JSON."""
    return object_or_empty(value).get("type") in ("json_schema", "json_object")


def instruction_items(instructions: Any) -> tuple[Item, ...]:
    """Return instructions that are not part of the messages as items; none if there are none."""
    return (Item(kind="other", text=text_of(instructions)),) if instructions else ()


def json_type_name(value: Any) -> str:
    """Return the JSON type of a value as OpenAI's errors name it.

    >>> [json_type_name(value) for value in (None, True, 1, 0.5, "a", [], {})]
    ['null', 'a boolean', 'an integer', 'a decimal', 'a string', 'an array', 'an object']
    """
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a decimal", str: "a string", list: "an array"}
    return names.get(type(value), "an object")


def estimate_tokens(value: Any) -> int:
    """Return about how many tokens a body has: one for every four characters of its JSON.

    >>> estimate_tokens({"messages": "go"})
    4
    """
    return len(to_json(value)) // 4

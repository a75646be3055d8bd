"""
Messages to JSON: what was read is written in the order and with the names it came with, what is new as .NET writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .contents import Content, FunctionCall, Message, Notation, Opaque, Unknown
from .notations import MCP_CALL, PLAIN_FUNCTION, REQUIRED, Field, Spec, spec_to_read, spec_to_write

_MESSAGE = (
    Field("role", "role", "text", "user"),
    Field("contents", "contents", "contents", ()),
    Field("messageId", "message_id"),
    Field("authorName", "author_name"),
    Field("createdAt", "created_at"),
)


def written_messages(messages: Iterable[Message], notation: Notation | None = None) -> list[dict[str, Any]]:
    """
    Gives the messages as JSON values.

    Arguments:
        notation: The generation of discriminators to write with; None for the one that each content has.
    """
    return [written_message(message, notation) for message in messages]


def written_message(message: Message, notation: Notation | None = None) -> dict[str, Any]:
    """Gives one message as a JSON value."""
    return _laid_out(message.source, _MESSAGE, message, notation)


def written_content(content: Content, notation: Notation | None = None) -> dict[str, Any]:
    """Gives one content as a JSON value, with its `$type`."""
    if isinstance(content, Opaque | Unknown):
        return dict(content.source) if content.source is not None else {"$type": content.kind} if content.kind else {}
    spec, used = spec_to_write(content, notation or content.notation)
    inside = _fields(spec, content, used, notation)
    return inside if "$type" in inside else {"$type": spec.discriminator, **inside}


def _without_type(spec: Spec, call: Content, notation: Notation | None) -> dict[str, Any]:
    """Gives a call as the earlier generation nested it: the name of the field around it says its type."""
    inside = _fields(spec, call, "earlier", notation)
    inside.pop("$type", None)
    if isinstance(call, FunctionCall) and not call.informational_only:
        inside.pop("informationalOnly", None)
    return inside


def _fields(spec: Spec, content: Content, used: Notation, notation: Notation | None) -> dict[str, Any]:
    """Keeps the order of what was read in the same generation; of another one, what is not modelled."""
    source = content.source
    if source is None or isinstance(content, FunctionCall) or content.notation == used:
        return _laid_out(source, spec.fields, content, notation)
    modelled = {each.name for each in _read_with(content, source)}
    extra = {name: value for name, value in source.items() if name not in modelled and name != "$type"}
    return {**_laid_out(None, spec.fields, content, notation), **extra}


def _read_with(content: Content, source: Mapping[str, Any]) -> tuple[Field, ...]:
    known = spec_to_read(source.get("$type", MCP_CALL.discriminator), frozenset(source))
    return known[0].fields if known is not None else ()


def _laid_out(
    source: Mapping[str, Any] | None, fields: tuple[Field, ...], value: Any, notation: Notation | None
) -> dict[str, Any]:
    written = {each.name: (each, _written(each, getattr(value, each.attribute), notation)) for each in fields}
    if source is None:
        return {name: inside for name, (_, inside) in written.items() if inside is not None}
    kept = {name: written[name][1] if name in written else inside for name, inside in source.items()}
    added = {
        name: inside
        for name, (each, inside) in written.items()
        if name not in source and (each.default is REQUIRED or getattr(value, each.attribute) != each.default)
    }
    return {**kept, **added}


def _written(each: Field, value: Any, notation: Notation | None) -> Any:
    if value is None:
        return None
    match each.kind:
        case "contents":
            return [written_content(content, notation) for content in value]
        case "call":
            return written_content(value, notation)
        case "function":
            return _without_type(PLAIN_FUNCTION, value, notation)
        case "server":
            return _without_type(MCP_CALL, value, notation)
        case _:
            return value

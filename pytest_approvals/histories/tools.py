"""The tools that a stored conversation speaks of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pytest_approvals.journal.arguments import parsed

from .conversation import Called, Conversation, Requested


def tools_of(conversation: Conversation, gated: Collection[str] = ()) -> dict[str, Any]:
    """
    Gives the tools that a conversation speaks of, as the header of a journal declares them: parameters and their types
    are those of the arguments that were seen.
    """
    asked = {entry.tool for entry in conversation.of(Requested) if entry.asks}.union(gated)
    declared: dict[str, Any] = {}
    for entry in conversation.entries:
        if not isinstance(entry, Called | Requested):
            continue
        tool = declared.setdefault(entry.tool, {"approval": "always" if entry.tool in asked else "never"})
        tool["kind"] = entry.kind
        if entry.server:
            tool["server"] = entry.server
        arguments = parsed(entry.arguments)
        known = tool.setdefault("parameters", {})
        for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
            known.setdefault(name, {"type": json_type(value)})
    return declared


def json_type(value: Any) -> str:
    """Gives the JSON Schema type of a value; a null may be anything, and is declared a string."""
    names = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "string")

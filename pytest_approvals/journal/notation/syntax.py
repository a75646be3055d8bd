"""Syntax of the notation: calls, arguments, tools."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

CALL_PATTERN = re.compile(r"\s*(?P<label>[^\s@()]+)(?:@(?P<id>\S+))?\s+(?P<tool>\w+)\((?P<arguments>.*)\)\s*$")
_TOOL_PATTERN = re.compile(r"(?P<name>\w+)\((?P<parameters>[^)]*)\)\s*(?P<rest>.*)$")
_CONDITION_PATTERN = re.compile(r"when (?P<argument>\w+) > (?P<number>\S+)")


@dataclass(slots=True)
class NotationCall:
    """A call as a line writes it."""

    label: str
    id: str | None
    tool: str
    arguments: Any

    @property
    def facts(self) -> dict[str, Any]:
        """The call as it is written in an event."""
        return {"label": self.label, "id": self.id, "tool": self.tool, "arguments": self.arguments}


def parse_tool(line: str) -> tuple[str, dict[str, Any]]:
    """Return a tool's name, and what a header says of it."""
    match = _TOOL_PATTERN.match(line)
    if match is None:
        raise ValueError("a tool is NAME(PARAMETER: TYPE, ...) APPROVAL")
    pairs = [pair.partition(":") for pair in match["parameters"].split(",") if pair.strip()]
    tool: dict[str, Any] = {
        "approval": "never",
        "parameters": {name.strip(): _parse_parameter(kind.strip()) for name, _, kind in pairs},
        "kind": "function",
    }
    words = match["rest"]
    condition = _CONDITION_PATTERN.search(words)
    if condition is not None:
        tool["approval"] = {"argument": condition["argument"], "greater_than": float(condition["number"])}
        words = _CONDITION_PATTERN.sub("", words)
    _apply_tool_words(tool, words.split())
    return match["name"], tool


def _apply_tool_words(tool: dict[str, Any], words: list[str]) -> None:
    while words:
        word = words.pop(0)
        if word in ("always", "never"):
            tool["approval"] = word
        elif word == "sometimes":
            tool["approval"] = {}
        elif word == "raises":
            tool["approval"] = {"raises": "no"}
        elif word in ("guarded", "screened"):
            tool[word] = True
        elif word in ("hosted", "mcp"):
            tool["kind"], tool["server"] = ("hosted_mcp" if word == "hosted" else "mcp"), words.pop(0)
        else:
            tool[{"of": "agent", "runs": "runs", "to": "hands_over_to"}[word]] = words.pop(0)


def _parse_parameter(kind: str) -> dict[str, Any]:
    name, _, default = kind.partition(" = ")
    written: dict[str, Any] = {"type": name or "string", "required": not default}
    return written | ({"default": parse_value(default)} if default else {})


def parse_pairs(written: str) -> Any:
    """Return `a=1, b=text` as a mapping; anything without `=` stays raw text."""
    if not written.strip():
        return {}
    pairs = [pair.partition("=") for pair in re.split(r",\s+", written)]
    if not all(equals for _, equals, _ in pairs):
        return written
    return {name: parse_value(value) for name, _, value in pairs}


def parse_value(written: str) -> Any:
    """Return a value: JSON, or else text."""
    try:
        return json.loads(written)
    except ValueError:
        return written

"""Bodies of Messages: their messages as blocks, and what rules ask of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.protocols.text import list_objects, object_or_empty

Place = tuple[int, int]
"""The number of a message, and that of a block in it."""

THINKING = ("thinking", "redacted_thinking")
"""The types of blocks that hold reasoning."""

# `\Z` and not `$`, which would allow a line break at the end.
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
"""The ids of calls, which those of another provider may not match."""


def blocks_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the content of a message as blocks; a string is one text block, and an empty one is none."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list_objects(content)


def iter_blocks(body: Mapping[str, Any]) -> Iterator[tuple[Place, str, Mapping[str, Any]]]:
    """Yield each block with its place and the role of its message."""
    for number, message in enumerate(body["messages"]):
        content = message.get("content")
        if type(content) is str:
            if content and not content.strip():
                yield (number, 0), str(message.get("role")), {"type": "text", "text": content}
            continue
        role = str(message.get("role"))
        for index, block in enumerate(list_objects(content)):
            yield (number, index), role, block


def path_of(place: Place) -> str:
    """Return the path of a block, as errors name it."""
    return f"messages.{place[0]}.content.{place[1]}"


def is_continued(body: Mapping[str, Any]) -> bool:
    """Return whether a request continues a thread."""
    return object_or_empty(body.get("thread")).get("type") == "continue"


def wants_json(body: Mapping[str, Any]) -> bool:
    """Return whether the answer is to be JSON."""
    # `output_format` is the earlier name of `output_config.format`.
    return bool(body.get("output_format") or object_or_empty(body.get("output_config")).get("format"))


def ends_in_white_space(block: Mapping[str, Any]) -> bool:
    """Return whether the text of a block ends in white space."""
    text = str(block.get("text") or "")
    return text != text.rstrip()


def is_server_result(block: Mapping[str, Any]) -> bool:
    """Return whether a block is the result of a tool that the provider runs."""
    return str(block.get("type")).endswith("_tool_result")

"""What the result of a run says."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_jsonable_python


def output(result: Any) -> Any:
    """Gives the output as JSON data."""
    return result.output if isinstance(result.output, str) else to_jsonable_python(result.output, fallback=repr)


def said(result: Any) -> str | None:
    """Gives the text beside the calls that the run pauses for, from the last response."""
    last = next(message for message in reversed(result.all_messages()) if message.kind == "response")
    texts = [part.content for part in last.parts if part.part_kind == "text"]
    return "\n\n".join(texts) or None

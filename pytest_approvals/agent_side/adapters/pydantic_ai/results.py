"""What the result of a run says."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_jsonable_python


def output(result: Any) -> Any:
    """Gives the output as JSON data."""
    return result.output if isinstance(result.output, str) else to_jsonable_python(result.output, fallback=repr)


def said(result: Any) -> str | None:
    """Gives the text beside the calls that the run pauses for, from the last response."""
    return result.response.text or None

"""What a result of the SDK says to the caller."""

from __future__ import annotations

from typing import Any


def text_beside(result: Any) -> str | None:
    """Gives what the model said beside the calls that wait, from the last response of *result*."""
    if not result.raw_responses:
        return None
    said = [item for item in result.raw_responses[-1].output if item.type == "message"]
    return "".join(getattr(part, "text", "") for item in said for part in item.content) or None


def output_of(result: Any) -> Any:
    """Gives the final output; one of a person's own type as JSON values."""
    output = result.final_output
    if output is None or isinstance(output, (str, int, float, bool)):
        return output
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(output, fallback=str)

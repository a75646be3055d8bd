"""What a result of the SDK, or an error of a run, says to the caller."""

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


def input_after(error: BaseException) -> list[Any] | None:
    """
    Gives the input list that a failed run has come to, from the `run_data` of the SDK's own errors.

    None where the error has none, and where a call in it has no result: no model takes such a list.
    """
    data = getattr(error, "run_data", None)
    if data is None:
        return None
    given = [{"role": "user", "content": data.input}] if isinstance(data.input, str) else list(data.input)
    items = [item.to_input_item() for item in data.new_items if item.type != "tool_approval_item"]
    called = {item.get("call_id") for item in items if item.get("type") == "function_call"}
    answered = {item.get("call_id") for item in items if item.get("type") == "function_call_output"}
    return given + items if called <= answered else None

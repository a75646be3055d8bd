"""The structured answer: an output tool, as `ToolStrategy` has it, which every model that calls tools can use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...contract import Parameter
from ...declared import annotation
from .messages import ANSWER


def response_format(fields: Mapping[str, Parameter]) -> Any:
    """Gives what `create_agent` is told of the answer: a `TypedDict`, whose values any store can keep."""
    from langchain.agents.structured_output import ToolStrategy

    # pydantic wants these, before Python 3.12.
    from typing_extensions import NotRequired, TypedDict  # noqa: UP035

    kinds: dict[str, Any] = {name: annotation(one) for name, one in fields.items()}
    make: Any = TypedDict
    schema = make(ANSWER, {name: kind if fields[name].required else NotRequired[kind] for name, kind in kinds.items()})
    return ToolStrategy(schema)


def call(answer: Mapping[str, Any], messages: Sequence[Any]) -> dict[str, Any]:
    """Gives the call of the output tool that *answer* is, with an id that no other one of the thread has."""
    return {"id": f"answer-{len(messages)}", "name": ANSWER, "args": dict(answer)}


def piece(answer: Mapping[str, Any], messages: Sequence[Any], index: int) -> dict[str, Any]:
    """Gives the same call as the chunk of a stream that comes at *index* among the calls."""
    called = call(answer, messages)
    return {**called, "args": json.dumps(called["args"]), "index": index}

"""Functions with the parameters of a tool, and the schema that the framework makes of them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import lru_cache
from inspect import Parameter as Argument
from typing import Any

from pydantic_ai import RunContext, Tool, ToolOutput

from pytest_approvals.agent_side.contract import Parameter, ToolSpec
from pytest_approvals.agent_side.declared import Fields, arguments, fields_model, signed

from .naming import ANSWER

Body = Callable[..., Coroutine[Any, Any, Any]]


def schema_for(spec: ToolSpec, body: Body) -> Any:
    """Gives the framework's schema of the tool: made once for equal parameters, with this tool's own *body*."""
    return replace(_schema(spec.name, spec.description, Fields(spec.parameters)), function=body)


def answer_type(fields: Mapping[str, Parameter]) -> Any:
    """Gives the type of a structured answer with *fields*, as a person would have written it."""
    return ToolOutput(fields_model("Answer", fields), name=ANSWER)


@lru_cache(maxsize=1024)
def _schema(name: str, description: str, fields: Fields) -> Any:
    async def body(ctx: RunContext[None], **arguments: Any) -> Any:
        raise NotImplementedError

    context = Argument("ctx_", Argument.POSITIONAL_ONLY, annotation=RunContext[None])
    signed(body, context, *arguments(fields.parameters))
    return Tool(body, takes_ctx=True, name=name, description=description).function_schema

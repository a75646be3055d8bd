"""Functions with the parameters of a tool, and the schema that the framework makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import lru_cache
from inspect import Parameter, Signature
from typing import Any, TypeVar

from pydantic import create_model
from pydantic_ai import RunContext, Tool, ToolOutput

from pytest_approvals.agent_side.contract import Parameter as Wanted
from pytest_approvals.agent_side.contract import ToolSpec

from .naming import ANSWER

Body = Callable[..., Coroutine[Any, Any, Any]]
AnyBody = TypeVar("AnyBody", bound=Body)

TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
    "null": None,
}


def schema_for(spec: ToolSpec, body: Body) -> Any:
    """Gives the framework's schema of the tool: made once for equal parameters, with this tool's own *body*."""
    return replace(_schema(spec.name, spec.description, _parameters(spec)), function=body)


def shaped(body: AnyBody, spec: ToolSpec) -> AnyBody:
    """Gives *body* the signature that a person would have written for the tool."""
    _shape(body, _parameters(spec))
    return body


def answer_type(fields: Mapping[str, Wanted]) -> Any:
    """Gives the type of a structured answer with *fields*, as a person would have written it."""
    own: dict[str, Any] = {name: (TYPES.get(one.type, Any), _default(one)) for name, one in fields.items()}
    return ToolOutput(create_model("Answer", **own), name=ANSWER)


def _default(field: Wanted) -> Any:
    return ... if field.required else field.default


_Parameters = tuple[tuple[str, str, bool, str], ...]


def _parameters(spec: ToolSpec) -> _Parameters:
    return tuple((name, one.type, one.required, json.dumps(one.default)) for name, one in spec.parameters.items())


@lru_cache(maxsize=1024)
def _schema(name: str, description: str, parameters: _Parameters) -> Any:
    async def body(ctx: RunContext[None], **arguments: Any) -> Any:
        raise NotImplementedError

    context = Parameter("ctx_", Parameter.POSITIONAL_ONLY, annotation=RunContext[None])
    _shape(body, parameters, context)
    return Tool(body, takes_ctx=True, name=name, description=description).function_schema


def _shape(body: Any, parameters: _Parameters, *before: Parameter) -> None:
    own = [_parameter(*each) for each in parameters]
    body.__signature__ = Signature([*before, *own])
    body.__annotations__ = {parameter.name: parameter.annotation for parameter in (*before, *own)}


def _parameter(name: str, kind: str, required: bool, default: str) -> Parameter:
    value = Parameter.empty if required else json.loads(default)
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=TYPES.get(kind, Any), default=value)

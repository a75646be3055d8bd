"""Tools made from tool specs, as a person writes them: functions with the decorator `tool`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter as Argument
from typing import Any

from agno.tools import tool
from agno.tools.function import FunctionCall

from ...contract import ServerAddress, ToolSpec
from ...current import world
from ...declared import arguments, signed

CALL = "fc"
"""The parameter in which the framework hands a body the call that it is run for."""


def made(spec: ToolSpec, **marks: Any) -> Any:
    """
    Gives the tool that *spec* describes.

    Arguments:
        marks: More arguments for the decorator.
    """

    async def body(fc: Any, **arguments: Any) -> Any:
        return await world().run(spec.name, arguments, fc.call_id, agent=spec.agent)

    if spec.approval != "never":
        marks["requires_confirmation"] = True
    return tool(name=spec.name, description=spec.description or spec.name, **marks)(shaped(body, spec))


def all_made(
    specs: Sequence[ToolSpec], servers: Iterable[ServerAddress], marks: Mapping[str, Any] | None = None
) -> list[Any]:
    """
    Gives the tools of one agent: functions, and a toolkit for each server.

    Arguments:
        servers: Where its servers are.
        marks: More arguments for the decorator of gated functions.
    """
    functions = [spec for spec in specs if spec.kind != "mcp"]
    tools = [made(spec, **((marks or {}) if spec.approval != "never" else {})) for spec in functions]
    for address in servers:
        from .servers import toolkit

        tools.append(toolkit(address, [spec for spec in specs if spec.server == address.name]))
    return tools


def shaped(body: Callable[..., Any], spec: ToolSpec) -> Callable[..., Any]:
    """Gives *body* the signature that a person would have written for the tool."""
    body.__name__ = spec.name
    call = Argument(CALL, Argument.KEYWORD_ONLY, annotation=FunctionCall)
    return signed(body, call, *arguments(spec.parameters))

"""Tools made from tool specs, with the framework's own decorator, which validates what a body is called with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import Parameter as Argument
from typing import Any

from strands import ToolContext, tool

from ...contract import AsksAgain, ToolSpec
from ...current import world
from ...declared import arguments, signed
from .answers import read
from .gates import NAME, answered, asks
from .requests import question

_CONTEXT = "tool_context"

Run = Callable[[dict[str, Any], ToolContext], Awaitable[Any]]


def made(spec: ToolSpec, *, asking: bool) -> Any:
    """
    Gives the tool that *spec* describes.

    Arguments:
        asking: Where the spec is gated, the body asks.
    """
    run = _asking_again(spec, _run(spec)) if spec.asks_again else _run(spec)
    if asking and spec.approval != "never":
        run = _asking(spec, run)

    async def body(**given: Any) -> Any:
        context = given.pop(_CONTEXT)
        return await run(given, context)

    body.__name__ = spec.name
    signed(body, *arguments(spec.parameters), Argument(_CONTEXT, Argument.KEYWORD_ONLY, annotation=ToolContext))
    return tool(name=spec.name, description=spec.description or spec.name, context=_CONTEXT)(body)


def _run(spec: ToolSpec) -> Run:
    async def run(arguments: dict[str, Any], context: ToolContext) -> Any:
        return await world().run(spec.name, arguments, context.tool_use["toolUseId"], agent=spec.agent)

    return run


def _asking(spec: ToolSpec, run: Run) -> Run:
    """Asks at the beginning of the body, as the guide has it for tools."""

    async def asking(arguments: dict[str, Any], context: ToolContext) -> Any:
        if not await asks(spec, context.agent, context.tool_use):
            return await run(arguments, context)
        response = context.interrupt(NAME, reason=question(spec, context.tool_use))
        answer = answered(spec, context.agent, response)
        if answer.refusal is not None:
            return answer.refusal
        return await run(arguments if answer.input is None else dict(answer.input), context)

    return asking


def _asking_again(spec: ToolSpec, run: Run) -> Run:
    """
    Asks in the middle of the body.

    The body is run again from its beginning when the answer is there. So that what stands before the question is not
    done twice, `agent.state` remembers that it was asked, as the guide has it for what must survive.
    """

    async def asking_again(arguments: dict[str, Any], context: ToolContext) -> Any:
        asked = f"{context.tool_use['toolUseId']}-asked"
        if not context.agent.state.get(asked):
            try:
                return await run(arguments, context)
            except AsksAgain:
                context.agent.state.set(asked, True)
        answer = read(context.interrupt("once-more", reason=question(spec, context.tool_use)))
        context.agent.state.delete(asked)
        if answer.refusal is not None:
            return answer.refusal
        return await run(arguments if answer.input is None else dict(answer.input), context)

    return asking_again

"""
Tools made from tool specs.

In each flavour a tool is something else: a function that the framework gates, a function that asks by itself, or a
class of its own that says whether it is gated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import Parameter as Argument
from typing import Any

from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.genai import types

from ...contract import AsksAgain, Condition, ToolSpec
from ...current import world
from ...declared import arguments, signed

WAITS = {"error": "This tool call requires confirmation, please approve or reject."}

Body = Callable[..., Awaitable[Any]]


# --- what gates -------------------------------------------------------------------------------------------------------


def policy(spec: ToolSpec) -> Any:
    """Gives what `require_confirmation` takes: yes, no, or a function of the call."""
    if not isinstance(spec.approval, Condition):
        return spec.approval == "always"

    async def asks(tool_context: ToolContext, **arguments: Any) -> bool:
        return await gated(spec, arguments, tool_context)

    return asks


async def gated(spec: ToolSpec, arguments: Mapping[str, Any], context: Any) -> bool:
    """Says whether a call needs approval."""
    if not isinstance(spec.approval, Condition):
        return spec.approval == "always"
    return await world().gate_slowly(spec.name, dict(arguments), context.function_call_id, agent=spec.agent)


# --- the flavours -----------------------------------------------------------------------------------------------------


def confirmed(spec: ToolSpec) -> Any:
    """Gives a function that the framework gates."""
    return FunctionTool(_function(spec, _run(spec)), require_confirmation=policy(spec))


def asking(spec: ToolSpec) -> Any:
    """Gives a function that asks by itself, and takes what the person wrote into the payload of the answer."""
    run = _run(spec)

    async def ask(tool_context: Any, **arguments: Any) -> Any:
        answer = tool_context.tool_confirmation
        if answer is None and await gated(spec, arguments, tool_context):
            return waits(tool_context, payload={"arguments": arguments})
        if answer is not None and not answer.confirmed:
            return {"error": rejected(answer.payload)}
        return await run(tool_context, **edited(answer, arguments))

    return FunctionTool(_function(spec, ask))


def custom(spec: ToolSpec) -> Any:
    """Gives a tool of a class of its own, which leaves the answer to the framework."""
    return CustomTool(spec)


class CustomTool(BaseTool):  # type: ignore[misc, unused-ignore]
    """A tool that says whether it is gated and trusts the framework to keep to it."""

    def __init__(self, spec: ToolSpec) -> None:
        super().__init__(name=spec.name, description=spec.description or spec.name)
        self._tool = spec
        self._body = _run(spec)

    def _get_declaration(self) -> Any:
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters=schema(self._tool))

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: Any) -> bool:
        """See `BaseTool.check_require_confirmation`."""
        return await gated(self._tool, args, tool_context)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Runs the tool; a release that leaves the question to the tool is asked here."""
        if tool_context.tool_confirmation is None and await self._must_ask(args, tool_context):
            return waits(tool_context)
        return await self._body(tool_context, **{**defaults(self._tool), **args})

    async def _must_ask(self, args: dict[str, Any], tool_context: Any) -> bool:
        if framework_gates():
            return False
        return await self.check_require_confirmation(args, tool_context)


def framework_gates() -> bool:
    """Says whether the framework asks for every tool that says it is gated; before, each tool had to."""
    try:
        from google.adk.tools import _confirmation_utils
    except ImportError:
        return False
    return hasattr(_confirmation_utils, "apply_confirmation_gate")


# --- bodies -----------------------------------------------------------------------------------------------------------


def _run(spec: ToolSpec) -> Body:
    async def run(tool_context: Any, **arguments: Any) -> Any:
        try:
            return await world().run(spec.name, arguments, tool_context.function_call_id, agent=spec.agent)
        except AsksAgain as asked:
            return waits(tool_context, hint=str(asked))

    async def hand_over(tool_context: Any) -> Any:
        tool_context.actions.transfer_to_agent = spec.hands_over_to
        return {"result": f"{spec.hands_over_to} takes over."}

    return hand_over if spec.hands_over_to else run


def waits(context: Any, *, hint: str = "", payload: Any = None) -> dict[str, str]:
    """Asks for a confirmation, and ends the run: the model is not asked about what only waits."""
    context.request_confirmation(hint=hint or "Please approve or reject the tool call.", payload=payload)
    context.actions.skip_summarization = True
    return dict(WAITS)


def edited(answer: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Gives the arguments that the person wrote, or those of the call."""
    payload = answer.payload if answer is not None else None
    written = payload.get("arguments") if isinstance(payload, dict) else None
    return dict(written) if isinstance(written, dict) else arguments


def rejected(payload: Any) -> str:
    """Gives what the model is told of a rejection."""
    reason = payload.get("reason") if isinstance(payload, dict) else None
    return f"This tool call is rejected: {reason}" if reason else "This tool call is rejected."


# --- schemas ----------------------------------------------------------------------------------------------------------


def _function(spec: ToolSpec, run: Body) -> Body:
    """Gives a function with the signature that *spec* describes."""
    missing = defaults(spec)

    async def body(tool_context: Any, **arguments: Any) -> Any:
        return await run(tool_context, **{**missing, **arguments})

    body.__name__ = body.__qualname__ = spec.name
    body.__doc__ = spec.description or spec.name
    return signed(
        body, Argument("tool_context", Argument.KEYWORD_ONLY, annotation=ToolContext), *arguments(spec.parameters)
    )


def defaults(spec: ToolSpec) -> dict[str, Any]:
    """Gives the parameters that a call may leave out."""
    return {name: one.default for name, one in spec.parameters.items() if not one.required}


def schema(spec: ToolSpec) -> types.Schema:
    """Gives the parameters as a declaration has them."""
    return types.Schema(
        type=types.Type.OBJECT,
        properties={name: types.Schema(type=types.Type(one.type.upper())) for name, one in spec.parameters.items()},
        required=[name for name, one in spec.parameters.items() if one.required],
    )

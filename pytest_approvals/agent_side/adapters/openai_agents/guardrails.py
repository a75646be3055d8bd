"""Guardrails that let everything through: an application's own checks, which stand around agents and their tools."""

from __future__ import annotations

from typing import Any

from agents import (
    Agent,
    FunctionTool,
    GuardrailFunctionOutput,
    InputGuardrail,
    OutputGuardrail,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputGuardrail,
)


def guard(agent: Agent[Any]) -> None:
    """Puts a guardrail before and behind *agent*, and before and behind each of its tools that runs here."""
    agent.input_guardrails = [InputGuardrail(guardrail_function=_fine, name="input")]
    agent.output_guardrails = [OutputGuardrail(guardrail_function=_fine, name="output")]
    for tool in agent.tools:
        if isinstance(tool, FunctionTool):
            tool.tool_input_guardrails = [ToolInputGuardrail(guardrail_function=_allowed, name="before")]
            tool.tool_output_guardrails = [ToolOutputGuardrail(guardrail_function=_allowed, name="behind")]


async def _fine(context: Any, agent: Any, seen: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


async def _allowed(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.allow()

"""Guardrails of tools in the OpenAI Agents SDK, after https://openai.github.io/openai-agents-python/guardrails/.

One answers in place of the body, one replaces what the body returned; both are what the application wants.
"""

from __future__ import annotations

from typing import Any

import pytest
from agents import (
    Agent,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    ToolOutputGuardrailData,
    function_tool,
    tool_input_guardrail,
    tool_output_guardrail,
)

from pytest_approvals import Approvals, CheckFailed, approve_all, calls, reject_all, say

read: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_read() -> None:
    read.clear()


@tool_input_guardrail
def block_foreign(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    if "foreign" in data.context.tool_arguments:
        return ToolGuardrailFunctionOutput.reject_content("Remove what is foreign.")
    return ToolGuardrailFunctionOutput.allow()


@tool_output_guardrail
def redact(data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
    if "sk-" in str(data.output):
        return ToolGuardrailFunctionOutput.reject_content("The output contained sensitive data.")
    return ToolGuardrailFunctionOutput.allow()


def read_file(path: str) -> str:
    """Reads a file."""
    read.append(path)
    return "sk-123" if path == ".env" else f"content of {path}"


def build(model: Any, gated: bool = False) -> Agent[None]:
    tool = function_tool(
        read_file, needs_approval=gated, tool_input_guardrails=[block_foreign], tool_output_guardrails=[redact]
    )
    return Agent[None](name="clerk", model=model, tools=[tool])


def build_gated(model: Any) -> Agent[None]:
    return build(model, gated=True)


FOREIGN = [calls("read_file", path="foreign.txt"), say("No.")]
SECRET = [calls("read_file", path=".env"), say("It is secret.")]


@pytest.mark.parametrize("stream", [False, True])
def test_a_guardrail_may_answer_for_a_tool_and_change_its_result(approvals: Approvals, stream: bool) -> None:
    model = [calls("read_file", path="a.txt"), *FOREIGN[:1], *SECRET]
    approvals.run(build, "Read", model=model, stream=stream)

    assert ["a.txt", ".env"] == read


@pytest.mark.parametrize("serialize", ["none", "json"])
@pytest.mark.parametrize("model", [FOREIGN, SECRET])
def test_a_guardrail_may_answer_for_an_approved_call(approvals: Approvals, model: Any, serialize: Any) -> None:
    run = approvals.run(build_gated, "Read", model=model, oracle=approve_all(), serialize=serialize)

    assert ["read_file"] == [request.tool for request in run.requests]


def test_a_rejected_call_does_not_run(approvals: Approvals) -> None:
    approvals.run(build_gated, "Read", model=SECRET, oracle=reject_all("secret"))

    assert [] == read


def test_a_guardrail_is_no_gate(approvals: Approvals) -> None:
    with pytest.raises(CheckFailed, match=r"approval-before-execution"):
        approvals.run(build, "Read", model=SECRET, gated={"read_file"})

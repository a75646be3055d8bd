"""Agents of Google ADK that the body of a tool runs with a `Runner`, and agents in a sequence.

After https://google.github.io/adk-docs/runtime/ and https://google.github.io/adk-docs/agents/workflow-agents/.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import App
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool
from google.genai import types

from pytest_approvals import Approvals, CheckFailed, approve_all, calls, say

done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def look_up(order: int) -> dict[str, Any]:
    """Looks up an order."""
    done.append(f"look up {order}")
    return {"order": order, "status": "old"}


def refund(order: int) -> dict[str, Any]:
    """Refunds an order."""
    done.append(f"refund {order}")
    return {"result": f"refunded {order}"}


def write_message(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def final_text(event: Any) -> str:
    return str(event.content.parts[0].text) if event.is_final_response() and event.content else ""


def build_awaiting(model: Any) -> LlmAgent:
    auditor = LlmAgent(name="auditor", model=model, tools=[look_up, refund])

    async def audit(request: str) -> str:
        """Audits an order."""
        service = InMemorySessionService()
        session = await service.create_session(app_name="audit", user_id="desk")
        runner = Runner(agent=auditor, app_name="audit", session_service=service)
        events = runner.run_async(user_id="desk", session_id=session.id, new_message=write_message(request))
        return "".join([final_text(event) async for event in events])

    return LlmAgent(name="desk", model=model, tools=[audit])


def build_blocking(model: Any) -> LlmAgent:
    auditor = LlmAgent(name="auditor", model=model, tools=[look_up, refund])

    def audit(request: str) -> str:
        """Audits an order."""
        runner = InMemoryRunner(agent=auditor, app_name="audit")
        session = runner.session_service.create_session_sync(app_name="audit", user_id="desk")
        events = runner.run(user_id="desk", session_id=session.id, new_message=write_message(request))
        return "".join(final_text(event) for event in events)

    return LlmAgent(name="desk", model=model, tools=[audit])


def build_two_deep(model: Any) -> LlmAgent:
    desk = build_awaiting(model)

    async def ask_desk(request: str) -> str:
        """Asks the desk."""
        runner = InMemoryRunner(agent=desk, app_name="desk")
        session = await runner.session_service.create_session(app_name="desk", user_id="front")
        events = runner.run_async(user_id="front", session_id=session.id, new_message=write_message(request))
        return "".join([final_text(event) async for event in events])

    return LlmAgent(name="front", model=model, tools=[ask_desk])


def build_sequence(model: Any) -> SequentialAgent:
    sales = LlmAgent(name="sales", model=model, tools=[look_up])
    refunds = LlmAgent(name="refunds", model=model, tools=[FunctionTool(refund, require_confirmation=True)])
    return SequentialAgent(name="shop", sub_agents=[sales, refunds])


def build_workflow(model: Any) -> Any:
    from google.adk.workflow import START, Workflow

    sales = LlmAgent(name="sales", model=model, tools=[look_up])
    refunds = LlmAgent(name="refunds", model=model, tools=[refund])
    return Workflow(name="shop", edges=[(START, sales, refunds)])


def build_workflow_app(model: Any) -> App:
    return App(name="shop", root_agent=build_workflow(model))


INSIDE = [calls("look_up", order=42), calls("refund", order=42), say("No objection.")]
NAMED: Any = {"main": [calls("audit", request="order 42"), say("Fine.")], "auditor": INSIDE}
SHARED: Any = [calls("audit", request="order 42"), *INSIDE, say("Fine.")]

Build = Callable[[Any], Any]

# The framework recommends what cannot be a sub-agent yet.
pytestmark = [
    pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Deprecated.*:DeprecationWarning"),
]


@pytest.mark.parametrize("build", [build_awaiting, build_blocking])
@pytest.mark.parametrize("model", [NAMED, SHARED], ids=["named", "shared"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_an_agent_in_a_body_does_is_seen(approvals: Approvals, build: Build, model: Any, stream: bool) -> None:
    run = approvals.run(build, "Audit it", model=model, stream=stream)

    assert ["look up 42", "refund 42"] == done
    assert [{"result": "refunded 42"}] == [one.result for one in run.calls["refund"].executions]
    assert ["auditor"] == [call.agent for call in run.calls["refund"].made]
    assert "Fine." == run.output


@pytest.mark.parametrize("build", [build_awaiting, build_blocking])
def test_a_gate_that_an_agent_in_a_body_forgot_is_found(approvals: Approvals, build: Build) -> None:
    with pytest.raises(CheckFailed, match=r"approval-before-execution"):
        approvals.run(build, "Audit it", model=NAMED, gated={"refund"})


def test_agents_are_seen_two_deep(approvals: Approvals) -> None:
    run = approvals.run(
        build_two_deep,
        "Audit it",
        model={
            "main": [calls("ask_desk", request="order 42"), say("Done.")],
            "desk": [calls("audit", request="order 42"), say("Fine.")],
            "auditor": INSIDE,
        },
    )

    assert ["auditor"] == [call.agent for call in run.calls["refund"].made]
    assert ["Fine."] == [one.result for one in run.calls["ask_desk"].executions]


@pytest.mark.parametrize("serialize", ["none", "json"])
def test_agents_of_a_sequence_are_seen(approvals: Approvals, serialize: Any) -> None:
    run = approvals.run(
        build_sequence,
        "Refund it",
        model=[calls("look_up", order=1), say("Found."), calls("refund", order=1), say("Done.")],
        oracle=approve_all(),
        serialize=serialize,
    )

    assert ["look up 1", "refund 1"] == done
    assert ["refund"] == [request.tool for request in run.requests]


@pytest.mark.parametrize("build", [build_workflow, build_workflow_app])
def test_agents_of_a_workflow_are_seen(approvals: Approvals, build: Build) -> None:
    """The second one gets what the first one has said, and not the caller's message."""
    run = approvals.run(
        build,
        "Refund it",
        model=[calls("look_up", order=1), say("Found."), calls("refund", order=1), say("Done.")],
    )

    assert ["sales", "refunds"] == [call.agent for name in ("look_up", "refund") for call in run.calls[name].made]


# --- results ----------------------------------------------------------------------------------------------------------


def returns_error(order: int) -> dict[str, str]:
    return {"error": "no such order"}


def returns_error_unannotated(order: int):  # type: ignore[no-untyped-def]
    return {"error": "no such order"}


def returns_result(order: int) -> dict[str, int]:
    return {"result": order}


def returns_result_unannotated(order: int):  # type: ignore[no-untyped-def]
    return {"result": order}


def returns_output(order: int) -> dict[str, int]:
    return {"output": order}


def returns_list(order: int) -> list[int]:
    return [order]


def returns_text(order: int) -> str:
    return f"order {order}"


TOOLS = [
    returns_error,
    returns_error_unannotated,
    returns_result,
    returns_result_unannotated,
    returns_output,
    returns_list,
    returns_text,
]


@pytest.mark.parametrize("tool", [tool.__name__ for tool in TOOLS])
@pytest.mark.parametrize("stream", [False, True])
def test_a_body_may_return_what_the_framework_wraps_results_in(approvals: Approvals, tool: str, stream: bool) -> None:
    model = [calls(tool, order=42), calls("returns_text", order=7), say("Done.")]
    run = approvals.run(lambda model: LlmAgent(name="desk", model=model, tools=[*TOOLS]), model=model, stream=stream)

    assert [] == [verdict for verdict in run.verdicts if verdict.status in ("fail", "warning")]


def test_a_callback_may_answer_for_a_tool_and_change_its_result(approvals: Approvals) -> None:
    """After "Types of callbacks" of the documentation: a guardrail before a tool, and a note behind its result."""

    def before(tool: Any, args: dict[str, Any], tool_context: Any) -> dict[str, str] | None:
        return {"result": "Tool execution was blocked."} if args["order"] == 13 else None

    def behind(tool: Any, args: dict[str, Any], tool_context: Any, tool_response: Any) -> dict[str, str] | None:
        return {"result": "redacted"} if args["order"] == 7 else None

    def build(model: Any) -> LlmAgent:
        callbacks: Any = {"before_tool_callback": before, "after_tool_callback": behind}
        return LlmAgent(name="desk", model=model, tools=[returns_text], **callbacks)

    model = [calls("returns_text", order=13), calls("returns_text", order=7), say("Done.")]
    run = approvals.run(build, model=model)

    assert [7] == [one.arguments["order"] for one in run.calls["returns_text"].executions]


def test_a_made_up_result_is_still_found(approvals: Approvals) -> None:
    """The framework's wrapping excuses no other text."""

    def make_up(callback_context: Any, llm_request: Any) -> None:
        for part in llm_request.contents[-1].parts:
            if part.function_response is not None:
                part.function_response.response = {"result": "refunded twice"}

    def build(model: Any) -> LlmAgent:
        return LlmAgent(name="desk", model=model, tools=[returns_error], before_model_callback=make_up)

    with pytest.raises(CheckFailed, match=r"result-matches-its-call"):
        approvals.run(build, model=[calls("returns_error", order=42), say("Done.")])

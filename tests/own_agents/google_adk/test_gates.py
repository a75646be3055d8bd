"""Every way in which the documentation of Google ADK lets a person stand before a call, each as it writes it.

https://google.github.io/adk-docs/tools-custom/confirmation/
"""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.tools import FunctionTool, ToolContext

from pytest_approvals import Approvals, approve, approve_all, calls, edit, reject, reject_all, say, send, when

done: list[Any] = []

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning"),
]


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def reimburse(amount: int) -> dict[str, str]:
    """Reimburses an amount."""
    done.append(amount)
    return {"status": "ok", "amount": str(amount)}


def reimburse_in_context(amount: int, tool_context: ToolContext) -> dict[str, str]:
    """Reimburses an amount, with the context that its gate reads, too."""
    return reimburse(amount)


def is_large(amount: int) -> bool:
    return amount > 1000


async def is_large_in_context(amount: int, tool_context: ToolContext) -> bool:
    return amount > tool_context.state.get("limit", 1000)


def make(model: Any, *tools: Any, **options: Any) -> LlmAgent:
    return LlmAgent(name="clerk", model=model, tools=list(tools), **options)


def of_bool(model: Any) -> LlmAgent:
    return make(model, FunctionTool(reimburse, require_confirmation=True))


def of_app(model: Any) -> App:
    """Put the agent into a resumable app."""
    return App(name="clerks", root_agent=of_bool(model), resumability_config=ResumabilityConfig(is_resumable=True))


TWO = [calls("reimburse", amount=5), calls("reimburse", amount=6), say("Done.")]


@pytest.mark.parametrize("serialize", ["none", "json"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("build", [of_bool, of_app])
def test_require_confirmation(approvals: Approvals, build: Any, serialize: Any, stream: bool) -> None:
    """A bool gates all calls of a tool."""
    approvals.run(
        build,
        model=TWO,
        caller=[send("Pay"), approve("c1"), reject("c2")],
        gated={"reimburse"},
        serialize=serialize,
        stream=stream,
    )

    assert [5] == done


@pytest.mark.parametrize(
    ("body", "function"),
    [
        (reimburse, is_large),
        (reimburse, lambda amount: amount > 1000),
        (reimburse_in_context, is_large_in_context),
    ],
)
def test_require_confirmation_by_a_function(approvals: Approvals, body: Any, function: Any) -> None:
    """A function of the arguments decides, with or without the context."""
    name = body.__name__
    run = approvals.run(
        lambda model: make(model, FunctionTool(body, require_confirmation=function)),
        "Pay",
        model=[calls(name, amount=5), calls(name, amount=5000), say("Done.")],
        oracle=approve_all(),
        gated={name: when("amount", greater_than=1000)},
    )

    assert [5, 5000] == done
    assert 1 == len(run.requests)


def request_time_off(days: int, tool_context: ToolContext) -> dict[str, Any]:
    """Requests days off."""
    confirmation = tool_context.tool_confirmation
    if not confirmation:
        tool_context.request_confirmation(
            hint="Please approve or reject the tool call request_time_off().", payload={"approved_days": 0}
        )
        return {"status": "Manager approval is required."}
    approved = min((confirmation.payload or {}).get("approved_days", 0), days) if confirmation.confirmed else 0
    if approved == 0:
        return {"status": "The time off request is rejected.", "approved_days": 0}
    done.append(approved)
    return {"status": "ok", "approved_days": approved}


ANSWERS: Any = {
    "approve": lambda decision: {"confirmed": True, "payload": {"approved_days": 99}},
    "reject": {"confirmed": False},
    "edit": lambda decision: {"confirmed": True, "payload": {"approved_days": decision.arguments["days"]}},
}


@pytest.mark.parametrize(("decision", "days"), [(approve("c1"), [5]), (reject("c1"), []), (edit("c1", days=2), [2])])
def test_request_confirmation(approvals: Approvals, decision: Any, days: list[int]) -> None:
    """A body asks with a hint and a payload, and reads the payload of the answer."""
    approvals.run(
        lambda model: make(model, request_time_off),
        model=[calls("request_time_off", days=5), say("I have asked."), say("Done.")],
        caller=[send("Five days off"), decision],
        answers=ANSWERS,
    )

    assert days == done


def test_callback(approvals: Approvals) -> None:
    """A callback before the tool asks with the same context."""

    def ask(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> Any:
        confirmation = tool_context.tool_confirmation
        if confirmation is None:
            tool_context.request_confirmation(hint=f"Reimburse {args['amount']}?")
            return {"status": "waiting"}
        return None if confirmation.confirmed else {"status": "rejected"}

    approvals.run(
        lambda model: make(model, reimburse, before_tool_callback=ask),
        "Pay",
        model=[calls("reimburse", amount=5), say("I have asked."), say("No.")],
        oracle=reject_all(),
    )

    assert [] == done


def test_sub_agent(approvals: Approvals) -> None:
    """A sub-agent's gated tool asks after a hand-over."""

    def build(model: Any) -> LlmAgent:
        payments = LlmAgent(name="payments", model=model, tools=[FunctionTool(reimburse, require_confirmation=True)])
        return make(model, sub_agents=[payments])

    approvals.run(
        build,
        "Pay",
        model={
            "main": [calls("transfer_to_agent", agent_name="payments")],
            "payments": [calls("reimburse", amount=5), say("Paid.")],
        },
        oracle=approve_all(),
        gated={"reimburse"},
    )

    assert [5] == done


def find_receipt(number: int) -> str:
    """Finds a receipt."""
    return f"receipt {number}"


def test_sub_agent_after_a_call(approvals: Approvals) -> None:
    """The framework quotes to the sub-agent what its parent did before."""

    def build(model: Any) -> LlmAgent:
        payments = LlmAgent(name="payments", model=model, tools=[FunctionTool(reimburse, require_confirmation=True)])
        return LlmAgent(name="desk", model=model, tools=[find_receipt], sub_agents=[payments])

    approvals.run(
        build,
        "Pay",
        model={
            "main": [calls("find_receipt", number=1), calls("transfer_to_agent", agent_name="payments")],
            "payments": [calls("reimburse", amount=5), say("Paid.")],
        },
        oracle=approve_all(),
        gated={"reimburse"},
    )

    assert [5] == done

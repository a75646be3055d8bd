"""A clerk of LangGraph whose tool asks by itself, after https://docs.langchain.com/oss/python/langgraph/interrupts.

The tool calls `interrupt` with a payload of its own and reads an answer of its own, in an agent of `create_agent` and
in a graph of one's own with a `ToolNode`.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from pytest_approvals import Approvals, approve, approve_all, call, calls, edit, reject, reject_all, say, send

sent: list[tuple[str, str]] = []


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


@tool
def send_email(to: str, subject: str) -> str:
    """Sends an email."""
    answer = interrupt({"action": "send_email", "to": to, "subject": subject, "message": "Approve sending this email?"})
    if answer.get("action") != "approve":
        return f"cancelled by the user: {answer.get('why')}"
    to = answer.get("to", to)
    sent.append((to, subject))
    return f"sent to {to}"


@tool
def transfer(amount: int) -> str:
    """Transfers money."""
    if not interrupt(f"May I transfer {amount}?"):
        return "not transferred"
    sent.append(("bank", str(amount)))
    return f"transferred {amount}"


def build(model: Any) -> Any:
    return create_agent(model, [send_email])


def build_graph(model: Any) -> Any:
    bound = model.bind_tools([transfer])

    async def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    def route(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    graph = StateGraph(MessagesState).add_node("model", ask).add_node("tools", ToolNode([transfer]))
    graph.add_edge(START, "model").add_conditional_edges("model", route, ["tools", END]).add_edge("tools", "model")
    return graph.compile()


ANSWERS: dict[Any, Any] = {
    "approve": {"action": "approve"},
    "reject": lambda decision: {"action": "cancel", "why": decision.reason},
    "edit": lambda decision: {"action": "approve", **decision.arguments},
}
YES_OR_NO: dict[Any, Any] = {"approve": True, "reject": False}
MAIL = [calls("send_email", to="ann@else.example", subject="Hi"), say("Done.")]
MONEY = [calls("transfer", amount=5), say("Done.")]


def test_an_approved_mail_is_sent_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Answer Ann", model=MAIL, oracle=approve_all(), answers=ANSWERS)

    assert [("ann@else.example", "Hi")] == sent
    assert [("send_email", {"to": "ann@else.example", "subject": "Hi"})] == [
        (request.tool, request.arguments) for request in run.requests
    ]


def test_a_rejected_mail_is_not_sent(approvals: Approvals) -> None:
    run = approvals.run(build, "Answer Ann", model=MAIL, oracle=reject_all("wrong tone"), answers=ANSWERS)

    assert [] == sent
    assert "cancelled by the user: wrong tone" in str(run.transcript)


def test_another_recipient_gets_the_mail(approvals: Approvals) -> None:
    approvals.run(
        build, model=MAIL, caller=[send("Answer Ann"), edit("c1", {"to": "bob", "subject": "Hi"})], answers=ANSWERS
    )

    assert [("bob", "Hi")] == sent


@pytest.mark.parametrize("stream", [False, True])
def test_each_of_two_mails_has_its_answer(approvals: Approvals, stream: bool) -> None:
    both = calls(call("send_email", to="ann", subject="Hi"), call("send_email", to="bob", subject="Hi"))
    approvals.run(
        build,
        model=[both, say("One.")],
        caller=[send("Answer both"), reject("c1", "no"), approve("c2")],
        answers=ANSWERS,
        stream=stream,
    )

    assert [("bob", "Hi")] == sent


@pytest.mark.parametrize("serialize", ["none", "copy", "native.sqlite"])
@pytest.mark.parametrize("oracle", ["approve_all", "reject_all"])
def test_a_graph_of_ones_own_takes_a_plain_yes(approvals: Approvals, oracle: str, serialize: Any) -> None:
    approvals.run(build_graph, "Pay", model=MONEY, oracle=oracle, answers=YES_OR_NO, serialize=serialize)

    assert ([("bank", "5")] if oracle == "approve_all" else []) == sent


def test_a_graph_of_ones_own_streams(approvals: Approvals) -> None:
    run = approvals.run(build_graph, "Pay", model=MONEY, oracle=approve_all(), answers=YES_OR_NO, stream=True)

    assert "Done." == run.output

"""Agents of LangGraph inside others: in the body of a tool, in a graph of one's own, as its nodes.

After https://docs.langchain.com/oss/python/langchain/multi-agent/subagents and
https://docs.langchain.com/oss/python/langgraph/use-subgraphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_tool_call
from langchain.tools import tool
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from pytest_approvals import Approvals, CheckFailed, approve_all, calls, reject_all, say

done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@tool
def look_up(order: int) -> str:
    """Looks up an order."""
    done.append(f"look up {order}")
    return f"order {order} is old"


@tool
def refund(order: int) -> str:
    """Refunds an order."""
    done.append(f"refund {order}")
    return f"refunded {order}"


def last_text(result: Any) -> str:
    return str(result["messages"][-1].text)


def build_clerk(model: Any, name: str, *, gated: bool = True) -> Any:
    gates = [HumanInTheLoopMiddleware({"refund": True})] if gated else []
    return create_agent(model, [look_up, refund], middleware=gates, name=name)


def build_blocking(model: Any) -> Any:
    auditor = build_clerk(model, "auditor")

    @tool
    def audit(request: str) -> str:
        """Audits an order."""
        return last_text(auditor.invoke({"messages": [{"role": "user", "content": request}]}))

    return create_agent(model, [audit])


def build_awaiting(model: Any) -> Any:
    auditor = build_clerk(model, "auditor")

    @tool
    async def audit(request: str) -> str:
        """Audits an order."""
        return last_text(await auditor.ainvoke({"messages": [{"role": "user", "content": request}]}))

    return create_agent(model, [audit])


def build_in_the_body(model: Any) -> Any:
    """The agent is made when the tool runs, so that nothing leads to it before."""

    @tool
    def audit(request: str) -> str:
        """Audits an order."""
        auditor = build_clerk(model, "auditor")
        for chunk in auditor.stream({"messages": [{"role": "user", "content": request}]}, stream_mode="values"):
            last = chunk
        return last_text(last)

    return create_agent(model, [audit])


def build_careless(model: Any) -> Any:
    auditor = build_clerk(model, "auditor", gated=False)

    @tool
    def audit(request: str) -> str:
        """Audits an order."""
        return last_text(auditor.invoke({"messages": [{"role": "user", "content": request}]}))

    return create_agent(model, [audit])


def build_two_deep(model: Any) -> Any:
    clerk = build_clerk(model, "clerk")

    @tool
    def ask_clerk(request: str) -> str:
        """Asks the clerk."""
        return last_text(clerk.invoke({"messages": [{"role": "user", "content": request}]}))

    auditor = create_agent(model, [ask_clerk], name="auditor")

    @tool
    async def audit(request: str) -> str:
        """Audits an order."""
        return last_text(await auditor.ainvoke({"messages": [{"role": "user", "content": request}]}))

    return create_agent(model, [audit])


def build_with_a_fake(model: Any) -> Any:
    writer = create_agent(GenericFakeChatModel(messages=iter([AIMessage("by itself")])), [], name="writer")

    @tool
    def write(request: str) -> str:
        """Writes."""
        return last_text(writer.invoke({"messages": [{"role": "user", "content": request}]}))

    return create_agent(model, [write])


INSIDE = [calls("look_up", order=42), calls("refund", order=42), say("No objection.")]
NAMED: Any = {"main": [calls("audit", request="order 42"), say("Fine.")], "auditor": INSIDE}
SHARED: Any = [calls("audit", request="order 42"), *INSIDE, say("Fine.")]

Build = Callable[[Any], Any]


@pytest.mark.parametrize("build", [build_blocking, build_awaiting, build_in_the_body])
@pytest.mark.parametrize("model", [NAMED, SHARED], ids=["named", "shared"])
def test_what_an_agent_in_a_body_does_is_seen(approvals: Approvals, build: Build, model: Any) -> None:
    run = approvals.run(build, "Audit it", model=model, oracle=approve_all())

    assert ["look up 42", "refund 42"] == done
    assert ["order 42 is old"] == [one.result for one in run.calls["look_up"].executions]
    assert ["refund"] == [request.tool for request in run.requests]
    assert ["auditor"] == [call.agent for call in run.calls["refund"].made]


@pytest.mark.parametrize("build", [build_blocking, build_awaiting])
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_rejected_in_a_body_does_not_run(approvals: Approvals, build: Build, stream: bool) -> None:
    approvals.run(build, "Audit it", model=NAMED, oracle=reject_all("no"), gated={"refund"}, stream=stream)

    assert ["look up 42"] == done


@pytest.mark.parametrize("build", [build_blocking, build_awaiting])
def test_a_request_from_a_body_survives_a_restart(approvals: Approvals, build: Build) -> None:
    run = approvals.run(build, "Audit it", model=NAMED, oracle=approve_all(), serialize="native.sqlite", resume="fresh")

    assert ["refunded 42"] == [one.result for one in run.calls["refund"].executions]


@pytest.mark.parametrize("build", [build_careless])
def test_a_gate_that_an_agent_in_a_body_forgot_is_found(approvals: Approvals, build: Build) -> None:
    with pytest.raises(CheckFailed, match=r"approval-before-execution"):
        approvals.run(build, "Audit it", model=NAMED, gated={"refund"})


def test_agents_are_seen_two_deep(approvals: Approvals) -> None:
    run = approvals.run(
        build_two_deep,
        "Audit it",
        model={
            "main": [calls("audit", request="order 42"), say("Fine.")],
            "auditor": [calls("ask_clerk", request="order 42"), say("Nor have I.")],
            "clerk": INSIDE,
        },
        oracle=approve_all(),
    )

    assert ["refunded 42"] == [one.result for one in run.calls["refund"].executions]
    assert ["clerk"] == [call.agent for call in run.calls["refund"].made]


def test_a_fake_model_of_an_agent_in_a_body_is_kept(approvals: Approvals) -> None:
    run = approvals.run(build_with_a_fake, "Write", model=[calls("write", request="a poem"), say("Written.")])

    assert ["by itself"] == [one.result for one in run.calls["write"].executions]


# --- middleware -------------------------------------------------------------------------------------------------------


@wrap_tool_call
async def redact(request: Any, handler: Any) -> Any:
    """Answers for one order, and changes the result of the others."""
    if request.tool_call["args"]["order"] == 13:
        return ToolMessage("blocked", tool_call_id=request.tool_call["id"])
    await handler(request)
    return ToolMessage("redacted", tool_call_id=request.tool_call["id"])


def test_a_middleware_may_answer_for_a_tool_and_change_its_result(approvals: Approvals) -> None:
    approvals.run(
        lambda model: create_agent(model, [look_up], middleware=[redact]),
        "Look",
        model=[calls("look_up", order=13), calls("look_up", order=7), say("Done.")],
    )

    assert ["look up 7"] == done


# --- graphs of one's own ----------------------------------------------------------------------------------------------


def build_by_hand(model: Any) -> Any:
    """The tools are run by a node that is a plain function, as in the quick start of LangGraph."""
    bound = model.bind_tools([look_up, refund])
    tools = {one.name: one for one in (look_up, refund)}

    def ask_model(state: MessagesState) -> Any:
        return {"messages": [bound.invoke(state["messages"])]}

    def run_tools(state: MessagesState) -> Any:
        results: list[Any] = []
        for made in getattr(state["messages"][-1], "tool_calls", ()):
            question = {"name": made["name"], "args": made["args"], "tool_call_id": made["id"]}
            if made["name"] == "refund" and interrupt(question)["type"] != "approve":
                results.append(ToolMessage("rejected by the user", tool_call_id=made["id"]))
            else:
                results.append(ToolMessage(tools[made["name"]].invoke(made["args"]), tool_call_id=made["id"]))
        return {"messages": results}

    def route(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    graph = StateGraph(MessagesState).add_node("model", ask_model).add_node("tools", run_tools)
    graph.add_edge(START, "model").add_conditional_edges("model", route, ["tools", END]).add_edge("tools", "model")
    return graph.compile()


def build_of_graphs(model: Any) -> Any:
    """The nodes are agents; the second one sees the messages of the first."""
    graph = StateGraph(MessagesState)
    graph.add_node("sales", create_agent(model, [look_up], name="sales"))
    graph.add_node("refunds", build_clerk(model, "refunds"))
    return graph.add_edge(START, "sales").add_edge("sales", "refunds").compile()


def test_tools_that_a_function_runs_are_seen(approvals: Approvals) -> None:
    model = [calls("look_up", order=1), calls("refund", order=1), say("Done.")]
    run = approvals.run(build_by_hand, "Refund it", model=model, oracle=approve_all())

    assert ["order 1 is old"] == [one.result for one in run.calls["look_up"].executions]
    assert ["refunded 1"] == [one.result for one in run.calls["refund"].executions]


def test_what_is_rejected_by_hand_does_not_run(approvals: Approvals) -> None:
    model = [calls("refund", order=1), say("Done.")]
    approvals.run(build_by_hand, "Refund it", model=model, oracle=reject_all(), gated={"refund"})

    assert [] == done


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        [calls("look_up", order=1), say("Found."), calls("refund", order=1), say("Done.")],
        {"main": [calls("look_up", order=1), say("Found.")], "refunds": [calls("refund", order=1), say("Done.")]},
        {
            "main": [],
            "sales": [calls("look_up", order=1), say("Found.")],
            "refunds": [calls("refund", order=1), say("Done.")],
        },
    ],
    ids=["shared", "named", "all named"],
)
def test_agents_that_are_nodes_are_seen(approvals: Approvals, model: Any, stream: bool) -> None:
    run = approvals.run(build_of_graphs, "Refund it", model=model, oracle=approve_all(), stream=stream)

    assert ["look up 1", "refund 1"] == done
    assert "Done." == run.output
    assert ["refunded 1"] == [one.result for one in run.calls["refund"].executions]

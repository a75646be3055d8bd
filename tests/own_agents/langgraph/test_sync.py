"""Graphs that their application runs by `invoke` and `stream`, with nodes and stores that cannot be awaited.

https://docs.langchain.com/oss/python/langgraph/persistence
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

from pytest_approvals import Approvals, approve, approve_all, call, calls, decide, edit, reject, reject_all, say, send
from pytest_approvals.errors import AgentFailed, UsageError

paid: list[int] = []
"""The amounts."""


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[Any]:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as opened:
        yield opened


@tool
def pay(amount: int) -> str:
    """Pays an amount."""
    paid.append(amount)
    return f"paid {amount}"


@tool
def ask_and_pay(amount: int) -> str:
    """Pays an amount, if a person agrees."""
    answer = interrupt({"amount": amount})
    if answer != "yes":
        return "Nobody agreed."
    paid.append(amount)
    return f"paid {amount}"


class OneForm(AgentMiddleware):
    """A middleware whose awaitable hook says that it must not be used, as some of other packages do."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        raise NotImplementedError("use the synchronous API")


def build(model: Any, saver: Any = None) -> Any:
    return create_agent(
        model, [pay, ask_and_pay], middleware=[HumanInTheLoopMiddleware({"pay": True}), OneForm()], checkpointer=saver
    )


def build_graph(model: Any, saver: Any = None) -> Any:
    bound = model.bind_tools([ask_and_pay])

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    async def never(state: MessagesState) -> dict[str, Any]:
        raise NotImplementedError("use the synchronous API")

    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", RunnableLambda(ask, afunc=never))
    graph.add_node("tools", ToolNode([ask_and_pay]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=saver)


SCRIPT = [calls("pay", amount=5), say("Done.")]
ASKED = [calls("ask_and_pay", amount=5), say("Done.")]
WORDS = {"approve": "yes", "reject": "no"}


@pytest.mark.parametrize("stream", [False, True])
def test_an_approved_call_runs_once(approvals: Approvals, saver: Any, stream: bool) -> None:
    """The hook that is awaited is never called, and the store that blocks is the user's own."""
    run = approvals.run(
        lambda model: build(model, saver),
        "Pay",
        model=SCRIPT,
        gated={"pay"},
        oracle=approve_all(),
        sync=True,
        stream=stream,
    )

    assert [5] == paid
    assert "Done." == run.output
    assert run.events[0].sync
    assert list(saver.list(None))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("serialize", ["none", "copy", "native.sqlite"])
def test_a_rejected_call_does_not_run(approvals: Approvals, serialize: Any, stream: bool) -> None:
    """In every mode that a graph can do."""
    run = approvals.run(
        build, "Pay", model=SCRIPT, oracle=reject_all("no"), sync=True, serialize=serialize, stream=stream
    )

    assert [] == paid
    assert [] == run.calls["pay"].executions


def test_each_of_two_calls_has_its_answer(approvals: Approvals) -> None:
    """One is approved with another amount, and the other one rejected."""
    both = calls(call("pay", amount=5), call("pay", amount=6))
    approvals.run(
        build,
        model=[both, say("Done.")],
        caller=[send("Pay"), decide(edit("c1", amount=4), reject("c2"))],
        sync=True,
    )

    assert [4] == paid


def test_another_process_goes_on_in_the_same_way(approvals: Approvals) -> None:
    """Its runs are synchronous, too."""
    run = approvals.run(
        build, "Pay", model=SCRIPT, oracle=approve_all(), sync=True, serialize="native.sqlite", resume="fresh"
    )

    assert ["paid 5"] == [execution.result for execution in run.calls["pay"].executions]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("serialize", ["none", "copy", "native.sqlite"])
def test_nodes_of_a_graph_of_ones_own(approvals: Approvals, serialize: Any, stream: bool) -> None:
    """The functions of `invoke` run, where a node has others for `ainvoke`."""
    run = approvals.run(
        build_graph,
        "Pay",
        model=ASKED,
        oracle=approve_all(),
        answers=WORDS,
        sync=True,
        serialize=serialize,
        stream=stream,
    )

    assert [5] == paid
    assert ["ask_and_pay"] == [request.tool for request in run.requests]


def test_a_node_that_cannot_be_awaited_fails_without_it(approvals: Approvals) -> None:
    """The option is what decides: by default, runs are awaited."""
    with pytest.raises(AgentFailed, match="use the synchronous API"):
        approvals.run(build_graph, "Pay", model=ASKED, answers=WORDS)


@pytest.mark.approvals(sync=True)
def test_the_marker_says_it_too(approvals: Approvals) -> None:
    """As any other option."""
    run = approvals.run(
        build_graph, model=ASKED, caller=[send("Pay"), approve("c1")], answers=WORDS, gated={"ask_and_pay"}
    )

    assert [5] == paid
    assert run.events[0].sync


@pytest.mark.asyncio
async def test_an_asynchronous_test_goes_on_meanwhile(approvals: Approvals) -> None:
    """The graph runs in another thread than the loop of the test."""
    threads: list[int] = []

    @tool
    def note() -> str:
        """Notes the thread."""
        threads.append(threading.get_ident())
        return "noted"

    run = await approvals.arun(
        lambda model: create_agent(model, [note]), "Note", model=[calls("note"), say("Done.")], sync=True
    )

    assert threading.get_ident() not in threads
    assert "Done." == run.output


def test_what_must_be_awaited_fails_as_in_the_application(approvals: Approvals) -> None:
    """A tool without a function that blocks cannot be run by `invoke`."""

    @tool
    async def look(order: int) -> str:
        """Looks up an order."""
        return "old"

    with pytest.raises(AgentFailed, match="does not support sync invocation"):
        approvals.run(
            lambda model: create_agent(model, [look]), "Look", model=[calls("look", order=1), say("Old.")], sync=True
        )


def test_a_word_is_no_truth_value(approvals: Approvals) -> None:
    """A mistaken option is an error, and never taken for `True`."""
    with pytest.raises(UsageError, match=r"Invalid sync 'no' in approvals\.run: expected True or False"):
        approvals.run(build, "Pay", model=SCRIPT, sync="no")  # type: ignore[arg-type]

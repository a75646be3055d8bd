"""Every way in which the documentation of LangChain lets a person stand before a call, each as it writes it.

https://docs.langchain.com/oss/python/langchain/human-in-the-loop and
https://docs.langchain.com/oss/python/langgraph/interrupts
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from pytest_approvals import Approvals, approve, approve_all, call, calls, decide, edit, reject, reject_all, say, send
from pytest_approvals.errors import UsageError

done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@tool
def execute_sql(query: str) -> str:
    """Executes an SQL query."""
    done.append(query)
    return f"ran {query}"


@tool
def read_data(table: str) -> str:
    """Reads a table."""
    return f"rows of {table}"


def describe(tool_call: Any, state: Any, runtime: Any) -> str:
    return f"Run {tool_call['args']['query']}?"


MIDDLEWARE: dict[str, dict[str, Any]] = {
    "all decisions": {"execute_sql": True, "read_data": False},
    "some decisions": {"execute_sql": {"allowed_decisions": ["approve", "reject"]}},
    "a text": {"execute_sql": {"allowed_decisions": ["approve", "reject"], "description": "This is permanent."}},
    "a function": {"execute_sql": {"allowed_decisions": ["approve", "edit", "reject"], "description": describe}},
    "when": {"execute_sql": {"allowed_decisions": ["approve", "reject"], "when": lambda request: True}},
}
TWO = [calls("read_data", table="a"), calls("execute_sql", query="x"), calls("execute_sql", query="y"), say("Done.")]


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("configuration", MIDDLEWARE)
def test_middleware(approvals: Approvals, configuration: str, mode: Any) -> None:
    """Whatever its configuration, a call runs if it was approved."""

    def build(model: Any) -> Any:
        gate = HumanInTheLoopMiddleware(interrupt_on=MIDDLEWARE[configuration], interrupt_mode=mode)
        return create_agent(model, [execute_sql, read_data], middleware=[gate], checkpointer=InMemorySaver())

    caller = [send("Run"), approve("c2"), reject("c3", "no")]
    approvals.run(build, model=TWO, caller=caller, gated={"execute_sql"})

    assert ["x"] == done


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_middleware_with_parallel_calls(approvals: Approvals, mode: Any) -> None:
    """Each of two calls of one reply has its own decision, also an edit."""

    def build(model: Any) -> Any:
        gate = HumanInTheLoopMiddleware(interrupt_on={"execute_sql": True}, interrupt_mode=mode)
        return create_agent(model, [execute_sql, read_data], middleware=[gate])

    both = calls(call("execute_sql", query="x"), call("execute_sql", query="y"), call("read_data", table="a"))
    caller = [send("Run"), decide(edit("c1", query="z"), reject("c2"))]
    approvals.run(build, model=[both, say("Done.")], caller=caller, gated={"execute_sql"})

    assert ["z"] == done


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_middleware_when(approvals: Approvals, mode: Any) -> None:
    """A predicate decides which calls are asked about."""

    def build(model: Any) -> Any:
        config: Any = {
            "allowed_decisions": ["approve", "reject"],
            "when": lambda request: "DROP" in request.tool_call["args"]["query"],
        }
        gate = HumanInTheLoopMiddleware(interrupt_on={"execute_sql": config}, interrupt_mode=mode)
        return create_agent(model, [execute_sql], middleware=[gate])

    model = [calls("execute_sql", query="SELECT"), calls("execute_sql", query="DROP"), say("Done.")]
    run = approvals.run(
        build,
        "Run",
        model=model,
        oracle=approve_all(),
        gated={"execute_sql": lambda arguments: "DROP" in arguments["query"]},
    )

    assert ["SELECT", "DROP"] == done
    assert 1 == len(run.requests)


def test_middleware_respond(approvals: Approvals) -> None:
    """A person may answer in place of the tool, which the application means by a rejection."""

    def build(model: Any) -> Any:
        gate = HumanInTheLoopMiddleware(interrupt_on={"execute_sql": {"allowed_decisions": ["respond"]}})
        return create_agent(model, [execute_sql], middleware=[gate])

    run = approvals.run(
        build,
        "Run",
        model=[calls("execute_sql", query="x"), say("Done.")],
        oracle=reject_all("there are 7 rows"),
        answers={"reject": lambda decision: {"type": "respond", "message": decision.reason}},
    )

    assert [] == done
    assert "there are 7 rows" in str(run.transcript)


# --- interrupt() ------------------------------------------------------------------------------------------------------


@tool
def send_email(to: str, subject: str) -> str:
    """Sends an email."""
    response = interrupt({"action": "send_email", "to": to, "subject": subject, "message": "Approve?"})
    if response.get("action") == "approve":
        done.append(response.get("to", to))
        return f"Email sent to {response.get('to', to)}"
    return f"Email cancelled by user: {response.get('why')}"


WORDS: Any = {
    "approve": {"action": "approve"},
    "reject": lambda decision: {"action": "cancel", "why": decision.reason},
    "edit": lambda decision: {"action": "approve", **decision.arguments},
}


@pytest.mark.parametrize("serialize", ["none", "copy", "native.sqlite"])
def test_interrupt_in_a_tool(approvals: Approvals, serialize: Any) -> None:
    """A body asks with a payload of its own, and reads an answer of its own."""
    model = [calls("send_email", to="ann", subject="a"), calls("send_email", to="bob", subject="b"), say("Done.")]
    caller = [send("Write"), edit("c1", to="eve", subject="a"), reject("c2", "no")]
    approvals.run(
        lambda model: create_agent(model, [send_email]), model=model, caller=caller, answers=WORDS, serialize=serialize
    )

    assert ["eve"] == done


class ReviewState(MessagesState):
    """State of a graph whose node reviews calls."""


def build_review(model: Any) -> Any:
    """Build a graph with a node between model and tools that asks, and goes on with `Command(goto=...)`."""
    bound = model.bind_tools([execute_sql])

    def ask_model(state: ReviewState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    def review(state: ReviewState) -> Command[Literal["tools", "model"]]:
        message = state["messages"][-1]
        assert isinstance(message, AIMessage)
        made = message.tool_calls[-1]
        answer = interrupt({"question": "Is this correct?", "tool_call": made})
        if answer["action"] == "continue":
            return Command(goto="tools")
        if answer["action"] == "update":
            made = {**made, "args": answer["data"]}
            updated = AIMessage(content=message.content, tool_calls=[made], id=message.id)
            return Command(goto="tools", update={"messages": [updated]})
        feedback = ToolMessage(content=answer["data"], name=made["name"], tool_call_id=made["id"])
        return Command(goto="model", update={"messages": [feedback]})

    def route(state: ReviewState) -> str:
        return "review" if getattr(state["messages"][-1], "tool_calls", None) else END

    graph = StateGraph(ReviewState)
    graph.add_node("model", ask_model).add_node("review", review).add_node("tools", ToolNode([execute_sql]))
    graph.add_edge(START, "model").add_conditional_edges("model", route, ["review", END]).add_edge("tools", "model")
    return graph.compile(checkpointer=InMemorySaver())


REVIEW: Any = {
    "approve": {"action": "continue"},
    "reject": lambda decision: {"action": "feedback", "data": decision.reason},
    "edit": lambda decision: {"action": "update", "data": decision.arguments},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("decision", ["approve", "reject", "edit"])
def test_interrupt_in_a_node(approvals: Approvals, decision: str, stream: bool) -> None:
    """A node of one's own asks between the model and the tools, and routes by the answer."""
    step: Any = {"approve": approve("c1"), "reject": reject("c1", "use a view"), "edit": edit("c1", query="z")}
    run = approvals.run(
        build_review,
        model=[calls("execute_sql", query="x"), say("Done.")],
        caller=[send("Run"), step[decision]],
        answers=REVIEW,
        gated={"execute_sql"},
        stream=stream,
    )

    assert {"approve": ["x"], "reject": [], "edit": ["z"]}[decision] == done
    assert ["execute_sql"] == [request.tool for request in run.requests]


def build_batch_review(model: Any) -> Any:
    """Build a graph with a node that asks about all calls of a reply to one tool at once."""
    bound = model.bind_tools([execute_sql])

    def ask_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    def review(state: MessagesState) -> Command[Literal["tools", "model"]]:
        message = state["messages"][-1]
        assert isinstance(message, AIMessage)
        if interrupt({"tool_calls": message.tool_calls}) is True:
            return Command(goto="tools")
        refused = [ToolMessage("Rejected", name=made["name"], tool_call_id=made["id"]) for made in message.tool_calls]
        return Command(goto="model", update={"messages": refused})

    def route(state: MessagesState) -> str:
        return "review" if getattr(state["messages"][-1], "tool_calls", None) else END

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask_model).add_node("review", review).add_node("tools", ToolNode([execute_sql]))
    graph.add_edge(START, "model").add_conditional_edges("model", route, ["review", END]).add_edge("tools", "model")
    return graph.compile(checkpointer=InMemorySaver())


YES_OR_NO: Any = {"approve": True, "reject": False}
QUERIES = calls(call("execute_sql", query="x"), call("execute_sql", query="y"))


@pytest.mark.parametrize("oracle", [approve_all(), reject_all("not on a Friday")])
def test_interrupt_that_shows_several_calls(approvals: Approvals, oracle: Any) -> None:
    """Each call has a request, and the node gets one answer for all, which has no place for a reason."""
    run = approvals.run(build_batch_review, "Run", model=[QUERIES, say("Done.")], oracle=oracle, answers=YES_OR_NO)

    assert (["x", "y"] if oracle == approve_all() else []) == sorted(done)
    assert ["c1", "c2"] == [request.call.label for request in run.requests if request.call]


def test_interrupt_that_shows_several_calls_takes_one_answer(approvals: Approvals) -> None:
    """Different decisions cannot be handed over."""
    with pytest.raises(UsageError, match="one interrupt asks about several calls; decide on them alike, at once"):
        approvals.run(
            build_batch_review,
            model=[QUERIES, say("Done.")],
            caller=[send("Run"), decide(approve("c1"), reject("c2"))],
            answers=YES_OR_NO,
        )


def build_by_functions(model: Any) -> Any:
    """Build an agent of the functional API, which begins with the messages as a list."""
    bound = model.bind_tools([execute_sql])

    @task
    def ask_model(messages: list[Any]) -> Any:
        return bound.invoke(messages)

    @task
    def run_tool(made: Any) -> Any:
        return execute_sql.invoke(made)

    def review(made: Any) -> Any:
        answer = interrupt({"question": "Is this correct?", "tool_call": made})
        if answer["action"] == "feedback":
            return ToolMessage(content=answer["data"], name=made["name"], tool_call_id=made["id"])
        return run_tool({**made, "args": answer["data"]} if answer["action"] == "update" else made).result()

    @entrypoint()
    def agent(messages: list[Any]) -> list[Any]:
        while (reply := ask_model(messages).result()).tool_calls:
            messages = [*messages, reply, *map(review, reply.tool_calls)]
        return [*messages, reply]

    return agent


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_interrupt_in_the_functional_api(approvals: Approvals, decision: str, stream: bool) -> None:
    """An `entrypoint` runs in a node of a graph, which has the messages in its state."""

    def build(model: Any) -> Any:
        inner = build_by_functions(model)

        def run(state: MessagesState) -> dict[str, Any]:
            return {"messages": inner.invoke(state["messages"])}

        return StateGraph(MessagesState).add_node("agent", run).add_edge(START, "agent").compile()

    step: Any = {"approve": approve("c1"), "reject": reject("c1", "use a view")}
    run = approvals.run(
        build,
        model=[calls("execute_sql", query="x"), say("Done.")],
        caller=[send("Run"), step[decision]],
        answers=REVIEW,
        gated={"execute_sql"},
        stream=stream,
    )

    assert {"approve": ["x"], "reject": []}[decision] == done
    assert "Done." == run.output


@pytest.mark.parametrize("build", [build_by_functions, lambda model: StateGraph(Job).add_node("work", work)])
def test_a_graph_without_messages_is_refused(approvals: Approvals, build: Any) -> None:
    """A run begins with a message; the error says how such a graph can be run."""

    def compile_graph(model: Any) -> Any:
        graph = build(model)
        return graph.add_edge(START, "work").compile() if isinstance(graph, StateGraph) else graph

    with pytest.raises(UsageError, match="has no `messages`, with which a run begins; run it in a node of a graph"):
        approvals.run(compile_graph, model=[say("Done.")])


def test_a_graph_that_is_not_compiled_is_refused(approvals: Approvals) -> None:
    """So is all else that is no graph; the error says what is."""
    with pytest.raises(UsageError, match="StateGraph is no compiled graph, as `create_agent` returns one"):
        approvals.run(lambda model: StateGraph(MessagesState), model=[say("Done.")])


class Job(TypedDict):
    """State of a graph that does no talking."""

    order: int


def work(state: Job) -> Job:
    """Does the job."""
    return state


def build_with_breakpoint(model: Any) -> Any:
    """Build an agent that stops before its tools, whichever they are."""
    return create_agent(model, [execute_sql], interrupt_before=["tools"], checkpointer=InMemorySaver())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("serialize", ["none", "copy", "native.sqlite"])
def test_interrupt_before(approvals: Approvals, serialize: Any, stream: bool) -> None:
    """A static breakpoint before the tools is a request about each call of the reply."""
    run = approvals.run(
        build_with_breakpoint,
        "Run",
        model=[calls("execute_sql", query="x"), say("Done.")],
        oracle=approve_all(),
        serialize=serialize,
        stream=stream,
    )

    assert ["x"] == done
    assert "Done." == run.output


def test_interrupt_before_refused(approvals: Approvals) -> None:
    """A rejection is a result in the state of the thread, written in place of the tools."""
    run = approvals.run(
        build_with_breakpoint,
        "Run",
        model=[calls(call("execute_sql", query="x"), call("execute_sql", query="y")), say("Well.")],
        oracle=reject_all("not today"),
        gated={"execute_sql"},
    )

    assert [] == done
    assert "not today" in str(run.transcript)


def test_interrupt_before_takes_one_answer(approvals: Approvals) -> None:
    """A breakpoint stops before all calls of a reply, and lets all of them run."""
    both = calls(call("execute_sql", query="x"), call("execute_sql", query="y"))
    caller = [send("Run"), decide(approve("c1"), reject("c2"))]
    with pytest.raises(UsageError, match="a breakpoint stops before all calls of a reply; decide on them alike"):
        approvals.run(build_with_breakpoint, model=[both, say("Done.")], caller=caller)


def test_interrupt_after(approvals: Approvals) -> None:
    """So is one after the model."""

    def build(model: Any) -> Any:
        return create_agent(model, [execute_sql], interrupt_after=["model"], checkpointer=InMemorySaver())

    model = [calls("execute_sql", query="x"), say("Done.")]
    approvals.run(build, "Run", model=model, oracle=approve_all(), gated={"execute_sql"})

    assert ["x"] == done

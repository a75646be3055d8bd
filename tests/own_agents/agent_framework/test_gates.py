"""Every way in which the documentation of the Agent Framework lets a person stand before a call, each as it writes it.

https://learn.microsoft.com/en-us/agent-framework/agents/tools/tool-approval and
https://learn.microsoft.com/en-us/agent-framework/workflows/human-in-the-loop
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentExecutor,
    FunctionInvocationContext,
    FunctionTool,
    ToolApprovalMiddleware,
    WorkflowBuilder,
    tool,
)

from pytest_approvals import Approvals, approve, approve_all, call, calls, decide, reject, reject_all, say, send
from pytest_approvals.errors import UsageError

done: list[Any] = []

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*experimental.*:FutureWarning"),
]


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@tool(approval_mode="always_require")
def add_to_calendar(event: str) -> str:
    """Adds an event."""
    done.append(event)
    return f"added {event}"


@tool(approval_mode="never_require")
def get_events(day: str) -> str:
    """Lists events."""
    return f"nothing on {day}"


def of_decorator(client: Any) -> Agent:
    return Agent(client=client, name="calendar", tools=[add_to_calendar, get_events])


class Calendar:
    def add(self, event: str) -> str:
        """Adds an event."""
        done.append(event)
        return f"added {event}"


def of_method(client: Any) -> Agent:
    """Make tools of methods."""
    own = tool(name="add_to_calendar", approval_mode="always_require")(Calendar().add)
    return Agent(client=client, name="calendar", tools=[own, get_events])


def of_tool(client: Any) -> Agent:
    """Make a tool by hand."""
    own = FunctionTool(name="add_to_calendar", description="Adds.", approval_mode="always_require", func=Calendar().add)
    return Agent(client=client, name="calendar", tools=[own, get_events])


BOTH = calls(call("add_to_calendar", event="a"), call("add_to_calendar", event="b"))
STORY = [calls("get_events", day="May 5"), BOTH, say("Done.")]


@pytest.mark.parametrize("serialize", ["none", "copy", "json"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("build", [of_decorator, of_method, of_tool])
def test_approval_mode(approvals: Approvals, build: Any, serialize: Any, stream: bool) -> None:
    """Each of two calls has its own answer."""
    caller = [send("Add"), decide(approve("c2"), reject("c3"))]
    approvals.run(build, model=STORY, caller=caller, gated={"add_to_calendar"}, serialize=serialize, stream=stream)

    assert ["a"] == done


def test_agent_as_tool(approvals: Approvals) -> None:
    """An agent that is a tool may need approval as a whole."""

    def build(client: Any) -> Agent:
        weather = Agent(client=client, name="weather", tools=[get_events])
        return Agent(client=client, name="desk", tools=[weather.as_tool(name="ask", approval_mode="always_require")])

    run = approvals.run(
        build,
        "Rome?",
        model={"main": [calls("ask", task="Rome"), say("Done.")], "weather": [say("Sunny.")]},
        oracle=approve_all(),
        gated={"ask"},
    )

    assert "Done." == run.output


async def block_b(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    if getattr(context.arguments, "event", None) == "b" or dict(context.arguments).get("event") == "b":  # type: ignore[call-overload]
        context.result = "blocked"
        return
    await call_next()


def test_function_middleware(approvals: Approvals) -> None:
    """A middleware may answer in place of a tool, also of an approved one."""

    def build(client: Any) -> Agent:
        return Agent(client=client, name="calendar", tools=[add_to_calendar], middleware=[block_b])

    run = approvals.run(build, "Add", model=[BOTH, say("Done.")], oracle=approve_all())

    assert ["a"] == done
    assert "blocked" in str(run.transcript)


def test_approval_middleware(approvals: Approvals) -> None:
    """The framework's middleware asks about one call at a time."""

    def build(client: Any) -> Agent:
        return Agent(client=client, name="calendar", tools=[add_to_calendar], middleware=[ToolApprovalMiddleware()])

    caller = [send("Add"), approve("c1"), reject("c2")]
    approvals.run(build, model=[BOTH, say("Done.")], caller=caller)

    assert ["a"] == done


# --- workflows --------------------------------------------------------------------------------------------------------


def of_workflow(client: Any) -> Any:
    return WorkflowBuilder(start_executor=AgentExecutor(of_decorator(client))).build()


def of_workflow_agent(client: Any) -> Any:
    """Make an agent of the workflow."""
    return of_workflow(client).as_agent(name="calendar")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("oracle", [approve_all(), reject_all()])
@pytest.mark.parametrize("build", [of_workflow, of_workflow_agent])
def test_workflow(approvals: Approvals, build: Any, oracle: Any, stream: bool) -> None:
    """A workflow surfaces the requests of the agents in it."""
    model = [calls("add_to_calendar", event="a"), say("Done.")]
    run = approvals.run(build, "Add", model=model, oracle=oracle, gated={"add_to_calendar"}, stream=stream)

    assert done == (["a"] if oracle.name == "approve_all()" else [])
    assert 1 == len(run.requests)


def test_workflow_of_two_agents(approvals: Approvals) -> None:
    """Each agent of a workflow has a script of its own by its name."""

    def build(client: Any) -> Any:
        first, second = Agent(client=client, name="reviewer"), of_decorator(client)
        return WorkflowBuilder(start_executor=first).add_edge(first, second).build()

    run = approvals.run(
        build,
        "Add",
        model={"main": [say("Fine.")], "calendar": [calls("add_to_calendar", event="a"), say("Added.")]},
        oracle=approve_all(),
        gated={"add_to_calendar"},
    )

    assert ["a"] == done
    assert "Added." in str(run.output)


def test_workflow_with_a_store_is_refused(approvals: Approvals) -> None:
    """Its checkpoints are the application's."""
    with pytest.raises(UsageError, match="a workflow keeps its state itself; its checkpoints are not taken"):
        approvals.run(of_workflow, "Add", model=[say("Done.")], serialize="json")

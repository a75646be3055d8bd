"""Tools and middleware as the documentation of LangChain writes them, beside a gate.

https://docs.langchain.com/oss/python/langchain/tools, https://docs.langchain.com/oss/python/langchain/middleware/built-in,
https://docs.langchain.com/oss/python/langchain/short-term-memory
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    before_model,
    dynamic_prompt,
    wrap_model_call,
)
from langchain.messages import RemoveMessage, ToolMessage
from langchain.tools import ToolRuntime, tool
from langchain_core.tools import BaseTool
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command
from pydantic import BaseModel, Field

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, call, calls, decide, edit, reject, say, send

done: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Record(BaseModel):
    name: str
    level: Level = Level.LOW
    tags: list[str] = Field(default_factory=list)


@dataclass
class User:
    name: str = "ann"


class Named(AgentState):
    user_name: str


@tool
def write_record(record: Record, runtime: ToolRuntime[User]) -> str:
    """Writes a record."""
    done.append((record.name, record.level, runtime.context.name))
    return f"wrote {record.name}"


@tool
def remember(name: str, runtime: ToolRuntime[User]) -> Command[Any]:
    """Remembers a name in the state."""
    done.append((name,))
    saved = ToolMessage(f"saved {name}", tool_call_id=runtime.tool_call_id)
    return Command(update={"user_name": name, "messages": [saved]})


@tool("drop_table", args_schema={"type": "object", "properties": {"table": {"type": "string"}}, "required": ["table"]})
def drop_table(table: str) -> str:
    """Drops a table."""
    done.append((table,))
    return "dropped"


@tool(response_format="content_and_artifact")
def fetch(url: str) -> tuple[str, dict[str, str]]:
    """Fetches a page."""
    return "a text", {"url": url}


class Sum(BaseModel):
    a: int
    b: int = 2


class Adder(BaseTool):
    name: str = "add"
    description: str = "Adds."
    args_schema: Any = Sum

    def _run(self, a: int, b: int = 2) -> int:
        done.append((a, b))
        return a + b


class AwaitableAdder(Adder):
    async def _arun(self, a: int, b: int = 2) -> int:
        return self._run(a, b)


@dynamic_prompt
def greet(request: Any) -> str:
    return f"You serve {request.runtime.context.name}."


def build(model: Any, *hooks: Any, adder: type[Adder] = Adder, **options: Any) -> Any:
    gate = HumanInTheLoopMiddleware(dict.fromkeys(GATES, True))
    return create_agent(
        model,
        [write_record, remember, drop_table, fetch, adder()],
        middleware=[gate, greet, *hooks],
        context_schema=User,
        state_schema=Named,
        **options,
    )


GATES = {"write_record", "remember", "drop_table", "add"}
OPTIONS = {"context": User("bob")}
RECORD = {"name": "a", "level": "high", "tags": ["x"]}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("serialize", ["none", "copy", "native.sqlite"])
def test_all_kinds_of_tools(approvals: Approvals, serialize: Any, stream: bool) -> None:
    """Each approved call runs once, whatever its arguments and its result are made of."""
    run = approvals.run(
        build,
        "Go",
        model=[
            calls("fetch", url="u"),
            calls("write_record", record=RECORD),
            calls("remember", name="Ann"),
            say("Done."),
        ],
        run_options=OPTIONS,
        gated=GATES,
        oracle=approve_all(),
        serialize=serialize,
        stream=stream,
    )

    assert [("a", Level.HIGH, "bob"), ("Ann",)] == done
    assert "Done." == run.output


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("adder", [Adder, AwaitableAdder])
def test_a_tool_that_is_a_class(approvals: Approvals, adder: type[Adder], stream: bool) -> None:
    """Its blocking body is the one that runs, in either way, and it is one run."""
    run = approvals.run(
        partial(build, adder=adder),
        "Add",
        model=[calls("add", a=1), say("3")],
        run_options=OPTIONS,
        gated=GATES,
        oracle=approve_all(),
        stream=stream,
    )

    assert [(1, 2)] == done
    assert 1 == len(run.calls["add"].executions)


@pytest.mark.parametrize("adder", [Adder, AwaitableAdder])
def test_a_tool_that_is_a_class_in_a_synchronous_run(approvals: Approvals, adder: type[Adder]) -> None:
    """The same by `invoke`."""
    run = approvals.run(
        partial(build_plainly, adder=adder), "Add", model=[calls("add", a=1), say("3")], oracle=approve_all(), sync=True
    )

    assert 1 == len(run.calls["add"].executions)


def build_plainly(model: Any, *, adder: type[Adder]) -> Any:
    return create_agent(model, [adder()], middleware=[HumanInTheLoopMiddleware({"add": True})])


@pytest.mark.parametrize("stream", [False, True])
def test_each_call_has_its_own_answer(approvals: Approvals, stream: bool) -> None:
    """An edit may leave out what the model of an argument has defaults for."""
    both = calls(call("write_record", record=RECORD), call("drop_table", table="t"), call("add", a=1))
    approvals.run(
        build,
        model=[both, say("Done.")],
        run_options=OPTIONS,
        gated=GATES,
        caller=[send("Go"), decide(edit("c1", record={"name": "b"}), reject("c2", "keep it"), approve("c3"))],
        stream=stream,
    )

    assert [("b", Level.LOW, "bob"), (1, 2)] == sorted(done, key=len, reverse=True)


class Answer(BaseModel):
    text: str


@pytest.mark.parametrize("stream", [False, True])
def test_a_structured_answer(approvals: Approvals, stream: bool) -> None:
    """The model gives it by a call that no tool runs."""
    approvals.run(
        partial(build, response_format=Answer),
        "Add",
        model=[calls("add", a=1), calls("Answer", text="3")],
        run_options=OPTIONS,
        gated=GATES,
        oracle=approve_all(),
        stream=stream,
    )

    assert [(1, 2)] == done


@before_model
def keep_few(state: Any, runtime: Any) -> Any:
    """The recipe "Trim messages" of LangChain."""
    messages = state["messages"]
    if len(messages) <= 3:
        return None
    recent = messages[-3:] if len(messages) % 2 == 0 else messages[-4:]
    return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), messages[0], *recent]}


@pytest.mark.parametrize("stream", [False, True])
def test_a_history_that_is_trimmed(approvals: Approvals, stream: bool) -> None:
    """What an application leaves out of earlier turns is its own choice."""
    approvals.run(
        lambda model: build(model, keep_few),
        model=[say("A."), say("B."), calls("add", a=1), say("3")],
        run_options=OPTIONS,
        gated=GATES,
        caller=[send("First"), send("Second"), send("Add"), approve("c1")],
        stream=stream,
    )

    assert [(1, 2)] == done


@pytest.mark.parametrize("stream", [False, True])
def test_a_history_that_is_summed_up(approvals: Approvals, stream: bool) -> None:
    """The summary is asked for and told in the caller's name."""
    approvals.run(
        lambda model: build(model, SummarizationMiddleware(model, trigger=("messages", 6), keep=("messages", 4))),
        model=[say("A."), say("B."), calls("add", a=1), say("A summary."), say("3")],
        run_options=OPTIONS,
        gated=GATES,
        caller=[send("First"), send("Second"), send("Add"), approve("c1")],
        stream=stream,
    )

    assert [(1, 2)] == done


HOOKS = [
    PIIMiddleware("email", strategy="redact", apply_to_input=True),
    TodoListMiddleware(),
    ContextEditingMiddleware(),
    wrap_model_call(lambda request, handler: handler(request.override(tools=request.tools[1:]))),
]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: type(hook).__name__)
def test_middleware_beside_the_gate(approvals: Approvals, hook: Any) -> None:
    """That a message is told without names, or a tool not at all, is what it is for."""
    approvals.run(
        lambda model: build(model, hook),
        "Write to ann@example.org",
        model=[calls("add", a=1), say("3")],
        run_options=OPTIONS,
        gated=GATES,
        oracle=approve_all(),
        sync=isinstance(hook, type(HOOKS[-1])),
    )

    assert [(1, 2)] == done


def test_a_message_that_a_hook_drops_is_found(approvals: Approvals) -> None:
    """What the agent is about right now must be there, whatever is left out of earlier turns."""

    @before_model
    def drop(state: Any, runtime: Any) -> Any:
        return {"messages": [RemoveMessage(id=state["messages"][0].id)]} if len(state["messages"]) > 1 else None

    with pytest.raises(CheckFailed, match="(?s)caller-messages-kept: .*'Add' is not in the model's input"):
        approvals.run(
            lambda model: build(model, drop),
            "Add",
            model=[calls("add", a=1), say("3")],
            run_options=OPTIONS,
            gated=GATES,
            oracle=approve_all(),
        )

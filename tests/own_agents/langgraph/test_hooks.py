"""Middleware of LangChain whose hooks block: such an agent is run by `invoke` and `stream`, as its application does.

https://docs.langchain.com/oss/python/langchain/middleware/custom
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, wrap_model_call, wrap_tool_call
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from pytest_approvals import Approvals, CheckFailed, approve_all, call, calls, reject_all, say
from pytest_approvals.errors import AgentFailed

done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@tool
def wipe(disk: str) -> str:
    """Wipes a disk."""
    done.append(disk)
    return f"{disk} is empty"


@tool
def ask_and_wipe(disk: str) -> str:
    """Wipes a disk, if a person agrees."""
    if interrupt(f"Wipe {disk}?") != "yes":
        return "Nobody agreed."
    done.append(disk)
    return f"{disk} is empty"


class Logging(AgentMiddleware):
    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)


@wrap_tool_call
def log_tool(request: Any, handler: Any) -> Any:
    return handler(request)


@wrap_model_call
def log_model(request: Any, handler: Any) -> Any:
    return handler(request)


class SlowLogging(AgentMiddleware):
    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


def build(model: Any, *hooks: Any, mode: Any = "batched", **options: Any) -> Any:
    gate = HumanInTheLoopMiddleware({"wipe": True}, interrupt_mode=mode)
    return create_agent(model, [wipe, ask_and_wipe], middleware=[gate, *hooks], **options)


SCRIPT = [calls("wipe", disk="a"), say("Done.")]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("hook", [Logging(), log_tool, log_model, SlowLogging()])
def test_hooks_of_one_form_only(approvals: Approvals, hook: Any, mode: str, stream: bool) -> None:
    """Whether they block or are awaited, the approved call runs once."""
    run = approvals.run(
        lambda model: build(model, hook, mode=mode),
        "Wipe",
        model=SCRIPT,
        gated={"wipe"},
        oracle=approve_all(),
        stream=stream,
    )

    assert ["a"] == done
    assert "Done." == run.output


@pytest.mark.parametrize("serialize", ["none", "copy", "native.sqlite"])
def test_states_of_an_agent_that_blocks(approvals: Approvals, serialize: Any) -> None:
    """They are kept and copied as those of any agent."""
    run = approvals.run(
        lambda model: build(model, log_tool), "Wipe", model=SCRIPT, oracle=approve_all(), serialize=serialize
    )

    assert ["a"] == done
    assert serialize == run.variant.serialize


@pytest.mark.parametrize("stream", [False, True])
def test_questions_of_a_body_in_an_agent_that_blocks(approvals: Approvals, stream: bool) -> None:
    """The answer reaches the body in its thread."""
    run = approvals.run(
        lambda model: build(model, log_tool),
        "Wipe",
        model=[calls("ask_and_wipe", disk="a"), say("Done.")],
        oracle=approve_all(),
        answers={"approve": "yes", "reject": "no"},
        stream=stream,
    )

    assert ["a"] == done
    assert ["ask_and_wipe"] == [request.tool for request in run.requests]


def test_parallel_calls_of_an_agent_that_blocks(approvals: Approvals) -> None:
    """Each runs once, with its own arguments."""
    both = calls(call("wipe", disk="a"), call("wipe", disk="b"))
    approvals.run(lambda model: build(model, log_tool), "Wipe", model=[both, say("Done.")], oracle=approve_all())

    assert ["a", "b"] == sorted(done)


def test_an_agent_that_blocks_and_was_built_before(approvals: Approvals) -> None:
    """Its own model and checkpointer are used as those of any agent."""
    from langchain_core.language_models import FakeListChatModel

    model = FakeListChatModel(responses=["never asked"])
    agent = create_agent(model.bind(), [], middleware=[log_model], checkpointer=InMemorySaver())
    run = approvals.run(agent, "Hello", model=[say("Good day.")])

    assert "Good day." == run.output


def test_a_node_that_is_an_agent_that_blocks(approvals: Approvals) -> None:
    """The graph around it is run by `invoke`, too."""

    def build_graph(model: Any) -> Any:
        graph = StateGraph(MessagesState)
        graph.add_node("cleaner", build(model, log_tool))
        graph.add_edge(START, "cleaner")
        return graph.compile(checkpointer=InMemorySaver())

    run = approvals.run(build_graph, "Wipe", model=SCRIPT, gated={"wipe"}, oracle=reject_all("no"))

    assert [] == done
    assert "Done." == run.output


def test_a_hook_that_blocks_and_answers_twice_is_found(approvals: Approvals) -> None:
    """What such hooks do wrong is found as in any agent."""

    @wrap_tool_call
    def retry(request: Any, handler: Any) -> Any:
        handler(request)
        return handler(request)

    with pytest.raises(CheckFailed, match="runs-at-most-once"):
        approvals.run(lambda model: build(model, retry), "Wipe", model=SCRIPT, oracle=approve_all())


def test_hooks_of_either_form_beside_each_other_fail_in_langchain(approvals: Approvals) -> None:
    """Neither `invoke` nor `ainvoke` runs such an agent, which its own message says."""
    with pytest.raises(AgentFailed, match="Asynchronous implementation of awrap_tool_call is not available"):
        approvals.run(lambda model: build(model, log_tool, SlowLogging()), "Wipe", model=SCRIPT, oracle=approve_all())

"""Every way in which the documentation of Strands lets a person stand before a call, each as it writes it.

https://strandsagents.com/docs/user-guide/concepts/interrupts/,
https://strandsagents.com/docs/user-guide/concepts/agents/human-in-the-loop/ and
https://strandsagents.com/docs/user-guide/concepts/plugins/steering/
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeToolCallEvent, BeforeToolsEvent, HookProvider, HookRegistry
from strands.interventions import Confirm, Deny, InterventionHandler
from strands.vended_interventions.hitl import HumanInTheLoop
from strands.vended_plugins.steering import Guide, Interrupt, SteeringHandler
from strands.vended_plugins.steering import Proceed as Go

from pytest_approvals import Approvals, approve, approve_all, calls, reject, say, send

done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@tool
def delete_files(path: str) -> str:
    """Delete files.

    Args:
        path: What to delete.
    """
    done.append(path)
    return f"deleted {path}"


def make(model: Any, **options: Any) -> Agent:
    return Agent(model=model, tools=[delete_files], callback_handler=None, **options)


class ApprovalHook(HookProvider):
    def register_hooks(self, registry: HookRegistry, **options: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.approve)

    def approve(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] != "delete_files":
            return
        approval = event.interrupt("myapp-approval", reason={"path": event.tool_use["input"]["path"]})
        if approval.lower() != "y":
            event.cancel_tool = "User denied permission to delete files"


def of_hook(model: Any) -> Agent:
    return make(model, hooks=[ApprovalHook()])


def of_callback(model: Any) -> Agent:
    """Ask in a plain function, which is added later."""

    async def ask(event: BeforeToolCallEvent) -> None:
        if event.interrupt("ask", reason="?") != "y":
            event.cancel_tool = "denied"

    agent = make(model)
    agent.add_hook(ask, BeforeToolCallEvent)
    return agent


def of_batch(model: Any) -> Agent:
    """Ask once before all calls of a reply."""

    def ask(event: BeforeToolsEvent) -> None:
        if event.interrupt("batch", reason="May these run?") != "y":
            event.cancel = "denied"

    agent = make(model)
    agent.add_hook(ask, BeforeToolsEvent)
    return agent


def of_intervention(model: Any) -> Agent:
    return make(model, interventions=[HumanInTheLoop()])


def of_chosen_intervention(model: Any) -> Agent:
    return make(model, interventions=[HumanInTheLoop(allowed_tools=["*", "!delete_files"])])


class Confirming(InterventionHandler):
    name = "confirming"

    def before_tool_call(self, event: BeforeToolCallEvent, **options: Any) -> Any:
        if event.tool_use["input"]["path"] == "/":
            return Deny(reason="never")
        return Confirm(prompt=f"Delete {event.tool_use['input']['path']}?")


def of_own_intervention(model: Any) -> Agent:
    return make(model, interventions=[Confirming()])


@tool(name="delete_files", context=True)
def asking(tool_context: ToolContext, path: str) -> str:
    """Delete files.

    Args:
        path: What to delete.
    """
    if tool_context.interrupt("delete", reason={"path": path}) != "y":
        return "denied"
    done.append(path)
    return f"deleted {path}"


def of_body(model: Any) -> Agent:
    return Agent(model=model, tools=[asking], callback_handler=None)


TWO = [calls("delete_files", path="a"), calls("delete_files", path="b"), say("Done.")]
GATES = [of_hook, of_callback, of_batch, of_intervention, of_chosen_intervention, of_own_intervention, of_body]


@pytest.mark.parametrize("serialize", ["none", "json"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("build", GATES)
def test_gate(approvals: Approvals, build: Callable[[Any], Agent], stream: bool, serialize: Any) -> None:
    """Whoever asks, a call runs if it was approved."""
    caller = [send("Delete"), approve("c1"), reject("c2")]
    answers: Any = {"approve": "y", "reject": "n"}
    approvals.run(build, model=TWO, caller=caller, answers=answers, stream=stream, serialize=serialize)

    assert ["a"] == done


def test_words_of_the_application(approvals: Approvals) -> None:
    """A hook may take any JSON value."""

    def ask(event: BeforeToolCallEvent) -> None:
        answer = event.interrupt("ask", reason="?")
        if not answer["ok"]:
            event.cancel_tool = answer["why"]

    answers: Any = {"approve": {"ok": True}, "reject": lambda decision: {"ok": False, "why": decision.reason}}
    caller = [send("Delete"), approve("c1"), reject("c2", "keep it")]
    run = approvals.run(
        lambda model: make(model, hooks=[ask]), model=TWO, caller=caller, answers=answers, gated={"delete_files"}
    )

    assert ["a"] == done
    assert "keep it" in str(run.transcript)


def test_trust(approvals: Approvals) -> None:
    """`t` approves a call, and all later ones of its tool."""
    run = approvals.run(
        lambda model: make(model, interventions=[HumanInTheLoop(enable_trust=True)]),
        "Delete",
        model=TWO,
        oracle=approve_all(),
        answers={"approve": "t"},
    )

    assert ["a", "b"] == done
    assert 1 == len(run.requests)


def test_an_intervention_that_asks_by_itself(approvals: Approvals) -> None:
    """With `ask`, nobody is asked in the test."""

    async def ask(prompt: str) -> str:
        return "y" if '"a"' in prompt else "n"

    run = approvals.run(lambda model: make(model, interventions=[HumanInTheLoop(ask=ask)]), "Delete", model=TWO)

    assert ["a"] == done
    assert [] == run.requests


class Steering(SteeringHandler):
    """Stops for a person before one file, guides away from another one, and lets the rest run."""

    async def steer_before_tool(self, *, agent: Any, tool_use: Any, **options: Any) -> Any:
        path = tool_use["input"]["path"]
        if path == "a":
            return Interrupt(reason="It is important.")
        return Guide(reason="Ask Ann first.") if path == "b" else Go(reason="It is a copy.")


@pytest.mark.parametrize("decision", [approve, reject])
def test_steering(approvals: Approvals, decision: Any) -> None:
    """A steering handler asks about some calls, cancels others with guidance, and lets the rest run."""
    model = [*TWO[:2], calls("delete_files", path="c"), say("Done.")]
    run = approvals.run(
        lambda model: make(model, plugins=[Steering()]),
        model=model,
        caller=[send("Delete"), decision("c1")],
        answers={"approve": True, "reject": False},
    )

    assert done == (["a", "c"] if decision is approve else ["c"])
    assert 1 == len(run.requests)


def test_denied_without_a_question(approvals: Approvals) -> None:
    """A handler may deny a call by itself."""
    run = approvals.run(of_own_intervention, "Delete", model=[calls("delete_files", path="/"), say("No.")])

    assert [] == done
    assert [] == run.requests

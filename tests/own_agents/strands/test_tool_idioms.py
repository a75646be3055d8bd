"""Idioms of Strands' documentation: content as a result, models among the arguments, methods; retries and settings.

https://strandsagents.com/docs/user-guide/concepts/agents/hooks/
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.agent.conversation_manager import SlidingWindowConversationManager, SummarizingConversationManager
from strands.hooks import (
    AfterToolCallEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    HookProvider,
    HookRegistry,
)

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, say, send


class Line(BaseModel):
    """A line of an order."""

    sku: str
    quantity: int = 1


class Shop:
    """Tools with a state of their own."""

    def __init__(self) -> None:
        self.shipped: list[Line] = []

    @tool
    def get_order(self, order: str) -> dict[str, Any]:
        """Looks an order up."""
        return {"status": "success", "content": [{"text": f"order {order}"}, {"json": {"total": 80}}]}

    @tool(context=True)
    async def ship(self, lines: list[Line], tool_context: ToolContext, express: bool = False) -> str:
        """Ships lines."""
        tool_context.agent.state.set("shipped", len(lines))
        self.shipped += lines
        return f"shipped {len(lines)}"


def ask(event: BeforeToolCallEvent) -> None:
    if event.tool_use["name"] == "ship" and event.interrupt("ship", reason=event.tool_use["input"]) != "y":
        event.cancel_tool = "no"


def test_content_is_a_result_and_models_are_arguments(approvals: Approvals) -> None:
    """What the framework adds to both is none of what was approved or returned."""

    def build(model: Any) -> Agent:
        shop = Shop()
        return Agent(model=model, tools=[shop.get_order, shop.ship], hooks=[ask], callback_handler=None)

    model = [calls("get_order", order="A"), calls("ship", lines=[{"sku": "x"}, {"sku": "y"}]), say("Shipped.")]
    run = approvals.run(build, "Ship A", model=model, oracle=approve_all(), gated={"ship"})

    assert "order A{'total': 80}" == run.calls["get_order"].executions[0].result
    assert {"lines": [{"sku": "x"}, {"sku": "y"}], "express": False} == run.calls["ship"].executions[0].arguments


# --- retries, settings and hooks --------------------------------------------------------------------------------------


class Spec(BaseModel):
    image: str
    replicas: int = 1


deployed: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def _nothing_deployed() -> None:
    deployed.clear()


@tool(name="deploy", description="Deploys.", context="ctx")
async def deploy_it(spec: Spec, ctx: ToolContext, labels: dict[str, str] | None = None) -> str:
    """Deploys."""
    # The framework hands models over as dictionaries.
    deployed.append((Spec.model_validate(spec).image, ctx.invocation_state.get("user")))
    return "deployed"


@tool
async def watch(steps: int) -> Any:
    """Watches."""
    for step in range(steps):
        yield f"step {step}"
    yield "watched"


@tool
def check(host: str) -> dict[str, Any]:
    """Checks a host."""
    deployed.append(("check", host))
    is_first = len(deployed) == 1
    return {"status": "error" if is_first else "success", "content": [{"text": "down" if is_first else "up"}]}


class Answer(BaseModel):
    """The answer."""

    text: str


class Gate(HookProvider):
    def register_hooks(self, registry: HookRegistry, **options: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.ask)
        registry.add_callback(AfterToolCallEvent, self.look)

    def ask(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == "deploy" and event.interrupt("deploy", reason=event.tool_use["input"]) != "y":
            event.cancel_tool = "no"

    def look(self, event: AfterToolCallEvent) -> None:
        """Look at the result."""


def build(model: Any, gate: type[Gate] = Gate, *hooks: Any, **options: Any) -> Agent:
    return Agent(model=model, tools=[deploy_it, watch, check], hooks=[gate(), *hooks], callback_handler=None, **options)


WORDS = {"approve": "y", "reject": "n"}
DEPLOY = calls("deploy", spec={"image": "web"}, labels={"a": "b"})


@pytest.mark.parametrize("stream", [False, True])
def test_a_structured_answer_and_tools_that_stream(approvals: Approvals, serialize_mode: str, stream: bool) -> None:
    """The answer is a call that a stream shows as any other, and the last value of a generator is its result."""
    run = approvals.run(
        build,
        "Deploy",
        model=[calls("watch", steps=2), DEPLOY, calls("Answer", text="Done.")],
        run_options={"invocation_state": {"user": "ann"}, "structured_output_model": Answer},
        gated={"deploy"},
        oracle=approve_all(),
        answers=WORDS,
        stream=stream,
    )

    assert [("web", "ann")] == deployed
    assert "watched" == run.calls["watch"].executions[0].result


def test_a_hook_that_tries_again(approvals: Approvals) -> None:
    """A call that failed may run again if the application asks for it, as `event.retry` does."""

    class Retrying(Gate):
        def look(self, event: AfterToolCallEvent) -> None:
            event.retry = event.result["status"] == "error"

    run = approvals.run(
        lambda model: build(model, Retrying), "Check", model=[calls("check", host="a"), say("Up.")], answers=WORDS
    )

    assert ["raised", "returned"] == [execution.how for execution in run.calls["check"].executions]


def test_a_hook_that_repeats_what_has_succeeded_is_found(approvals: Approvals) -> None:
    """A second run after a success is a second effect."""

    class Repeating(Gate):
        def look(self, event: AfterToolCallEvent) -> None:
            event.retry = len(deployed) == 1

    with pytest.raises(CheckFailed, match="(?s)runs-at-most-once: .*test_tool_idioms.py"):
        approvals.run(
            lambda model: build(model, Repeating),
            "Deploy",
            model=[DEPLOY, say("Done.")],
            gated={"deploy"},
            oracle=approve_all(),
            answers=WORDS,
        )


def redact(event: BeforeModelCallEvent) -> None:
    for message in event.agent.messages:
        for block in message["content"]:
            if "text" in block:
                block["text"] = block["text"].replace("ann@example.org", "[mail]")


SETTINGS: list[dict[str, Any]] = [
    {"conversation_manager": SlidingWindowConversationManager(window_size=4)},
    {"conversation_manager": SummarizingConversationManager()},
    {"hooks": redact},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=["window", "summary", "hook"])
def test_settings_that_change_what_the_model_is_told(approvals: Approvals, settings: dict[str, Any]) -> None:
    """What an application leaves out of earlier turns, or says in other words, is its own choice."""
    others = dict(settings)
    hooks = [others.pop("hooks")] if "hooks" in others else []
    approvals.run(
        lambda model: build(model, Gate, *hooks, **others),
        model=[say("A."), say("B."), DEPLOY, say("Done.")],
        gated={"deploy"},
        caller=[send("First"), send("Second"), send("Deploy for ann@example.org"), approve("c1")],
        answers=WORDS,
    )

    assert [("web", None)] == deployed


def test_a_hook_that_completes_a_call(approvals: Approvals) -> None:
    """Of a call that nobody has to approve, an application may change the arguments."""

    class Constant(Gate):
        def ask(self, event: BeforeToolCallEvent) -> None:
            if event.tool_use["name"] == "watch":
                event.tool_use["input"]["steps"] = 1

    run = approvals.run(
        lambda model: build(model, Constant), "Watch", model=[calls("watch", steps=5), say("Done.")], answers=WORDS
    )

    assert {"steps": 1} == run.calls["watch"].executions[0].arguments

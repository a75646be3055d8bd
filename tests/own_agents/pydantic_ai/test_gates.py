"""Every way in which the documentation of Pydantic AI lets a person stand before a call, each as it writes it.

https://ai.pydantic.dev/deferred-tools/ and https://ai.pydantic.dev/toolsets/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ExternalToolset,
    FunctionToolset,
    RunContext,
    Tool,
    ToolDefinition,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls, Hooks
from pydantic_ai.toolsets import WrapperToolset

from pytest_approvals import Approvals, approve, approve_all, calls, reject, reject_all, returns, say, send, when

done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def pay(amount: int) -> str:
    """Pays an amount."""
    done.append(amount)
    return f"paid {amount}"


OUTPUT: Any = [str, DeferredToolRequests]


def of_decorator(model: Any) -> Agent[None, Any]:
    agent = Agent(model, output_type=OUTPUT)
    agent.tool_plain(requires_approval=True)(pay)
    return agent


def of_tool(model: Any) -> Agent[None, Any]:
    return Agent(model, tools=[Tool(pay, requires_approval=True)], output_type=OUTPUT)


def of_toolset(model: Any) -> Agent[None, Any]:
    tools: FunctionToolset[None] = FunctionToolset()
    tools.add_function(pay, requires_approval=True)
    return Agent(model, toolsets=[tools], output_type=OUTPUT)


def of_prepared(model: Any) -> Agent[None, Any]:
    """Let `prepare` turn a tool into one that needs approval."""

    async def prepare(context: RunContext[None], definition: ToolDefinition) -> ToolDefinition:
        definition.kind = "unapproved"
        return definition

    return Agent(model, tools=[Tool(pay, prepare=prepare)], output_type=OUTPUT)


def of_wrapper(model: Any) -> Agent[None, Any]:
    """Let a predicate over a whole toolset decide."""
    tools = FunctionToolset([pay])
    return Agent(model, toolsets=[tools.approval_required(lambda *_: True)], output_type=OUTPUT)


def of_body(model: Any) -> Agent[None, Any]:
    """Raise in a function that the body calls."""

    def require(context: RunContext[None]) -> None:
        if not context.tool_call_approved:
            raise ApprovalRequired

    agent = Agent(model, output_type=OUTPUT)

    @agent.tool(name="pay")
    def asking(context: RunContext[None], amount: int) -> str:
        require(context)
        return pay(amount)

    return agent


@dataclass
class AskingToolset(WrapperToolset[Any]):
    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        if name == "pay" and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"why": "money"})
        return await super().call_tool(name, tool_args, ctx, tool)


def of_own_toolset(model: Any) -> Agent[None, Any]:
    """Raise in a wrapper of one's own."""
    return Agent(model, toolsets=[AskingToolset(FunctionToolset([pay]))], output_type=OUTPUT)


def of_hook(model: Any) -> Agent[None, Any]:
    """Raise in a hook."""
    hooks: Hooks[None] = Hooks()

    @hooks.on.before_tool_execute
    async def ask(
        ctx: RunContext[None], *, call: Any, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        if tool_def.name == "pay" and not ctx.tool_call_approved:
            raise ApprovalRequired
        return args

    return Agent(model, tools=[pay], capabilities=[hooks], output_type=OUTPUT)


GATES = [of_decorator, of_tool, of_toolset, of_prepared, of_wrapper, of_body, of_own_toolset, of_hook]
TWO = [calls("pay", amount=5), calls("pay", amount=6), say("Done.")]


@pytest.mark.parametrize("serialize", ["none", "json"])
@pytest.mark.parametrize("build", GATES)
def test_gate(approvals: Approvals, build: Any, serialize: Any) -> None:
    """Whoever asks, a call runs if it was approved."""
    caller = [send("Pay"), approve("c1"), reject("c2", "too much")]
    approvals.run(build, model=TWO, caller=caller, serialize=serialize, gated={"pay"})

    assert [5] == done


@pytest.mark.parametrize("amount", [5, 500])
def test_conditional_gate(approvals: Approvals, amount: int) -> None:
    """`ApprovalRequired` is raised for some calls."""

    def build(model: Any) -> Agent[None, Any]:
        agent = Agent(model, output_type=OUTPUT)

        @agent.tool(name="pay")
        def asking(context: RunContext[None], amount: int) -> str:
            if amount > 100 and not context.tool_call_approved:
                raise ApprovalRequired(metadata={"amount": amount})
            return pay(amount)

        return agent

    model = [calls("pay", amount=amount), say("Paid.")]
    run = approvals.run(
        build, "Pay", model=model, oracle=approve_all(), gated={"pay": when("amount", greater_than=100)}
    )

    assert [amount] == done
    assert (amount > 100) == bool(run.requests)


SCHEMA = {"type": "object", "properties": {"language": {"type": "string"}}, "required": ["language"]}


def external(model: Any) -> Agent[None, Any]:
    definition = ToolDefinition(name="get_preferred_language", parameters_json_schema=SCHEMA)
    return Agent(model, toolsets=[ExternalToolset([definition])], output_type=OUTPUT)


ASKED = [calls("get_preferred_language", language="en"), say("Fine.")]


@pytest.mark.parametrize("serialize", ["none", "copy", "json"])
@pytest.mark.parametrize("stream", [False, True])
def test_external_toolset(approvals: Approvals, serialize: Any, stream: bool) -> None:
    """What the application returns for a call is said by a stub, and an approval lets it run."""
    run = approvals.run(
        external,
        "Hello",
        model=ASKED,
        oracle=approve_all(),
        tools={"get_preferred_language": returns("es-MX")},
        serialize=serialize,
        stream=stream,
    )

    assert ["es-MX"] == [one.result for one in run.calls["get_preferred_language"].executions]
    assert "Fine." == run.output


def test_external_toolset_refused(approvals: Approvals) -> None:
    """The application hands over the reason in place of a result."""
    run = approvals.run(external, "Hello", model=ASKED, oracle=reject_all("none of your business"))

    assert [] == run.calls["get_preferred_language"].executions
    assert "none of your business" in str(run.transcript)


def deferring(model: Any) -> Agent[None, Any]:
    agent = Agent(model, output_type=OUTPUT)

    @agent.tool
    async def calculate_answer(ctx: RunContext[None], question: str) -> str:
        raise CallDeferred(metadata={"task": question})

    return agent


@pytest.mark.parametrize("serialize", ["none", "json"])
def test_call_deferred(approvals: Approvals, serialize: Any) -> None:
    """A body that defers its call has the result of the application."""
    run = approvals.run(
        deferring,
        "What is it?",
        model=[calls("calculate_answer", question="all"), say("42.")],
        oracle=approve_all(),
        answers={"approve": lambda decision: len(decision.request.arguments["question"]) * 14},
        serialize=serialize,
    )

    assert [42] == [one.result for one in run.calls["calculate_answer"].executions if one.how != "asked"]


def test_call_deferred_without_a_result_is_refused(approvals: Approvals) -> None:
    """The message says how to give it."""
    from pytest_approvals.errors import UsageError

    with pytest.raises(UsageError, match="the application executes `calculate_answer`; say what it returns"):
        approvals.run(deferring, "?", model=[calls("calculate_answer", question="all")], oracle=approve_all())


def handled(model: Any) -> Agent[None, Any]:
    async def handle(ctx: RunContext[None], requests: DeferredToolRequests) -> DeferredToolResults:
        denied = {call.tool_call_id: call.args_as_dict()["amount"] < 100 for call in requests.approvals}
        return requests.build_results(approvals=denied)

    return Agent(
        model, tools=[Tool(pay, requires_approval=True)], capabilities=[HandleDeferredToolCalls(handler=handle)]
    )


def test_handler(approvals: Approvals) -> None:
    """A handler of the application answers within the run, so that nobody is asked in the test."""
    model = [calls("pay", amount=5), calls("pay", amount=500), say("Done.")]
    run = approvals.run(handled, "Pay", model=model)

    assert [5] == done
    assert [] == run.requests

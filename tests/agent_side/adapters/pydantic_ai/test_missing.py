"""What the framework cannot do: for each capability that is not claimed, the API that is missing or refuses."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import fields
from inspect import getsource, signature
from pathlib import Path
from typing import Any, get_args

import pydantic_ai
import pytest
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolset,
    ToolApproved,
    ToolDenied,
    UserError,
)
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.native_tools import MCPServerTool
from pydantic_ai.run import AgentRunResult

from pytest_approvals import Scenario, approve, calls, decide, returns, say
from pytest_approvals import call as scenario_call
from pytest_approvals import tool as scenario_tool
from pytest_approvals.agent_side.adapters.pydantic_ai import FLAVOURS
from pytest_approvals.agent_side.contract import Blueprint, Decision, Request, Unsupported
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.journal.events import ModelRequest as Asked
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import AdapterSession, FakeWorld, call, reply, thought, tool

TESTED = {
    "partial_answers",
    "edit_tool",
    "always",
    "never",
    "tampered_request",
    "contradiction",
    "slow_conditions",
    "hosted_mcp",
    "hand_offs",
    "stores_in_turns",
}
REASONING = {"reasoning", "reasoning_between_calls", "redacted_reasoning"}

WEB = (TESTED - {"partial_answers", "tampered_request", "contradiction"}) | {
    "history.append",
    "cancel",
    "trim",
    "hang_up",
    "nested",
    "nested_parallel",
    "nested_gate",
}
DBOS = {
    "stage",
    "trim",
    "rewind",
    "hang_up",
    "serialize.copy",
    "serialize.json",
    "history.append",
}
INLINE = {
    "main_renamed",
    "sub_agent_renamed",
    "hand_off_renamed",
    "hang_up",
    "message_while_pending",
    "message_with_answers",
    "stage",
    "simultaneous",
    "serialize.copy",
    "serialize.json",
    "history.append",
    "fresh",
    "rewind",
    "tools_change",
    "trim",
    "answer.restored",
}


def two_payments(*toolsets: Any) -> Agent[None, Any]:
    """An agent of the framework, whose model asks for two payments."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(parts=[ToolCallPart("pay", {"amount": 5}, "c1"), ToolCallPart("pay", {"amount": 6}, "c2")])

    return Agent(FunctionModel(answer), output_type=[str, DeferredToolRequests], toolsets=list(toolsets))


def payments(ran: list[int], *, gated: bool) -> FunctionToolset[None]:
    """A toolset with one tool that notes what it paid."""
    toolset: FunctionToolset[None] = FunctionToolset(requires_approval=gated)

    @toolset.tool_plain
    async def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    return toolset


@pytest.fixture
def session() -> Any:
    """Begins a session of a flavour that pauses for a payment of 5."""
    begun: list[AdapterSession] = []

    def begin(flavour: str = "") -> AdapterSession:
        pay = tool("pay", "always", amount="integer")
        world = FakeWorld([reply(None, call("pay", amount=5)), reply("Done.")], [pay])
        begun.append(AdapterSession(FLAVOURS[flavour], Blueprint(tools=(pay,)), world))
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


def test_every_missing_capability_is_shown_here() -> None:
    """What is listed as missing has a test below, or beside those of its flavour; a server is none of the framework."""
    assert {
        "": TESTED,
        "raised": TESTED - {"slow_conditions"},
        "inline": (TESTED | INLINE) - {"partial_answers"},
        "dbos": (TESTED | DBOS) - {"stores_in_turns"},
        "vercel": WEB | REASONING | {"edit", "contradiction"},
        "agui": WEB | REASONING | {"stage"},
    } == {flavour: set(adapter.missing) - {"native.postgres"} for flavour, adapter in FLAVOURS.items()}


def test_a_run_refuses_some_answers() -> None:
    """partial_answers: all calls must be answered, or none runs."""
    ran: list[int] = []

    async def answered() -> None:
        agent = two_payments(payments(ran, gated=True))
        paused = await agent.run("Pay.")
        some = DeferredToolResults(approvals={"c1": True})
        await agent.run(message_history=paused.all_messages(), deferred_tool_results=some)

    with pytest.raises(UserError, match="need to be provided for all deferred tool calls"):
        asyncio.run(answered())
    assert [] == ran


def test_an_approval_names_no_other_tool(session: Callable[..., AdapterSession]) -> None:
    """edit_tool: it overrides arguments, and that is all."""
    paused = session()
    (request,) = paused.paused("Pay.")

    assert {"override_args", "kind"} == {field.name for field in fields(ToolApproved)}
    with pytest.raises(Unsupported):
        paused.turn(None, Decision(request=request, verdict="edit", tool="look", arguments={}))


@pytest.mark.parametrize("verdict", ["always", "never"])
def test_answers_do_not_last(session: Callable[..., AdapterSession], verdict: Any) -> None:
    """always, never: results hold one answer for one call id, and an answer says nothing of further calls."""
    paused = session()
    (request,) = paused.paused("Pay.")

    assert {"calls", "approvals", "metadata", "answered_by"} == {field.name for field in fields(DeferredToolResults)}
    assert {"message", "kind"} == {field.name for field in fields(ToolDenied)}
    with pytest.raises(Unsupported):
        paused.turn(None, Decision(request=request, verdict=verdict))


def test_a_run_has_no_store() -> None:
    """stores_in_turns: no argument of an agent or of a run names one; a result gives its messages when it is there."""
    arguments = {*inspect.signature(Agent).parameters, *inspect.signature(Agent.run).parameters}

    assert not [name for name in arguments if "store" in name or "session" in name]
    assert callable(AgentRunResult.all_messages_json)


def test_no_store_of_the_framework_can_be_locked_or_read_only() -> None:
    """Its only one is in memory and for tests; whoever keeps a state owns the file or database that it is kept in."""
    from pydantic_ai import conversation_store

    stores = {
        name
        for name, kind in vars(conversation_store).items()
        if inspect.isclass(kind) and issubclass(kind, conversation_store.ConversationStore)
    }

    assert {"ConversationStore", "InMemoryConversationStore"} == stores
    assert inspect.isabstract(conversation_store.ConversationStore)


def test_a_decision_hands_over_nothing_but_an_id(session: Callable[..., AdapterSession]) -> None:
    """tampered_request: only the id of a request reaches the framework."""
    paused = session()
    (request,) = paused.paused("Pay.")
    tampered = Request(id=request.id, call_id=request.call_id, tool="steal", arguments={"amount": 5000})
    paused.finished(None, Decision(request=tampered, verdict="approve"))

    assert [("pay", {"amount": 5})] == paused.world.ran


def test_one_submission_holds_one_answer_a_call(session: Callable[..., AdapterSession]) -> None:
    """contradiction: answers are a dictionary by call id, and so the last one stands."""
    paused = session()
    (request,) = paused.paused("Pay.")
    answers = [Decision(request=request, verdict=verdict) for verdict in ("approve", "reject")]  # type: ignore[arg-type]
    paused.finished(None, *answers)

    assert [] == paused.world.ran


def test_a_policy_must_not_be_asynchronous() -> None:
    """slow_conditions: what it returns is not awaited, and counts as true."""
    ran: list[int] = []

    class Answer:
        """An answer that would have to be awaited; it says no."""

        def __await__(self) -> Any:
            raise AssertionError("it was awaited")

    def policy(*_: Any) -> Any:
        return Answer()

    paused = asyncio.run(two_payments(payments(ran, gated=False).approval_required(policy)).run("Pay."))

    assert isinstance(paused.output, DeferredToolRequests)
    assert ([], 2) == (ran, len(paused.output.approvals))


def test_hosted_tools_have_no_approval() -> None:
    """hosted_mcp: the tool has no such setting, and the one provider that could ask is told never to."""
    folder = Path(pydantic_ai.__file__).parent
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))

    assert [] == [field.name for field in fields(MCPServerTool) if "approv" in field.name]
    assert 1 == sources.count("require_approval=") == sources.count("require_approval='never'")


def test_nothing_hands_a_conversation_over() -> None:
    """hand_offs: an agent is made with tools, toolsets and an output type, and none of them is another agent."""
    taken = signature(Agent.__init__).parameters

    assert [] == [name for name in taken if "hand" in name or "agents" in name]


# --- behind a web client ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", ["vercel", "agui"])
def test_the_client_keeps_no_reasoning(session: Callable[..., AdapterSession], flavour: str) -> None:
    """reasoning, reasoning_between_calls, redacted_reasoning: what it sends back has none of it."""
    waiting = session(flavour)
    waiting.world.replies[0] = reply(None, call("pay", amount=5), thoughts=[thought("It is small")])
    (request,) = waiting.paused("Pay.")
    waiting.turn(None, Decision(request=request, verdict="approve"))

    assert not any(item.kind == "reasoning" for item in waiting.world.inputs[-1])


def test_an_answer_in_a_ui_message_says_yes_or_no(session: Callable[..., AdapterSession]) -> None:
    """vercel: edit, edit_tool, contradiction, always, never: an approval has an id, `approved`, and a reason."""
    from pydantic_ai.ui.vercel_ai.request_types import ToolApprovalResponded, ToolUIPart

    waiting = session("vercel")
    (request,) = waiting.paused("Pay.")

    assert {"id", "approved", "reason"} == set(ToolApprovalResponded.model_fields)
    assert {"approval"} == {name for part in get_args(ToolUIPart) for name in part.model_fields if "approval" in name}
    for verdict in ("edit", "always", "never"):
        with pytest.raises(Unsupported):
            waiting.turn(None, Decision(request=request, verdict=verdict, arguments={}))  # type: ignore[arg-type]


def test_an_entry_of_resume_answers_one_interrupt(session: Callable[..., AdapterSession]) -> None:
    """agui: edit_tool, always, never, cancel: the payload holds `approved`, arguments, and a reason."""
    from pydantic_ai.ui.ag_ui._interrupt import _ResumePayload

    waiting = session("agui")
    (request,) = waiting.paused("Pay.")

    assert {"approved", "edited_args", "reason"} == set(_ResumePayload.model_fields)
    for verdict, other in (("edit", "look"), ("always", None), ("never", None)):
        with pytest.raises(Unsupported):
            waiting.turn(None, Decision(request=request, verdict=verdict, tool=other, arguments={}))  # type: ignore[arg-type]


@pytest.mark.parametrize("flavour", ["vercel", "agui"])
def test_a_client_refuses_what_its_protocol_has_no_place_for(
    session: Callable[..., AdapterSession], flavour: str
) -> None:
    """cancel, trim; stage, too, where answers are no part of the messages."""
    waiting = session(flavour)
    waiting.paused("Pay.")
    steps = [waiting.agent.cancel(), waiting.agent.trim(1), *([waiting.agent.stage(())] if flavour == "agui" else [])]

    for step in steps:
        with pytest.raises(Unsupported):
            waiting.wait(step)


def test_new_messages_alone_lose_a_result() -> None:
    """vercel: history.append: what a resumed run added begins with results, whose parts are in an earlier message."""
    from pydantic_ai.ui.vercel_ai import VercelAIAdapter

    added = [ModelRequest(parts=[ToolReturnPart("pay", "paid", "c1")]), ModelResponse(parts=[TextPart("Done.")])]
    parts = [part for message in VercelAIAdapter.dump_messages(added, sdk_version=6) for part in message.parts]

    assert ["text"] == [part.type for part in parts]


@pytest.mark.parametrize("flavour", ["vercel", "agui"])
def test_an_answer_carries_no_metadata(flavour: str) -> None:
    """nested: the recipe for delegation needs the metadata of results, and a web client's answers make none."""
    from pydantic_ai.ui.ag_ui import AGUIAdapter
    from pydantic_ai.ui.vercel_ai import VercelAIAdapter

    adapter = {"vercel": VercelAIAdapter, "agui": AGUIAdapter}[flavour]

    assert "metadata=" not in getsource(adapter.deferred_tool_results.func)


# --- inline -----------------------------------------------------------------------------------------------------------


def test_a_waiting_run_takes_no_prompt(session: Callable[..., AdapterSession]) -> None:
    """message_while_pending, message_with_answers: its handler returns answers, and those hold no prompt."""
    waiting = session("inline")
    (request,) = waiting.paused("Pay.")

    for answers in ((), (Decision(request=request, verdict="approve"),)):
        with pytest.raises(Unsupported):
            waiting.turn("Never mind.", *answers)


def test_a_waiting_run_has_no_result(session: Callable[..., AdapterSession]) -> None:
    """All that is about states: the run that would give a history to keep has not come to its end."""
    waiting = session("inline")
    waiting.paused("Pay.")
    tasks = asyncio.all_tasks(waiting.runner.get_loop())

    assert 1 == sum("_run_asking" in repr(task) for task in tasks)
    for step in (
        waiting.agent.dump(),
        waiting.agent.copy_from(waiting.agent),
        waiting.agent.stage(()),
        waiting.agent.trim(1),
    ):
        with pytest.raises(Unsupported):
            waiting.wait(step)


def hung_up(flavour: str) -> RecordedRun:
    """A run whose caller hangs up when the approved call has run, and writes again."""
    story = Scenario(
        title="The caller hangs up",
        tools=[scenario_tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")],
        model=[calls(scenario_call("pay", amount=5)), say("Paid."), say("Well.")],
        caller=["Pay.", decide(approve("c1"), hangs_up="model"), "Well?"],
    )
    adapter = FLAVOURS[flavour]
    source = InProcessSource(name="pydantic_ai", adapter=adapter, facts=describe_adapter(adapter))
    return asyncio.run(run_scenario(story, Variant(), source))


@pytest.mark.parametrize("flavour", ["vercel", "agui"])
def test_a_client_that_left_does_not_learn_what_ran(flavour: str) -> None:
    """The result came in a stream that nobody read, and the server has kept nothing."""
    asked = [event for event in hung_up(flavour).events if isinstance(event, Asked)]
    told = [item["text"] for item in asked[-1].items if item["kind"] == "result"]

    assert "paid 5" not in told


def test_a_waiting_run_outlives_who_hung_up() -> None:
    """It continues as soon as it can, and its model is asked during the next run."""
    asked = [event for event in hung_up("inline").events if isinstance(event, Asked)]

    assert 1 == sum(item["kind"] == "user" for item in asked[-1].items)

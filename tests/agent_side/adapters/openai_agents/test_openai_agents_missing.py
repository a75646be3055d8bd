"""What the adapter does not claim: for each capability, the API of the SDK that is missing or refuses."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import agents
import pytest
from agents import (
    Agent,
    AgentOutputSchema,
    HostedMCPTool,
    RunConfig,
    Runner,
    RunState,
    SessionSettings,
    ToolExecutionConfig,
    function_tool,
)
from agents.exceptions import ModelBehaviorError, UserError
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from agents.models.chatcmpl_converter import Converter
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel, ValidationError

from pytest_approvals.agent_side.adapters.openai_agents import metadata
from pytest_approvals.agent_side.adapters.openai_agents.model import ScriptedModel
from pytest_approvals.agent_side.contract import AsksAgain, ModelCall, Parameter, Reply, ToolSpec
from pytest_approvals.agent_side.kit.context import use_world
from pytest_approvals.testing import AdapterSession, FakeWorld, approve, call, reply, tool

Begin = Callable[..., AdapterSession]

SHOWN: set[str] = set()

QUIET = RunConfig(tracing_disabled=True)
DONE = reply("Done.")
PAYS = reply(None, call("pay", amount=5))


def shows(*capabilities: str) -> Callable[[Any], Any]:
    """Notes which capabilities a test is about."""
    SHOWN.update(capabilities)
    return lambda test: test


@function_tool(needs_approval=True)
async def pay(amount: int) -> str:
    return f"paid {amount}"


async def paused(*replies: Reply) -> tuple[Agent[Any], RunState[Any], FakeWorld]:
    world = FakeWorld(replies, [], {})
    agent = Agent[Any](name="main", model=ScriptedModel("main"), tools=[pay])
    with use_world(world):
        result = await Runner.run(agent, "Pay.", run_config=QUIET)
    return agent, result.to_state(), world


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


@shows("edit", "edit_tool", "malformed_verdict")
def test_a_decision_is_a_method_without_arguments_for_the_call() -> None:
    """`approve` and `reject` take the item and whether it shall last; there is no place for a value."""
    assert ["self", "approval_item", "always_approve"] == parameters(RunState.approve)
    assert ["self", "approval_item", "always_reject", "rejection_message"] == parameters(RunState.reject)


@shows("edit", "edit_tool")
@pytest.mark.parametrize("change", [{"arguments": '{"amount": 1}'}, {"name": "look"}], ids=["arguments", "tool"])
@pytest.mark.asyncio
async def test_a_changed_item_is_refused(change: dict[str, str]) -> None:
    """What was changed on the item is taken for another call with the same id."""
    _, state, _ = await paused(PAYS)
    (item,) = state.get_interruptions()
    item.raw_item = item.raw_item.model_copy(update=change)

    with pytest.raises(ModelBehaviorError, match="a different invocation"):
        state.approve(dataclasses.replace(item, tool_name=None, tool_lookup_key=None))


@shows("cancel")
def test_a_paused_run_cannot_be_given_up() -> None:
    """This is all that can be done with a `RunState`."""
    assert {
        "add_input", "approve", "clear_pending_input", "from_json", "from_string", "get_interruptions",
        "get_tool_use_tracker_snapshot", "pending_input", "reject", "set_reasoning_item_id_policy",
        "set_tool_use_tracker_snapshot", "set_trace", "to_json", "to_string",
    } == {name for name in vars(RunState) if not name.startswith("_")}  # fmt: skip


@shows("cancel")
@pytest.mark.asyncio
async def test_cancelling_a_stream_leaves_its_requests_open() -> None:
    """`RunResultStreaming.cancel` stops a stream; a run that has paused stays paused."""
    world = FakeWorld([PAYS], [], {})
    agent = Agent[Any](name="main", model=ScriptedModel("main"), tools=[pay])
    with use_world(world):
        result = Runner.run_streamed(agent, "Pay.", run_config=QUIET)
        async for _ in result.stream_events():
            pass
    result.cancel()

    assert 1 == len(result.to_state().get_interruptions())


@shows("contradiction")
@pytest.mark.asyncio
async def test_a_later_decision_takes_the_earlier_ones_place() -> None:
    """What is handed to the runner holds one decision, independent of earlier ones."""
    _, contradicted, _ = await paused(PAYS)
    _, approved, _ = await paused(PAYS)
    (item,) = contradicted.get_interruptions()
    contradicted.reject(item)
    contradicted.approve(item)
    approved.approve(approved.get_interruptions()[0])

    assert approved.to_json()["context"]["approvals"] == contradicted.to_json()["context"]["approvals"]
    assert (
        approved.to_json()["context"]["function_tool_approvals"]
        == contradicted.to_json()["context"]["function_tool_approvals"]
    )


@shows("missing_ids")
def test_a_call_needs_an_id() -> None:
    """The type that models give calls in requires one."""
    with pytest.raises(ValidationError, match="call_id"):
        ResponseFunctionToolCall.model_validate({"type": "function_call", "name": "pay", "arguments": "{}"})


@shows("missing_ids")
@pytest.mark.asyncio
async def test_an_empty_id_is_the_models_fault() -> None:
    """`agents.Model` asks for ids that are not empty, and the runner insists."""
    with pytest.raises(ModelBehaviorError, match="call ID"):
        await paused(reply(None, ModelCall(id="", tool="pay", arguments={"amount": 5})))


@shows("asks_again")
def test_a_body_cannot_ask(begin: Begin) -> None:
    """What it raises is told to the model, and the turn goes on."""
    asks = tool("look", what="string")
    session = begin(reply(None, call("look", what="a")), DONE, tools=[asks], results={"look": AsksAgain("sure?")})

    assert "Done." == session.finished("Look.")


@shows("asks_again")
def test_the_sdk_exports_nothing_to_ask_with() -> None:
    """Its names about approvals are items and callbacks, not signals of a body."""
    assert {
        "ApplyPatchOnApprovalFunction", "ApplyPatchOnApprovalFunctionResult", "CustomToolApprovalFunction",
        "CustomToolOnApprovalFunction", "CustomToolOnApprovalFunctionResult", "MCPApprovalRequestItem",
        "MCPApprovalResponseItem", "MCPToolApprovalFunction", "MCPToolApprovalFunctionResult",
        "MCPToolApprovalRequest", "ShellApprovalFunction", "ShellOnApprovalFunction",
        "ShellOnApprovalFunctionResult", "ToolApprovalItem",
    } >= {name for name in dir(agents) if "approv" in name.lower()}  # fmt: skip


@shows("limit_tool_calls")
def test_nothing_limits_the_number_of_tool_calls() -> None:
    """A run has `max_turns`, and the execution of tools a concurrency."""
    assert {
        "starting_agent", "input", "context", "max_turns", "hooks", "run_config", "error_handlers",
        "previous_response_id", "auto_previous_response_id", "conversation_id", "session",
    } == set(parameters(Runner.run))  # fmt: skip
    assert {"max_function_tool_concurrency", "pre_approval_tool_input_guardrails"} >= {
        field.name for field in dataclasses.fields(ToolExecutionConfig)
    }


@shows("serialize.copy")
def test_a_deep_copy_loses_the_run_of_an_agent_tool(begin: Begin) -> None:
    """An approval put into the copy runs nothing, and the call of the agent is gone from the model's input."""
    ask = ToolSpec(name="ask", parameters={"input": Parameter()}, runs="helper")
    inner = dataclasses.replace(tool("pay", "always", amount="integer"), agent="helper")
    asks, pays = reply(None, call("ask", "o1", input="x")), reply(None, call("pay", "i1", amount=1))
    session = begin(asks, pays, reply("Again."), tools=[ask, inner])
    session.paused("Go.")
    memory = session.agent._state
    memory.runs = [copy.deepcopy(memory.runs[-1])]
    output = session.finished(None, *map(approve, session.pending()))

    assert ("Again.", []) == (output, session.world.ran)
    assert ["Go."] == [item.text for item in session.world.inputs[-1]]


@shows("history.append")
@pytest.mark.asyncio
async def test_a_state_is_written_whole() -> None:
    """The second pause of a run is written with all that came before the first."""
    agent, state, world = await paused(PAYS, reply(None, call("pay", "c2", amount=6)))
    state.approve(state.get_interruptions()[0])
    with use_world(world):
        second = (await Runner.run(agent, state, run_config=QUIET)).to_state()

    assert ["self", "context_serializer", "strict_context", "include_tracing_api_key"] == parameters(RunState.to_json)
    assert ["c1", "c2"] == [
        item["raw_item"]["call_id"] for item in second.to_json()["generated_items"] if item["type"] == "tool_call_item"
    ]


@shows("trim")
@pytest.mark.asyncio
async def test_without_a_session_nothing_is_trimmed() -> None:
    """The limit of session settings does not reach a list of the caller's."""
    world = FakeWorld([DONE], [], {})
    agent = Agent[Any](name="main", model=ScriptedModel("main"))
    limited = RunConfig(tracing_disabled=True, session_settings=SessionSettings(limit=1))
    given: Any = [{"role": "user", "content": text} for text in ("One.", "Two.", "Three.")]
    with use_world(world):
        await Runner.run(agent, given, run_config=limited)

    assert ["One.", "Two.", "Three."] == [item.text for item in world.inputs[-1]]


@shows("simultaneous")
def test_two_runs_on_one_session_are_ruled_out() -> None:
    """What must not be done cannot be right or wrong; which write comes first is left to threads."""
    says = " ".join((RunState.__doc__ or "").split())

    assert "snapshots must not be resumed concurrently against the same Session" in says


@shows("elicitation")
@pytest.mark.parametrize("server", [MCPServerStdio, MCPServerStreamableHttp])
def test_nothing_answers_what_a_server_asks(server: Any) -> None:
    """A server takes a handler of messages, which are notifications, and none of requests."""
    handlers = {name for name in parameters(server.__init__) if "handler" in name or "callback" in name}

    assert {"message_handler"} == handlers


@shows("hosted_mcp")
def test_chat_completions_refuses_hosted_tools() -> None:
    """What makes the request out of the tools raises, before anything is sent."""
    config: Any = {"type": "mcp", "server_label": "docs", "server_url": "https://docs.invalid/mcp"}

    with pytest.raises(UserError, match="Hosted tools are not supported"):
        Converter.tool_to_openai(HostedMCPTool(tool_config=config))


@shows("reasoning_between_calls", "redacted_reasoning")
def test_a_message_has_one_field_for_reasoning() -> None:
    """What the converter reads of a message is one text, in front of everything else."""
    message: Any = ChatCompletionMessage.model_validate(
        {"role": "assistant", "content": "Yes.", "reasoning_content": "It is small"}
    )
    first, *others = Converter.message_to_output_items(message)

    assert "reasoning" == first.type
    assert "reasoning" not in [item.type for item in others]


class Answer(BaseModel):
    total: int


@shows("text_with_answer")
def test_the_text_of_a_reply_is_the_answer() -> None:
    """Text in front of it leaves nothing that can be read."""
    schema = AgentOutputSchema(Answer)
    assert Answer(total=5) == schema.validate_json('{"total": 5}')

    with pytest.raises(ModelBehaviorError, match="Invalid JSON"):
        schema.validate_json('It is 5.{"total": 5}')


def test_every_missing_capability_is_shown() -> None:
    """Nothing is declared missing without a test above."""
    assert SHOWN == set(metadata.MISSING) | set(metadata.SESSION_MISSING) | set(metadata.CHAT_MISSING)

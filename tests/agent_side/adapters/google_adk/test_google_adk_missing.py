"""What the framework cannot do: for each capability that is not claimed, the API that is missing or refuses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.runners import Runner
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types
from pydantic import ValidationError

from pytest_approvals.agent_side.adapters.google_adk import FLAVOURS
from pytest_approvals.agent_side.contract import Blueprint, Decision, Request, Unsupported
from pytest_approvals.testing import AdapterSession, FakeWorld, approve, call, reply, thought, tool

EVERYWHERE = {
    "annotations",
    "sub_agent_renamed",
    "reasoning_between_calls",
    "message_with_answers",
    "edit_tool",
    "always",
    "never",
    "stage",
    "cancel",
    "tampered_request",
    "broken_arguments",
    "hosted_mcp",
    "limit_tool_calls",
}

DONE = reply("Done.")
PAYS = reply(None, call("pay", amount=5))
Begin = Callable[..., AdapterSession]


@pytest.fixture
def session() -> Iterator[Begin]:
    """Begins a session of a flavour with a gated tool."""
    begun: list[AdapterSession] = []

    def begin(*replies: Any, flavour: str = "") -> AdapterSession:
        tools = tool("pay", "always", amount="integer"), tool("look", what="string")
        world = FakeWorld(replies or (PAYS, DONE), tools)
        begun.append(AdapterSession(FLAVOURS[flavour], Blueprint(tools=tools), world))
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


@pytest.mark.parametrize(
    ("flavour", "more"),
    [
        ("", {"go_on_without_answer", "edit"}),
        ("resumable", {"edit"}),
        ("dynamic", {"go_on_without_answer"}),
        ("custom_tool", {"go_on_without_answer", "edit"}),
    ],
)
def test_each_has_its_test(flavour: str, more: set[str]) -> None:
    """What is listed as missing is what the tests below are about."""
    missing = set(FLAVOURS[flavour].missing) - {"native.postgres"}

    assert EVERYWHERE | more == missing


def test_an_answer_says_yes_or_no_and_brings_a_payload() -> None:
    """always, never, edit_tool: there is no other field, and no other is taken."""
    assert {"hint", "confirmed", "payload"} == set(ToolConfirmation.model_fields)
    with pytest.raises(ValidationError):
        ToolConfirmation.model_validate({"confirmed": True, "always": True})


def test_a_message_is_text_or_answers(session: Begin) -> None:
    """message_with_answers: the runner refuses one that is both."""
    paused = session()
    (request,) = paused.paused("Pay.")
    answer = types.FunctionResponse(id=request.id, name="adk_request_confirmation", response={"confirmed": True})
    both = types.Content(role="user", parts=[types.Part(function_response=answer), types.Part(text="And hurry.")])

    async def send() -> None:
        agent: Any = paused.agent
        async for _ in agent._runner.run_async(user_id="person", session_id=agent._id, new_message=both):
            pass

    with pytest.raises(ValueError, match="both function responses and text"):
        paused.wait(send())
    with pytest.raises(Unsupported):
        paused.turn("And hurry.", approve(request))


def test_the_static_gate_ignores_other_arguments(session: Begin) -> None:
    """edit: the payload of an answer is not looked at, and the call runs as it was made."""
    paused = session()
    (request,) = paused.paused("Pay.")
    paused.finished(None, Decision(request=request, verdict="edit", arguments={"amount": 1}))

    assert [("pay", {"amount": 5})] == paused.world.ran


def test_an_answer_holds_an_id_and_nothing_of_the_request(session: Begin) -> None:
    """tampered_request: only the id of a request reaches the framework."""
    paused = session()
    (request,) = paused.paused("Pay.")
    tampered = Request(id=request.id, call_id=request.call_id, tool="steal", arguments={"amount": 5000})
    paused.finished(None, approve(tampered))

    assert [("pay", {"amount": 5})] == paused.world.ran


def test_arguments_are_a_dictionary() -> None:
    """broken_arguments: a model class cannot give anything else."""
    with pytest.raises(ValidationError):
        types.FunctionCall(name="pay", args='{"amount": ')


def test_runs_are_limited_by_the_calls_of_the_model_alone() -> None:
    """limit_tool_calls: no option of a run is about tools' calls."""
    assert ["max_llm_calls"] == [name for name in RunConfig.model_fields if name.startswith("max_") or "limit" in name]


def test_a_runner_runs_and_rewinds() -> None:
    """stage, cancel: there is no method that takes an answer without going on, or that gives up a request."""
    methods = {name for name in dir(Runner) if not name.startswith("_") and callable(getattr(Runner, name))}

    assert {"run", "run_async", "run_debug", "run_live", "rewind_async", "close"} == methods


def test_there_is_no_request_of_a_provider() -> None:
    """hosted_mcp: a part of a model's content has calls of tools that the provider runs, and no approval of them."""
    assert not [name for name in types.Part.model_fields if "approval" in name or "confirm" in name]


@pytest.mark.parametrize("flavour", ["", "dynamic", "custom_tool"])
def test_a_run_needs_a_message(session: Begin, flavour: str) -> None:
    """go_on_without_answer: the documentation of `run_async` wants a message or an invocation of a resumable app."""
    paused = session(flavour=flavour)
    paused.paused("Pay.")

    assert "If both invocation_id and" in str(Runner.run_async.__doc__)
    with pytest.raises(Unsupported):
        paused.turn()


def test_reasoning_is_signed_on_the_first_call(session: Begin) -> None:
    """reasoning_between_calls: of two calls the second has no signature, as with Gemini."""
    story = session()
    calls = call("look", "c2", what="a"), call("pay", amount=5)
    story.world.replies[0] = reply(None, *calls, thoughts=[thought("It is small", before=1)])
    (request,) = story.paused("Pay 5.")
    story.turn(None, approve(request))
    kinds = [item.kind for item in story.world.inputs[-1]]

    assert ["reasoning", "call", "call"] == kinds[1:4]


def test_annotations_of_a_server_are_not_handed_on() -> None:
    """annotations: what decides whether to confirm is told the arguments, and a tool has none."""
    from google.adk.tools.mcp_tool.mcp_tool import McpTool

    assert "annotations" not in inspect.getsource(McpTool)


def test_a_tool_that_runs_an_agent_has_its_name() -> None:
    """sub_agent_renamed: with another name the tool is another one, too."""
    from google.adk.agents import LlmAgent
    from google.adk.tools.agent_tool import AgentTool

    assert "clerk" == AgentTool(agent=LlmAgent(name="clerk")).name

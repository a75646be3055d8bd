"""What the framework cannot do: for each capability that is not claimed, the API that is missing or refuses."""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from agent_framework import (
    AgentResponse,
    AgentSession,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FileSessionStore,
    FunctionTool,
    Message,
    ToolApprovalMiddleware,
    Workflow,
)
from agent_framework.exceptions import ContentError
from pydantic import BaseModel, ValidationError

from pytest_approvals.agent_side.adapters.agent_framework import FLAVOURS
from pytest_approvals.agent_side.contract import Blueprint, Decision, Unsupported
from pytest_approvals.runner.model_endpoint import ModelEndpoint
from pytest_approvals.testing import AdapterSession, FakeWorld, call, reply, tool

Begin = Callable[..., AdapterSession]

EVERYWHERE = {
    "edit",
    "edit_tool",
    "text_with_answer",
    "never",
    "stage",
    "cancel",
    "history.append",
    "hand_offs",
    "changing_ids",
    "limit_model_replies",
    "asks_again",
    "elicitation",
    "annotations",
}
REASONING = {"reasoning", "reasoning_between_calls", "redacted_reasoning"}
NO_POLICY = {"conditional_approval", "slow_conditions", "raising_conditions", "always"}
RESPONSES = {"missing_ids", "structured_answer", "go_on_without_answer"}
WORKFLOW = {
    "serialize.json",
    "message_with_answers",
    "contradiction",
    "malformed_address",
    "trim",
    "structured_answer",
}


@pytest.fixture
def session() -> Iterator[Begin]:
    """Begins a session of a flavour with a gated tool."""
    with ExitStack() as at_the_end:

        def begin(flavour: str = "") -> AdapterSession:
            tools = (tool("pay", "always", amount="integer"),)
            world = FakeWorld((reply(None, call("pay", amount=5)), reply("Done.")), tools)
            native = FLAVOURS[flavour].native
            served = at_the_end.enter_context(closing(ModelEndpoint(native))) if native else None
            story = AdapterSession(FLAVOURS[flavour], Blueprint(tools=tools), world, served)
            at_the_end.callback(story.end)
            return story

        yield begin


def parameters(method: Any) -> set[str]:
    return set(inspect.signature(method).parameters)


def test_every_missing_capability_is_shown_here() -> None:
    """What is listed as missing has a test below."""
    assert {
        "": EVERYWHERE | NO_POLICY | {"hosted_mcp", "stores_in_turns"},
        "openai_chat": EVERYWHERE | NO_POLICY | REASONING | {"hosted_mcp"},
        "approval_middleware": EVERYWHERE | {"hosted_mcp", "partial_answers", "slow_conditions"},
        "openai": EVERYWHERE | NO_POLICY | RESPONSES | {"trim"},
        "openai_unstored": EVERYWHERE | NO_POLICY | RESPONSES,
        "replayed": (EVERYWHERE | NO_POLICY | {"hosted_mcp", "trim"}) - {"history.append"},
        "workflow": EVERYWHERE | NO_POLICY | WORKFLOW | {"hosted_mcp"},
    } == {
        one: set(FLAVOURS[one].missing)
        for one in ("", "openai_chat", "approval_middleware", "openai", "openai_unstored", "replayed", "workflow")
    }


def test_an_answer_is_yes_or_no() -> None:
    """edit, edit_tool, never: a response says whether a call is approved, and takes nothing else."""
    assert {"self", "approved"} == parameters(Content.to_function_approval_response)


@pytest.mark.parametrize("verdict", ["edit", "never"])
def test_another_answer_is_not_made_up(session: Begin, verdict: Any) -> None:
    """edit, never: the adapter has nothing to hand over for them."""
    paused = session()
    (request,) = paused.paused("Pay.")

    with pytest.raises(Unsupported, match=verdict):
        paused.turn(None, Decision(request=request, verdict=verdict, arguments={"amount": 1}))


def test_a_session_has_no_answers_of_its_own(session: Begin) -> None:
    """stage, cancel, history.append: a session is written as a whole, and nothing puts answers into it."""
    assert {"create", "from_dict", "to_dict", "service_session_id", "session_id", "state"} >= {
        name for name in dir(AgentSession) if not name.startswith("_")
    }
    paused = session()
    paused.paused("Pay.")
    for step in (paused.agent.stage(()), paused.agent.cancel()):
        with pytest.raises(Unsupported):
            paused.wait(step)


def test_nothing_answers_what_a_server_asks() -> None:
    """elicitation: a tool takes an answer to sampling, and none to what its server asks a person."""
    from agent_framework import MCPStreamableHTTPTool

    callbacks = {name for name in parameters(MCPStreamableHTTPTool.__init__) if "callback" in name or "handler" in name}

    assert {"sampling_approval_callback"} == callbacks


def test_a_gate_is_a_word() -> None:
    """conditional_approval, slow_conditions, raising_conditions, asks_again: a tool is told always or never."""
    assert "approval_mode" in parameters(FunctionTool)
    assert not {"needs_approval", "condition", "when"} & parameters(FunctionTool)


def test_the_middleware_has_rules_that_approve(session: Begin) -> None:
    """never, partial_answers: there are rules for yes, and what waits is queued."""
    assert {"source_id", "auto_approval_rules"} == parameters(ToolApprovalMiddleware)
    assert 1 == len(session("approval_middleware").paused("Pay."))


class Answer(BaseModel):
    total: int


def test_all_text_of_a_response_is_the_answer() -> None:
    """text_with_answer: text in front of the answer leaves nothing that can be read."""
    texts = [Content.from_text("It is 5."), Content.from_text('{"total": 5}')]

    assert Answer(total=5) == AgentResponse(messages=[Message("assistant", texts[1:])], response_format=Answer).value
    with pytest.raises(ValidationError, match="Invalid JSON"):
        _ = AgentResponse(messages=[Message("assistant", texts)], response_format=Answer).value


def test_a_workflow_takes_one_thing_at_a_time(session: Begin) -> None:
    """message_with_answers, contradiction, malformed_address: a message, or a mapping by the ids of requests."""
    paused = session("workflow")
    (request,) = paused.paused("Pay.")
    assert {"message", "responses", "checkpoint_id", "checkpoint_storage"} <= parameters(Workflow.run)

    with pytest.raises(Unsupported, match="message_with_answers"):
        paused.turn("And hurry.", Decision(request=request, verdict="approve"))


def test_a_workflow_is_not_text(session: Begin) -> None:
    """serialize.json, trim, structured_answer: a storage keeps checkpoints, and they hold the agent's session."""
    paused = session("workflow")
    paused.paused("Pay.")

    with pytest.raises(Unsupported, match=r"serialize\.json"):
        paused.wait(paused.agent.dump())


def test_a_session_is_stored_by_the_application() -> None:
    """stores_in_turns: a session knows no store, and a store is asked for nothing but a whole session."""
    assert not [name for name in parameters(AgentSession) if "store" in name]
    assert {"get", "set"} <= set(dir(FileSessionStore))


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, LookupError, "has no session 'monday': it was never stored there, or was removed; name the folder"),
        ("{", ValueError, "monday.json"),
        ('{"type": "session", "version": "99", "state": {}}', ValueError, "monday.json"),
    ],
)
def test_a_store_that_cannot_be_used_is_named(
    tmp_path: Path, content: str | None, error: type[Exception], message: str
) -> None:
    """A session that was never stored, half a one and one of another release are told by their place."""
    if content is not None:
        (tmp_path / "monday.json").write_text(content, encoding="utf-8")
    agent = FLAVOURS[""](FakeWorld([], []), Blueprint(serialize="native.file", directory=str(tmp_path)))

    with pytest.raises(error, match=message):
        asyncio.run(agent.load(["monday"]))


def test_a_store_that_can_only_be_read_is_named(read_only_folder: Path) -> None:
    """By its place, with what to do, when a session is stored."""
    directory = read_only_folder
    agent = FLAVOURS[""](FakeWorld([], []), Blueprint(serialize="native.file", directory=str(directory)))

    with pytest.raises(Unsupported, match=f"native.file: the store at {directory} cannot be used: PermissionError"):
        asyncio.run(agent.dump())


def test_checkpoints_that_cannot_be_written_are_named(read_only_folder: Path) -> None:
    """When their folder is made: a checkpoint that fails later is in the framework's log only."""
    with pytest.raises(Unsupported, match=r"PermissionError: .*; its user may not do that: grant it, or use another"):
        FLAVOURS["workflow"](FakeWorld([], []), Blueprint(serialize="native.file", directory=str(read_only_folder)))


def test_a_store_of_sessions_knows_no_lock_of_another_process(tmp_path: Path) -> None:
    """Its locks are those of its process; who locks the file keeps nobody from storing over it, as documented."""
    store = FileSessionStore(tmp_path)
    asyncio.run(store.set("monday", AgentSession(session_id="first")))
    with next(tmp_path.glob("monday*")).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        asyncio.run(store.set("monday", AgentSession(session_id="second")))

    assert "second" == asyncio.run(store.get("monday")).session_id


def test_a_stored_conversation_is_the_providers(session: Begin) -> None:
    """trim, go_on_without_answer: there is nothing to trim, and a run without a message is refused."""
    paused = session("openai")
    paused.paused("Pay.")

    with pytest.raises(Unsupported, match="trim"):
        paused.wait(paused.agent.trim(1))
    with pytest.raises(Exception, match="Messages are required"):
        paused.turn(None)


def test_rounds_are_limited_and_not_replies() -> None:
    """limit_model_replies: what is left is one more reply without tools, as documented."""
    from agent_framework import FunctionInvocationConfiguration

    assert "max_iterations" in FunctionInvocationConfiguration.__annotations__
    assert not {"max_replies", "max_turns"} & set(FunctionInvocationConfiguration.__annotations__)


def test_agents_hand_over_in_another_distribution() -> None:
    """hand_offs: they are workflows of agent-framework-orchestrations; an agent has no place for them."""
    from agent_framework import Agent

    assert not {"handoffs", "hand_offs"} & parameters(Agent)


def test_a_call_keeps_its_id_in_a_stream() -> None:
    """changing_ids: an update with another id for a call that has begun cannot be added to it."""
    pieces = [
        Content.from_function_call(call_id=call_id, id="o1", merge_mode="append", name=name, arguments=text)
        for call_id, name, text in (("c1", "pay", ""), ("c1-1", "", '{"amount": 5}'))
    ]
    updates = [ChatResponseUpdate(role="assistant", contents=[piece]) for piece in pieces]

    with pytest.raises(ContentError, match="different call_ids"):
        ChatResponse.from_updates(updates)


def test_chat_knows_no_hosted_servers() -> None:
    """hosted_mcp: the client for Chat Completions makes no such tool."""
    from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

    assert hasattr(OpenAIChatClient, "get_mcp_tool")
    assert not hasattr(OpenAIChatCompletionClient, "get_mcp_tool")


def test_chat_sends_no_reasoning_content() -> None:
    """reasoning: the client for Chat Completions reads and sends what OpenRouter calls `reasoning_details`."""
    import agent_framework_openai._chat_completion_client as client

    source = inspect.getsource(client)
    assert "reasoning_details" in source
    assert "reasoning_content" not in source


def test_only_its_flavour_needs_the_approval_middleware(monkeypatch: pytest.MonkeyPatch) -> None:
    """Early releases lack it, and the other flavours build their tools there."""
    early = ModuleType("agent_framework")
    vars(early)["FunctionTool"] = FunctionTool
    monkeypatch.setitem(sys.modules, "agent_framework", early)
    spec = importlib.util.find_spec("pytest_approvals.agent_side.adapters.agent_framework.tools")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert "pay" == module.build_tool(tool("pay", "always", amount="integer"), {}).name
    with pytest.raises(ImportError, match="ToolApprovalMiddleware"):
        module.build_approval_middleware(())


def test_no_function_decides_about_a_tool_of_a_server() -> None:
    """annotations: the approval mode of a server's tools is a word, or lists of names."""
    from agent_framework import MCPStreamableHTTPTool

    mode = inspect.signature(MCPStreamableHTTPTool.__init__).parameters["approval_mode"].annotation

    assert "Literal['always_require', 'never_require'] | MCPSpecificApproval | None" == str(mode)

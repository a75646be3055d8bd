"""Forks of sessions of the Claude Agent SDK: the option `forks`, and what the SDK copies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    ResultMessage,
    create_sdk_mcp_server,
    fork_session,
    get_session_messages,
    tool,
)

from pytest_approvals import approve, calls, decide, reject, restore, save, say, send
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]
Run = Callable[..., ResultMessage]

FORKS = {"forks": True}
PAYS = calls("pay", amount=5)
DONE = say("Done.")
PAY = "mcp__bank__pay"

each_store = pytest.mark.parametrize(
    "variant",
    [
        Variant(serialize="copy", source="restored"),
        Variant(serialize="json", source="restored"),
        Variant(serialize="json", history="append", source="restored"),
        Variant(serialize="native.home", source="restored"),
    ],
    ids=lambda variant: variant.id,
)


@each_store
def test_a_deferred_call_is_answered_in_a_fork(play: Play, variant: Variant) -> None:
    """It runs once, and the next turn is one of a fork of the fork."""
    caller = [send("Pay 5."), decide(approve("c1")), send("Thank you.")]
    played = play(PAYS, DONE, say("Welcome."), caller=caller, variant=variant, options=FORKS)

    assert ["paused", "finished", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert [2, 5, 7] == [len(items) for items in played.inputs]


@each_store
def test_a_saved_session_stays_as_it_is(play: Play, variant: Variant) -> None:
    """What was rejected in one fork is approved in another one, whose model knows nothing of the rejection."""
    caller = [send("Pay 5."), save("asked"), decide(reject("c1")), restore("asked"), decide(approve("c1"))]
    played = play(PAYS, DONE, caller=caller, variant=variant, options=FORKS)

    assert ["paused", "finished", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


@pytest.mark.parametrize(("options", "runs"), [(FORKS, 2), ({}, 1)])
def test_a_call_that_was_approved_runs_in_a_fork_again(play: Play, options: Mapping[str, Any], runs: int) -> None:
    """A fork is a copy; a session of the CLI that goes on where it is knows that the call has run."""
    story = [send("Pay 5."), save("asked"), decide(approve("c1")), restore("asked"), decide(approve("c1"))]
    variant = Variant(serialize="native.home", source="restored")
    played = play(PAYS, DONE, caller=story, variant=variant, options=options)

    assert runs == len(played.ran)


# --- what the SDK copies ----------------------------------------------------------------------------------------------


@pytest.fixture
def run(model_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Sends a message, or lets a resumed session go on, and answers what the hook is asked."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    variables = {
        **model_server.environment,
        "CLAUDE_CONFIG_DIR": str(tmp_path),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "ENABLE_TOOL_SEARCH": "false",
    }
    settings = {"env": variables, "cwd": str(tmp_path), "setting_sources": [], "strict_mcp_config": True}

    @tool("pay", "Pays an amount.", {"amount": int})
    async def pay(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"paid {arguments['amount']}"}]}

    async def receive(text: str | None, decision: str, options: Mapping[str, Any]) -> ResultMessage:
        async def decide(asked: Any, call_id: str | None, context: Any) -> dict[str, Any]:
            return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}}

        servers = {"bank": create_sdk_mcp_server("bank", tools=[pay])}
        hooks = {"PreToolUse": [HookMatcher(hooks=[decide])]}
        chosen: Any = {"model": "scripted", "tools": [], "mcp_servers": servers, "hooks": hooks, **settings, **options}
        async with ClaudeSDKClient(ClaudeAgentOptions(**chosen)) as client:
            if text is not None:
                await client.query(text)
            async for message in client.receive_messages():
                if isinstance(message, ResultMessage):
                    return message
        raise EOFError("no result")

    def sent(text: str | None, *, decision: str, **options: Any) -> ResultMessage:
        return asyncio.run(asyncio.wait_for(receive(text, decision, options), 60))

    return sent


def read_results(scripted_model: Any) -> list[str]:
    """Return the results of calls that the model was told last."""
    return [item["text"] for item in scripted_model.requests[-1].items if item["kind"] == "result"]


def test_the_function_copies_a_deferred_call(scripted_model: Any, run: Run, tmp_path: Path) -> None:
    """`fork_session` does what the option of the same name does."""
    scripted_model.speaks("messages").calls(PAY, amount=5).says("Paid.")
    paused = run("Pay 5", decision="defer")
    fork = fork_session(paused.session_id, str(tmp_path)).session_id
    run(None, decision="allow", resume=fork)

    assert ["paid 5"] == read_results(scripted_model)


# The fork is another conversation with the same model.
@pytest.mark.filterwarnings("ignore::pytest_approvals.errors.RequirementWarning")
@pytest.mark.parametrize("by", ["option", "function"])
def test_a_fork_behind_the_message_that_calls_defers_nothing(
    scripted_model: Any, run: Run, tmp_path: Path, by: str
) -> None:
    """What was deferred before the session went on is an entry behind it, which `get_session_messages` leaves out.

    The fork waits for a message, without a result, and the call counts as cut off when one comes.
    """
    scripted_model.speaks("messages").calls(PAY, amount=5).says("Paid.").says("Hello.")
    paused = run("Pay 5", decision="defer")
    run(None, decision="allow", resume=paused.session_id)
    calling = get_session_messages(paused.session_id, str(tmp_path))[1]
    assert "assistant" == calling.type
    if by == "option":
        options = {"resume": paused.session_id, "fork_session": True, "resume_session_at": calling.uuid}
    else:
        options = {"resume": fork_session(paused.session_id, str(tmp_path), calling.uuid).session_id}
    result = run("Hello?", decision="allow", **options)

    assert ("Hello.", None) == (result.result, result.deferred_tool_use)
    (told,) = read_results(scripted_model)
    assert told.startswith("[Tool ")

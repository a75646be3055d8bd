"""What the SDK cannot do: for each capability that is not claimed, the API that is missing or refuses.

What a reply with several calls does (`parallel`, `partial_answers`) is shown by the stories of `turns`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
)
from claude_agent_sdk import types as messages
from claude_agent_sdk.types import (
    CanUseTool,
    ElicitationHookSpecificOutput,
    HookEvent,
    McpHttpServerConfig,
    PreToolUseHookSpecificOutput,
)

from pytest_approvals.agent_side.adapters.claude_agent_sdk import FLAVOURS
from pytest_approvals.agent_side.contract import Attachment, Blueprint, Decision, Unsupported
from pytest_approvals.agent_side.contract.capabilities import PROTOCOLS, RENAMED
from pytest_approvals.runner.model_endpoint import ModelEndpoint
from pytest_approvals.testing import AdapterSession, FakeWorld, approve, call, reply, tool

ONE_BY_ONE = {"parallel", "partial_answers", "concurrent_tools", "slow_conditions"}
WHEN_ASKED = {
    "malformed_address",
    "unknown_request",
    "tampered_request",
    "contradiction",
    "repeated_decision",
    "late_decision",
}
AGENT_TOOL = {"nested", "nested_parallel", "nested_gate", "hand_offs"}
EVERYWHERE = (
    {"edit_tool", "never", "stage", "missing_ids", "repeated_ids", "large_integers", "asks_again", "hosted_mcp"}
    | {"limit_tool_calls", "trim", "elicitation", "annotations"}
    | ONE_BY_ONE
    | WHEN_ASKED
    | AGENT_TOOL
)
HELD = {"serialize.copy", "serialize.json", "history.append", "native.home", "fresh", "rewind", "tools_change"} | set(
    RENAMED
)
WAITS = {"go_on_without_answer", "message_while_pending", "message_with_answers", "hang_up", "simultaneous"}

Begin = Callable[..., AdapterSession]


@pytest.fixture
def session() -> Iterator[Begin]:
    """Begin a session of a flavour with a gated tool."""
    begun: list[AdapterSession] = []
    with closing(ModelEndpoint("messages")) as served:

        def begin(flavour: str, *replies: Any) -> AdapterSession:
            tools = (tool("pay", "always", amount="integer"),)
            world = FakeWorld(replies or (reply(None, call("pay", amount=5)), reply("Done.")), tools)
            begun.append(AdapterSession(FLAVOURS[flavour], Blueprint(tools=tools), world, served))
            return begun[-1]

        yield begin
        for one in begun:
            one.end()


def test_every_missing_capability_is_shown_here() -> None:
    """What is listed as missing has a test below, or in the stories."""
    assert {
        "": EVERYWHERE | {"always", "message_with_answers", "cancel", "hang_up", "stores_in_turns"},
        "inline": EVERYWHERE | HELD | WAITS | {"answer.restored"},
        "rules": EVERYWHERE | HELD | WAITS | {"answer.restored"},
    } == {name: set(flavour.missing) for name, flavour in FLAVOURS.items()}


def test_an_answer_says_nothing_of_a_tool_or_a_request() -> None:
    """edit_tool, and all that needs the address of a request: an answer is what a callback returns."""
    assert {"behavior", "updated_input", "updated_permissions"} == {one.name for one in fields(PermissionResultAllow)}
    assert "Awaitable" in str(CanUseTool)
    assert {"permissionDecision", "permissionDecisionReason", "updatedInput"} <= set(
        get_type_hints(PreToolUseHookSpecificOutput)
    )
    assert not {"tool_name", "tool_use_id", "updatedToolName"} & set(get_type_hints(PreToolUseHookSpecificOutput))


def test_a_denial_and_a_hook_hold_no_rules() -> None:
    """never, and always in the flavour of the hook."""
    assert "updated_permissions" not in {one.name for one in fields(PermissionResultDeny)}
    assert not [name for name in get_type_hints(PreToolUseHookSpecificOutput) if "ermissions" in name]


def test_a_transcript_is_written_by_the_cli() -> None:
    """stores_in_turns: the SDK is told no file to write into, and hands the CLI its folder in the environment."""
    names = {one.name for one in fields(ClaudeAgentOptions)}

    assert {"resume", "env"} <= names
    assert not {name for name in names if "transcript" in name or "file" in name} - {"enable_file_checkpointing"}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_nothing_takes_an_answer_when_nobody_asks(session: Begin, flavour: str) -> None:
    """late_decision, stage: before a call there is no place for an answer."""
    story = session(flavour)
    decision = Decision(request=None, verdict="approve")

    with pytest.raises(LookupError, match="nobody asks about None"):
        story.turn(None, decision)
    with pytest.raises(Unsupported, match="stage"):
        story.wait(story.agent.stage([decision]))


@pytest.mark.parametrize("flavour", ["inline", "rules"])
def test_a_call_that_waits_takes_no_message_and_needs_an_answer(session: Begin, flavour: str) -> None:
    """message_while_pending, go_on_without_answer and what is held: a run that waits is a process."""
    story = session(flavour)
    (request,) = story.paused("Pay.")

    for text, decisions in (("What?", ()), ("What?", (approve(request),))):
        with pytest.raises(Unsupported, match="message_while_pending"):
            story.turn(text, *decisions)
    with pytest.raises(Unsupported, match="go_on_without_answer"):
        story.turn()
    with pytest.raises(Unsupported, match=r"serialize\.json"):
        story.wait(story.agent.dump())


def test_a_message_beside_an_answer_is_another_turn(session: Begin) -> None:
    """message_with_answers: a resumed session goes on by itself; cancel: nothing gives a deferred call up."""
    story = session("")
    (request,) = story.paused("Pay.")

    with pytest.raises(Unsupported, match="message_with_answers"):
        story.turn("And hurry.", approve(request))
    with pytest.raises(Unsupported, match="cancel"):
        story.wait(story.agent.cancel())


def test_only_a_result_says_what_is_deferred() -> None:
    """hang_up: a turn that is cut off has none, and no other message and no method names a deferred call."""
    others = [one for one in vars(messages).values() if inspect.isclass(one) and is_dataclass(one)]
    named = {one.__name__ for one in others if "deferred_tool_use" in {field.name for field in fields(one)}}

    assert {"ResultMessage"} == named
    assert not [name for name, _ in inspect.getmembers(ClaudeSDKClient, inspect.isfunction) if "deferred" in name]


def test_agents_are_run_by_a_tool_of_the_cli() -> None:
    """nested, hand_offs: a sub-agent is a definition by name, and no tool of the application."""
    assert "agents" in {one.name for one in fields(ClaudeAgentOptions)}
    assert not {"input_schema", "parameters", "handoffs"} & {one.name for one in fields(AgentDefinition)}


def test_options_limit_turns_and_trim_nothing() -> None:
    """limit_tool_calls, trim: `max_turns` counts replies, and no method takes messages out."""
    limits = {one.name for one in fields(ClaudeAgentOptions) if one.name.startswith("max_")}
    methods = {name for name, _ in inspect.getmembers(ClaudeSDKClient, inspect.isfunction)}

    assert "max_turns" in limits
    assert not [name for name in limits if "tool" in name]
    assert not [name for name in methods if "trim" in name or "compact" in name]


def test_servers_are_reached_by_the_cli() -> None:
    """hosted_mcp: a server is an address for the CLI, and nothing hands it to the provider."""
    assert not [name for name in get_type_hints(McpHttpServerConfig) if "approval" in name]


def list_hook_events() -> set[str]:
    return {event for word in get_args(HookEvent) for event in get_args(word) or (word,)}


def test_no_hook_tells_that_the_settings_were_read_again() -> None:
    """never, in the flavour of the rules: a deny rule in the file holds when the CLI has noticed it."""
    assert not [event for event in list_hook_events() if "onfig" in event or "etting" in event]


def test_no_hook_is_asked_what_a_server_asks() -> None:
    """elicitation: there is a type for what such a hook returns, and no event to register it for."""
    events = list_hook_events()

    assert "Elicitation" in get_args(get_type_hints(ElicitationHookSpecificOutput)["hookEventName"])
    assert "Elicitation" not in events


def test_messages_wants_ids_and_each_once() -> None:
    """missing_ids, repeated_ids: no model can do this over the protocol."""
    assert {"missing_ids", "repeated_ids"} <= set(PROTOCOLS["messages"])


def test_a_large_integer_is_rounded(session: Begin) -> None:
    """large_integers: what the callback is shown is the nearest double."""
    (request,) = session("inline", reply(None, call("pay", amount=2**53 + 1))).paused("Pay.")

    assert {"amount": 2**53} == request.arguments


def test_a_users_own_options_are_refused() -> None:
    """Agents of users are not driven yet, and the error says so."""
    blueprint = Blueprint(attachment=Attachment(subject=ClaudeAgentOptions()))

    with pytest.raises(Unsupported, match="agents of a user are not driven yet"):
        FLAVOURS[""](FakeWorld([], ()), blueprint)


def test_a_permission_is_asked_without_annotations() -> None:
    """annotations: the callback is told the name of a tool, its input, and a context that has none."""
    from claude_agent_sdk import ToolPermissionContext

    assert "annotations" not in ToolPermissionContext.__dataclass_fields__

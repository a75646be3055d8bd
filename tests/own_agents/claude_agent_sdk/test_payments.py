"""An agent of the Claude Agent SDK that pays, after https://code.claude.com/docs/en/agent-sdk/user-input.

The CLI that the SDK starts asks the scripted model, at an address of this machine, over Messages. A person is asked by
`can_use_tool` while the run waits, or by a hook of `PreToolUse` that defers the call to a later client. Rules of a
settings file say what is asked about, and what was approved for good.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)

PAY = "mcp__bank__pay"
"""What the CLI calls the tool `pay` of the server `bank`; a script of the model calls it so, too."""

paid: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


@tool("pay", "Pays an amount.", {"amount": int})
async def pay(arguments: dict[str, Any]) -> dict[str, Any]:
    paid.append(arguments["amount"])
    return {"content": [{"type": "text", "text": f"paid {arguments['amount']}"}]}


@pytest.fixture
def settings(model_server: Any, tmp_path: Path) -> dict[str, Any]:
    """What keeps the CLI to the scripted model, and away from the files and settings of the user."""
    variables = {
        **model_server.environment,
        "CLAUDE_CONFIG_DIR": str(tmp_path),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "ENABLE_TOOL_SEARCH": "false",
    }
    return {"env": variables, "cwd": str(tmp_path), "setting_sources": [], "strict_mcp_config": True}


def build_options(settings: Mapping[str, Any], **more: Any) -> ClaudeAgentOptions:
    bank = create_sdk_mcp_server("bank", tools=[pay])
    return ClaudeAgentOptions(model="scripted", tools=[], mcp_servers={"bank": bank}, **settings, **more)


async def run(options: ClaudeAgentOptions, text: str | None) -> ResultMessage:
    """Send a message, or let a resumed session go on, and return the result."""
    async with ClaudeSDKClient(options) as client:
        if text is not None:
            await client.query(text)
        async for message in client.receive_messages():
            if isinstance(message, ResultMessage):
                return message
    raise EOFError("no result")


def test_an_approved_payment_is_made_once(scripted_model: Any, settings: Mapping[str, Any]) -> None:
    scripted_model.speaks("messages").calls(PAY, amount=5).says("Paid.")
    asked = []

    async def ask(name: str, arguments: dict[str, Any], context: Any) -> PermissionResultAllow:
        asked.append((name, arguments))
        return PermissionResultAllow()

    result = asyncio.run(run(build_options(settings, can_use_tool=ask), "Pay 5"))

    assert "Paid." == result.result
    assert [(PAY, {"amount": 5})] == asked
    assert [5] == paid


def test_the_model_is_told_why_a_payment_was_rejected(scripted_model: Any, settings: Mapping[str, Any]) -> None:
    scripted_model.speaks("messages").calls(PAY, amount=500).says("Not paid.")

    async def ask(name: str, arguments: dict[str, Any], context: Any) -> PermissionResultDeny:
        return PermissionResultDeny(message="too much")

    asyncio.run(run(build_options(settings, can_use_tool=ask), "Pay 500"))

    assert [] == paid
    assert ["too much"] == [item["text"] for item in scripted_model.requests[-1].items if item["kind"] == "result"]


def test_a_deferred_payment_is_made_by_a_later_client(scripted_model: Any, settings: Mapping[str, Any]) -> None:
    scripted_model.speaks("messages").calls(PAY, amount=5).says("Paid.")

    def deciding(decision: str) -> dict[str, Any]:
        async def decide(asked: Any, call_id: str | None, context: Any) -> dict[str, Any]:
            return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}}

        return {"hooks": {"PreToolUse": [HookMatcher(matcher=PAY, hooks=[decide])]}}

    paused = asyncio.run(run(build_options(settings, **deciding("defer")), "Pay 5"))
    assert paused.deferred_tool_use is not None
    assert {"amount": 5} == paused.deferred_tool_use.input
    assert [] == paid

    result = asyncio.run(run(build_options(settings, **deciding("allow"), resume=paused.session_id), None))
    assert "Paid." == result.result
    assert [5] == paid


def write_rules(settings: Mapping[str, Any], **rules: list[str]) -> dict[str, Any]:
    """Write the settings that a user has for a folder, and return options that read them."""
    file = Path(settings["cwd"], ".claude", "settings.local.json")
    file.parent.mkdir()
    file.write_text(json.dumps({"permissions": rules}))
    return {**settings, "setting_sources": ["local"]}


def test_a_rule_that_asks_comes_before_one_that_allows(scripted_model: Any, settings: Mapping[str, Any]) -> None:
    scripted_model.speaks("messages").calls(PAY, amount=5).says("Paid.")
    asked = []

    async def ask(name: str, arguments: dict[str, Any], context: Any) -> PermissionResultAllow:
        asked.append((name, context.suggestions))
        return PermissionResultAllow()

    ruled = write_rules(settings, allow=["mcp__bank"], ask=[PAY])
    asyncio.run(run(build_options(ruled, can_use_tool=ask), "Pay 5"))

    assert [(PAY, [])] == asked
    assert [5] == paid


def test_a_standing_approval_holds_for_a_later_client(scripted_model: Any, settings: Mapping[str, Any]) -> None:
    scripted_model.speaks("messages").calls(PAY, amount=5).says("Paid.").calls(PAY, amount=6).says("Paid again.")
    asked = []

    async def ask(name: str, arguments: dict[str, Any], context: Any) -> PermissionResultAllow:
        asked.append(arguments)
        return PermissionResultAllow(updated_permissions=context.suggestions)

    ruled = write_rules(settings, allow=[])
    first = asyncio.run(run(build_options(ruled, can_use_tool=ask), "Pay 5"))
    asyncio.run(run(build_options(ruled, can_use_tool=ask, resume=first.session_id), "Pay 6"))

    assert [{"amount": 5}] == asked
    assert [5, 6] == paid

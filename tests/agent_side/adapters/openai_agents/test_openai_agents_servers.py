"""How the gate of a connected server is configured."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Agent
from agents.mcp import MCPUtil
from mcp import types

from pytest_approvals.agent_side.adapters.openai_agents.tools import build_mcp_client
from pytest_approvals.agent_side.contract import ServerAddress, ToolSpec

ADDRESS = ServerAddress(name="wiki", url="http://127.0.0.1:1/mcp")
READ = ToolSpec(name="read", kind="mcp", server="wiki", approval="never")
WRITE = ToolSpec(name="write", kind="mcp", server="wiki", approval="always")


def needs_approval(form: str, name: str, *specs: ToolSpec) -> Any:
    """What the SDK makes of the server's policy for one of its tools."""
    tool = types.Tool.model_validate({"name": name, "inputSchema": {"type": "object", "properties": {}}})
    return MCPUtil.to_function_tool(
        tool, build_mcp_client(ADDRESS, specs, form), False, Agent[Any](name="A")
    ).needs_approval


@pytest.mark.parametrize("form", ["names", "lists", "word"])
def test_each_form_gates_the_same_tools(form: str) -> None:
    """One word for the whole server is for tools that are all alike; else each is named."""
    assert (False, True) == (needs_approval(form, "read", READ, WRITE), needs_approval(form, "write", READ, WRITE))


def test_one_word_holds_for_every_tool_of_the_server() -> None:
    """Also for one that was not there when it was said."""
    assert (True, True) == (needs_approval("word", "write", WRITE), needs_approval("word", "new", WRITE))


def test_a_function_is_asked_at_each_call() -> None:
    """The SDK is given no answer beforehand."""
    assert callable(needs_approval("function", "read", READ))

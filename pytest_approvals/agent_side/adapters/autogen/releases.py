"""What older releases lack, looked for by name."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import tools
from autogen_core.tools import StaticWorkbench, Workbench

STREAM_WORKBENCH: Any = getattr(tools, "StaticStreamWorkbench", None)
"""The workbench whose tools may show events in the stream of a run; None before 0.6.2."""

STREAM_TOOL: Any = getattr(tools, "BaseStreamTool", None)
"""The base of tools that show events; None before 0.6.2."""

WORKBENCH: Any = STREAM_WORKBENCH or StaticWorkbench


@cache
def takes(function: Any, parameter: str) -> bool:
    """Says whether a method of the framework takes a parameter of that name."""
    return parameter in inspect.signature(function).parameters


def with_call_id(call_id: str | None) -> dict[str, Any]:
    """Gives the argument that tells a workbench or a tool the id of its call, where the release has it."""
    return {"call_id": call_id} if takes(Workbench.call_tool, "call_id") else {}


def rounds(most: int) -> dict[str, Any]:
    """Gives the argument that lets an agent go on after its tools ran, where the release has it."""
    return {"max_tool_iterations": most} if takes(AssistantAgent.__init__, "max_tool_iterations") else {}

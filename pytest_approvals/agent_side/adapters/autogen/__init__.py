"""
AutoGen (`autogen-agentchat`).

The framework has no approvals of tool calls. What was asked for in microsoft/autogen#5891 stands in this adapter: an
approval function for each tool, or for each agent, which a run awaits before a tool runs.

Flavours: by default, and as `workbench`, the approval functions stand around a workbench; in `tools` around each tool.
In `intervention` there is no AgentChat: an intervention handler of the runtime sees each call on its way to a tool.
"""

from __future__ import annotations

from ...contract import Agent
from .core import Intervening
from .session import Tooled, Workbenched

__all__ = ["FLAVOURS", "Intervening", "Tooled", "Workbenched"]

FLAVOURS: dict[str, type[Agent]] = {
    "": Workbenched,
    "workbench": Workbenched,
    "tools": Tooled,
    "intervention": Intervening,
}

"""AutoGen (`autogen-agentchat`).

The framework has no approvals of tool calls. This adapter has the design that was requested in microsoft/autogen#5891:
an approval function for each tool, or for each agent, which a run awaits before a tool runs.

Flavours: by default, and as `workbench`, the approval functions are around a workbench; in `tools` around each tool. In
`swarm` the caller talks to a team. `code_executor` has the approvals that the framework does have: those of code. In
`intervention` there is no AgentChat: an intervention handler of the runtime sees each call on its way to a tool.
"""

from __future__ import annotations

from ...contract.agent import Agent
from .session import CodeExecutorSession, InterventionSession, SwarmSession, ToolSession, WorkbenchSession

__all__ = ["FLAVOURS", "CodeExecutorSession", "InterventionSession", "SwarmSession", "ToolSession", "WorkbenchSession"]

FLAVOURS: dict[str, type[Agent]] = {
    "": WorkbenchSession,
    "workbench": WorkbenchSession,
    "tools": ToolSession,
    "code_executor": CodeExecutorSession,
    "swarm": SwarmSession,
    "intervention": InterventionSession,
}

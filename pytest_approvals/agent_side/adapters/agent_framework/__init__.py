"""
Microsoft Agent Framework for Python (`agent-framework-core`).

A gated call ends the run with a request, a content of the response; a decision is a content of the caller's next
message. What is open is kept in the `AgentSession`, which the caller keeps.

Flavours: by default an agent with its session; in `approval_middleware`, `ToolApprovalMiddleware` stands around it,
which shows one request at a time and approves by rules; in `workflow` a workflow runs the agent, and is kept in
checkpoints.
"""

from __future__ import annotations

from ...contract import Agent
from .agui import Interface, InterfaceChat
from .hosting import Hosted, HostedChat, HostedConversation, HostedWorkflow
from .session import Approving, Session
from .workflow import Workflow

__all__ = [
    "FLAVOURS",
    "Approving",
    "Hosted",
    "HostedChat",
    "HostedConversation",
    "HostedWorkflow",
    "Interface",
    "InterfaceChat",
    "Session",
    "Workflow",
]

FLAVOURS: dict[str, type[Agent]] = {
    "": Session,
    "approval_middleware": Approving,
    "workflow": Workflow,
    "hosted": Hosted,
    "hosted_chat": HostedChat,
    "hosted_conversation": HostedConversation,
    "hosted_workflow": HostedWorkflow,
    "agui": Interface,
    "agui_chat": InterfaceChat,
}

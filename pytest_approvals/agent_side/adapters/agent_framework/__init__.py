"""
Microsoft Agent Framework for Python (`agent-framework-core`).

A gated call ends the run with a request, a content of the response; a decision is a content of the caller's next
message. What is open is kept in the `AgentSession`, which the caller keeps.

Flavours: by default an agent with its session; in `approval_middleware`, `ToolApprovalMiddleware` stands around it,
which shows one request at a time and approves by rules; in `replayed` the messages stand in rows of the caller's own;
in `workflow` a workflow runs the agent, and is kept in checkpoints. In `openai`, `openai_unstored` and `openai_chat` an
agent has the framework's own clients. See `hosting` and `agui` for the others.
"""

from __future__ import annotations

from ...contract import Agent
from .agui import Interface, InterfaceChat
from .hosting import Hosted, HostedChat, HostedConversation, HostedWorkflow
from .openai import OpenAI, OpenAIChat, OpenAIUnstored
from .replayed import Replayed
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
    "OpenAI",
    "OpenAIChat",
    "OpenAIUnstored",
    "Replayed",
    "Session",
    "Workflow",
]

FLAVOURS: dict[str, type[Agent]] = {
    "": Session,
    "approval_middleware": Approving,
    "replayed": Replayed,
    "workflow": Workflow,
    "openai": OpenAI,
    "openai_unstored": OpenAIUnstored,
    "openai_chat": OpenAIChat,
    "hosted": Hosted,
    "hosted_chat": HostedChat,
    "hosted_conversation": HostedConversation,
    "hosted_workflow": HostedWorkflow,
    "agui": Interface,
    "agui_chat": InterfaceChat,
}

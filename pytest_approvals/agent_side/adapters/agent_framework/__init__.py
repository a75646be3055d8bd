"""Microsoft Agent Framework for Python (`agent-framework-core`).

A gated call ends the run with a request, a content of the response; a decision is a content of the caller's next
message. Open requests are in the `AgentSession`, which the caller keeps.

Flavours: by default an agent with its session. In `approval_middleware`, `ToolApprovalMiddleware` is around it, which
shows one request at a time and approves by rules. In `replayed` the messages are rows of the caller's own. In
`workflow` a workflow runs the agent and is saved in checkpoints. In `openai`, `openai_unstored` and `openai_chat` an
agent has the framework's own clients. See `hosting` and `agui` for the others.
"""

from __future__ import annotations

from ...contract.agent import Agent
from .agui import AGUIChatSession, AGUISession
from .hosting import HostedChatSession, HostedConversationSession, HostedSession, HostedWorkflowSession
from .session import (
    ApprovalMiddlewareSession,
    OpenAIChatSession,
    OpenAISession,
    OpenAIUnstoredSession,
    ReplayedSession,
    Session,
    StoredSession,
)
from .workflow import WorkflowSession

__all__ = [
    "FLAVOURS",
    "AGUIChatSession",
    "AGUISession",
    "ApprovalMiddlewareSession",
    "HostedChatSession",
    "HostedConversationSession",
    "HostedSession",
    "HostedWorkflowSession",
    "OpenAIChatSession",
    "OpenAISession",
    "OpenAIUnstoredSession",
    "ReplayedSession",
    "Session",
    "StoredSession",
    "WorkflowSession",
]

FLAVOURS: dict[str, type[Agent]] = {
    "": StoredSession,
    "approval_middleware": ApprovalMiddlewareSession,
    "replayed": ReplayedSession,
    "workflow": WorkflowSession,
    "openai": OpenAISession,
    "openai_unstored": OpenAIUnstoredSession,
    "openai_chat": OpenAIChatSession,
    "hosted": HostedSession,
    "hosted_chat": HostedChatSession,
    "hosted_conversation": HostedConversationSession,
    "hosted_workflow": HostedWorkflowSession,
    "agui": AGUISession,
    "agui_chat": AGUIChatSession,
}

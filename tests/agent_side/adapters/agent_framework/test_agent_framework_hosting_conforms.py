"""The flavours of Agent Framework with a server in front keep the contract."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.agent_framework import (
    HostedChatSession,
    HostedConversationSession,
    HostedSession,
    HostedWorkflowSession,
)
from pytest_approvals.testing import AdapterTests


class TestHosted(AdapterTests):
    """The flavour that goes on with the last response."""

    adapter = HostedSession


class TestHostedChat(AdapterTests):
    """The flavour whose model is reached with Chat Completions."""

    adapter = HostedChatSession


class TestHostedConversation(AdapterTests):
    """The flavour that goes on with a conversation."""

    adapter = HostedConversationSession


class TestHostedWorkflow(AdapterTests):
    """The flavour that hosts an agent made of a workflow."""

    adapter = HostedWorkflowSession

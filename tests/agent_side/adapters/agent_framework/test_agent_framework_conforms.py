"""The adapter for Microsoft Agent Framework keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.agent_framework import (
    Approving,
    OpenAI,
    OpenAIChat,
    OpenAIUnstored,
    Session,
    Workflow,
)
from pytest_approvals.testing import AdapterTests


class TestSession(AdapterTests):
    """An agent with its session."""

    adapter = Session


class TestApproving(AdapterTests):
    """`ToolApprovalMiddleware` stands around the agent."""

    adapter = Approving


class TestWorkflow(AdapterTests):
    """A workflow runs the agent."""

    adapter = Workflow


class TestOpenAI(AdapterTests):
    """The client for Responses, whose provider keeps the conversation."""

    adapter = OpenAI


class TestOpenAIUnstored(AdapterTests):
    """The client for Responses, whose provider keeps nothing."""

    adapter = OpenAIUnstored


class TestOpenAIChat(AdapterTests):
    """The client for Chat Completions."""

    adapter = OpenAIChat

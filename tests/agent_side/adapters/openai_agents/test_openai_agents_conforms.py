"""The adapter for the OpenAI Agents SDK keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.openai_agents import ChatAgents, OpenAIAgents, SessionAgents
from pytest_approvals.testing import AdapterTests


class TestOpenAIAgents(AdapterTests):
    """The flavour in which the caller keeps the input list."""

    adapter = OpenAIAgents


class TestSession(AdapterTests):
    """The flavour with a session."""

    adapter = SessionAgents


class TestChat(AdapterTests):
    """The flavour with a session that reaches the model over Chat Completions."""

    adapter = ChatAgents

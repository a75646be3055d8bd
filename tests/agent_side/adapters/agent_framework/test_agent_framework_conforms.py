"""The adapter for Microsoft Agent Framework keeps the contract, in every flavour."""

from __future__ import annotations

from collections.abc import Callable

from pytest_approvals.agent_side.adapters.agent_framework import (
    ApprovalMiddlewareSession,
    OpenAIChatSession,
    OpenAISession,
    OpenAIUnstoredSession,
    ReplayedSession,
    StoredSession,
    WorkflowSession,
)
from pytest_approvals.testing import AdapterSession, AdapterTests, approve, call, reply


class TestStoredSession(AdapterTests):
    """An agent with its session."""

    adapter = StoredSession


class TestApproving(AdapterTests):
    """`ToolApprovalMiddleware` stands around the agent."""

    adapter = ApprovalMiddlewareSession

    def test_parallel_calls_surface_together(self, story: Callable[..., AdapterSession]) -> None:
        """As documented, they surface one after the other."""
        both = reply(None, call("delete_file", "c1", path="a.txt"), call("delete_file", "c2", path="b.txt"))
        session = story(both, reply("Done."))
        (first,) = session.paused("Delete a.txt and b.txt.")
        (second,) = session.paused(None, approve(first))

        assert [{"path": "a.txt"}, {"path": "b.txt"}] == [first.arguments, second.arguments]


class TestWorkflow(AdapterTests):
    """A workflow runs the agent."""

    adapter = WorkflowSession


class TestOpenAI(AdapterTests):
    """The client for Responses, whose provider keeps the conversation."""

    adapter = OpenAISession


class TestOpenAIUnstored(AdapterTests):
    """The client for Responses, whose provider keeps nothing."""

    adapter = OpenAIUnstoredSession


class TestOpenAIChat(AdapterTests):
    """The client for Chat Completions."""

    adapter = OpenAIChatSession


class TestReplayed(AdapterTests):
    """The messages are in rows of the caller's own."""

    adapter = ReplayedSession

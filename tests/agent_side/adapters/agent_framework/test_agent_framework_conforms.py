"""The adapter for Microsoft Agent Framework keeps the contract, in every flavour."""

from __future__ import annotations

from collections.abc import Callable

from pytest_approvals.agent_side.adapters.agent_framework import (
    Approving,
    OpenAI,
    OpenAIChat,
    OpenAIUnstored,
    Replayed,
    Session,
    Workflow,
)
from pytest_approvals.testing import AdapterTests, Story, approve, call, reply


class TestSession(AdapterTests):
    """An agent with its session."""

    adapter = Session


class TestApproving(AdapterTests):
    """`ToolApprovalMiddleware` stands around the agent."""

    adapter = Approving

    def test_parallel_calls_surface_together(self, story: Callable[..., Story]) -> None:
        """As documented, they surface one after the other."""
        both = reply(None, call("delete_file", "c1", path="a.txt"), call("delete_file", "c2", path="b.txt"))
        session = story(both, reply("Done."))
        (first,) = session.paused("Delete a.txt and b.txt.")
        (second,) = session.paused(None, approve(first))

        assert [{"path": "a.txt"}, {"path": "b.txt"}] == [first.arguments, second.arguments]


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


class TestReplayed(AdapterTests):
    """The messages stand in rows of the caller's own."""

    adapter = Replayed

"""The adapter for LangChain's agents keeps the contract, in every flavour."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_approvals.agent_side.adapters.langgraph import (
    BatchedSession,
    InterruptSession,
    PerCallSession,
    RetrySession,
    ToolNodeSession,
)
from pytest_approvals.testing import AdapterSession, AdapterTests


class TestBatched(AdapterTests):
    """The flavour that asks once for all calls of a reply."""

    adapter = BatchedSession


class TestPerCall(AdapterTests):
    """The flavour that asks for each call."""

    adapter = PerCallSession


class TestRetrying(AdapterTests):
    """The flavour whose gate is inside of a retry."""

    adapter = RetrySession


class TestInterrupting(AdapterTests):
    """The flavour whose tools ask from within."""

    adapter = InterruptSession


class TestOwnGraph(AdapterTests):
    """The flavour whose calls run in one node of a graph of one's own."""

    adapter = ToolNodeSession

    @pytest.mark.xfail(strict=True, reason="langchain-ai/langgraph#6624: of two questions in one node one shows")
    def test_parallel_calls_surface_together(self, story: Callable[..., AdapterSession]) -> None:
        """Two gated calls of one reply are two requests of one pause."""
        super().test_parallel_calls_surface_together(story)

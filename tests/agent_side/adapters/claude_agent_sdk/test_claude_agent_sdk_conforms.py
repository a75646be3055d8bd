"""The adapter for the Claude Agent SDK keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.claude_agent_sdk import DeferredSession, InlineSession
from pytest_approvals.testing import AdapterTests


class TestDeferred(AdapterTests):
    """The flavour whose hook defers calls."""

    adapter = DeferredSession


class TestInline(AdapterTests):
    """The flavour whose callback waits."""

    adapter = InlineSession

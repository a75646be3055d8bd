"""The adapter for the Claude Agent SDK keeps the contract, in every flavour."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.claude_agent_sdk import DeferredSession, InlineSession, RulesSession
from pytest_approvals.testing import AdapterTests


class TestDeferred(AdapterTests):
    """The flavour whose hook defers calls."""

    adapter = DeferredSession


class TestInline(AdapterTests):
    """The flavour whose callback waits."""

    adapter = InlineSession


class TestRules(AdapterTests):
    """The flavour whose rules decide what is asked."""

    adapter = RulesSession

"""The adapter for Agno keeps the contract, in every flavour."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_approvals.agent_side.adapters.agno import AgentTeamSession, SingleAgentSession
from pytest_approvals.testing import AdapterSession, AdapterTests


class TestLone(AdapterTests):
    """The flavour that runs one agent."""

    adapter = SingleAgentSession

    @pytest.mark.xfail(reason="docs/findings/agno-json-loses-the-approval.md", strict=True, raises=AssertionError)
    def test_a_saved_state_is_restored(self, story: Callable[..., AdapterSession]) -> None:
        """The framework loses an approval of a run that went through JSON."""
        super().test_a_saved_state_is_restored(story)


class TestTeamed(AdapterTests):
    """The flavour that runs a team."""

    adapter = AgentTeamSession

"""The flavours of Agent Framework behind AG-UI keep the contract."""

from __future__ import annotations

from pytest_approvals.agent_side.adapters.agent_framework import AGUIChatSession, AGUISession
from pytest_approvals.testing import AdapterTests


class TestInterface(AdapterTests):
    """The flavour whose model is reached with Responses."""

    adapter = AGUISession

    def test_a_story_is_the_same_over_a_protocol(self) -> None:  # type: ignore[override]
        """But for a text that comes in one piece, which is shown twice; that has a page among the findings."""
        over = self._transcript("responses", False)
        assert "Done.Done." in over
        assert self._transcript("native", False) == over.replace("Done.Done.", "Done.").replace("Wait.Wait.", "Wait.")


class TestInterfaceChat(AdapterTests):
    """The flavour whose model is reached with Chat Completions."""

    adapter = AGUIChatSession

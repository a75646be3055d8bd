"""The flavours of Agent Framework behind AG-UI keep the contract."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_approvals.agent_side.adapters.agent_framework import Interface, InterfaceChat
from pytest_approvals.testing import AdapterTests, Story


class InterfaceTests(AdapterTests):
    """What holds in front of any model."""

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("protocol", ["chat", "messages"])
    def test_a_story_is_the_same_over_a_protocol(
        self, story: Callable[..., Story], protocol: str, stream: bool
    ) -> None:
        """Over Responses a text that comes in one piece is shown twice, which has a page among the findings."""
        super().test_a_story_is_the_same_over_a_protocol(story, protocol, stream)


class TestInterface(InterfaceTests):
    """The flavour whose model is reached with Responses."""

    adapter = Interface


class TestInterfaceChat(InterfaceTests):
    """The flavour whose model is reached with Chat Completions."""

    adapter = InterfaceChat

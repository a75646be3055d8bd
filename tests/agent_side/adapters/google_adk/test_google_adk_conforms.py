"""The adapter for Google's ADK keeps the contract, in every flavour."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_approvals.agent_side.adapters.google_adk import CustomTool, Dynamic, Resumable, Static
from pytest_approvals.testing import AdapterTests, Story

JSON = r'"{\"result\": \"paid 5\"}"'


class FlavourTests(AdapterTests):
    """What holds in every flavour."""

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("protocol", ["responses", "messages"])
    def test_a_story_is_the_same_over_a_protocol(
        self, story: Callable[..., Story], protocol: str, stream: bool
    ) -> None:
        """Over Chat Completions it is the same but for the form of results."""
        super().test_a_story_is_the_same_over_a_protocol(story, protocol, stream)

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_over_chat_completions_a_result_is_told_as_an_object(self, stream: bool) -> None:
        """Everything else is as with the scripted model."""
        if "chat" not in self.adapter.protocols:
            pytest.skip("it does not reach its model over chat")

        assert self._transcript("native", stream) == self._transcript("chat", stream).replace(JSON, '"paid 5"')


class TestStatic(FlavourTests):
    """The flavour in which the framework gates functions."""

    adapter = Static


class TestResumable(FlavourTests):
    """The flavour whose invocations can be resumed."""

    adapter = Resumable


class TestDynamic(FlavourTests):
    """The flavour whose tools ask from within."""

    adapter = Dynamic


class TestCustomTool(FlavourTests):
    """The flavour whose tools are classes of their own."""

    adapter = CustomTool

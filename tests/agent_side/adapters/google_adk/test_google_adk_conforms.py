"""The adapter for Google's ADK keeps the contract, in every flavour."""

from __future__ import annotations

from collections.abc import Callable

from pytest_approvals.agent_side.adapters.google_adk import (
    CustomToolSession,
    DynamicSession,
    ResumableSession,
    StaticSession,
)
from pytest_approvals.testing import AdapterSession, AdapterTests

JSON = r'"{\"result\": \"paid 5\"}"'


class FlavourTests(AdapterTests):
    """What holds in every flavour."""

    def test_a_story_is_the_same_over_a_protocol(
        self, story: Callable[..., AdapterSession], protocol: str, stream: bool
    ) -> None:
        """Over Chat Completions a result is told as an object; everything else is as with the scripted model."""
        over = self._transcript(protocol, stream)
        if protocol == "chat":
            assert JSON in over
            over = over.replace(JSON, '"paid 5"')

        assert self._transcript("native", stream) == over


class TestStatic(FlavourTests):
    """The flavour in which the framework gates functions."""

    adapter = StaticSession


class TestResumable(FlavourTests):
    """The flavour whose invocations can be resumed."""

    adapter = ResumableSession


class TestDynamic(FlavourTests):
    """The flavour whose tools ask from within."""

    adapter = DynamicSession


class TestCustomTool(FlavourTests):
    """The flavour whose tools are classes of their own."""

    adapter = CustomToolSession

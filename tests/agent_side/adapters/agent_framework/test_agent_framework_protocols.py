"""What the framework's own clients send to a model that is reached over a protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]

HOSTED = """
tools:
  search: {approval: always, kind: hosted_mcp, server: web, parameters: {q: string}, returns: "found {q}"}
model:
  - calls: [{id: mcpr_1, tool: search, arguments: {q: weather}}]
  - say: It will rain.
caller:
  - send: What is the weather?
  - decide: {mcpr_1: approve}
"""


@pytest.mark.parametrize("flavour", ["openai", "openai_unstored"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_hosted_request_is_answered_by_the_provider(play: Play, flavour: str, stream: bool) -> None:
    """The decision is sent back, and the provider runs the tool."""
    played = play(text=HOSTED, flavour=flavour, variant=Variant(stream=stream))

    assert ["user What is the weather?", "approval_request mcpr_1 {'q': 'weather'}", "approval_response mcpr_1"] == (
        played.inputs[-1]
    )
    assert [("search", {"q": "weather"})] == played.ran
    assert ["paused", "finished"] == played.outcomes


def test_a_stored_conversation_goes_on_in_a_new_agent(play: Play) -> None:
    """The session that was read from JSON has the id, and that is all that is needed."""
    played = play(flavour="openai", variant=Variant(serialize="json", source="rebuilt"))

    assert ["user Go ahead.", "call c1 {'amount': 5}", "result c1 paid 5"] == played.inputs[-1]


def test_chat_leaves_approvals_out(play: Play) -> None:
    """Approvals of functions are the framework's own, and are not sent."""
    played = play(flavour="openai_chat")

    assert ["user Go ahead.", "call c1 {'amount': 5}", "result c1 paid 5"] == played.inputs[-1]

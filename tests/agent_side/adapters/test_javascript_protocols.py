"""Agents in JavaScript with the clients of every provider whose protocol they speak."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import calls, returns, say, tool
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.runner.model_endpoint import ModelEndpoint
from pytest_approvals.scenario.model import Variant

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
SPOKEN = [
    *(("ai_sdk", protocol, False) for protocol in ("chat", "messages")),
    *((agent, protocol, True) for agent in ("ai_sdk.stream", "ai_sdk.ui") for protocol in ("chat", "messages")),
    ("ai_sdk==6.0.326", "messages", False),
    *(("mastra", protocol, stream) for protocol in ("chat", "messages") for stream in (False, True)),
    ("openai_agents_js", "chat", True),
    ("openai_agents_js==0.16.1", "chat", True),
]
"""Agents and protocols, and whether the turns are streamed."""


def _transcript(play: Callable[..., Any], agent: str, protocol: str, stream: bool) -> str:
    serialize = "native.libsql" if agent == "mastra" else "json"
    variant = Variant(protocol=protocol, stream=stream, serialize=serialize, source="rebuilt", oracle="approve_all")
    played = play(agent, calls("pay", amount=5), say("Done."), tools=[PAY], variant=variant)
    return Transcript.of_history(read_history(played.run.events)).render()


@pytest.mark.parametrize(("agent", "protocol", "stream"), SPOKEN)
def test_a_story_is_the_same_over_a_protocol(
    play_elsewhere: Callable[..., Any], agent: str, protocol: str, stream: bool
) -> None:
    """Whose client asks the model makes no difference to what it is asked, what runs and what comes of it."""
    native = _transcript(play_elsewhere, agent, "native", stream)
    assert "paid 5" in native
    assert native == _transcript(play_elsewhere, agent, protocol, stream)


@pytest.mark.parametrize(
    ("agent", "protocol", "paths"),
    [
        ("ai_sdk", "native", {"responses"}),
        ("ai_sdk", "chat", {"completions"}),
        ("ai_sdk", "messages", {"messages"}),
        ("mastra", "native", {"responses"}),
        ("mastra", "messages", {"messages"}),
        ("openai_agents_js", "native", {"responses"}),
        ("openai_agents_js", "chat", {"completions"}),
    ],
)
def test_the_provider_is_asked_at_its_own_path(
    play_elsewhere: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, agent: str, protocol: str, paths: set[str]
) -> None:
    """The client of a protocol is the one that sends the requests."""
    asked: set[str] = set()
    serve = ModelEndpoint.serve

    def seen(self: ModelEndpoint, name: str, method: str, path: str, raw: bytes) -> Any:
        asked.add(path.rpartition("/")[2])
        return serve(self, name, method, path, raw)

    monkeypatch.setattr(ModelEndpoint, "serve", seen)
    _transcript(play_elsewhere, agent, protocol, False)

    assert paths == asked

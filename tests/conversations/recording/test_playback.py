"""What a client saw of a provider, it sees again when the recorded scenario is served to it.

The provider is our own server with a drawn story; what it cannot say, no recording shows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("boto3", reason="test_other_clients.py makes a place for it")
pytest.importorskip("google.genai")

from pytest_approvals.agent_side.contract.capabilities import PROTOCOLS
from pytest_approvals.conversations.recording.capture import Recorder
from pytest_approvals.conversations.recording.proxy import RecordingProxy
from pytest_approvals.model_server.conversation import ConversationOptions
from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.scenario.generation import story_from_seed
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario, TurnStep
from tests.conversations.recording.clients import CLIENTS, have, open_client

SEEN_BY_A_PROVIDER = frozenset(
    {
        "parallel",
        "text_with_calls",
        "reasoning",
        "reasoning_between_calls",
        "redacted_reasoning",
        "repeated_ids",
        "missing_ids",
        "unknown_tools",
        "broken_arguments",
        "large_integers",
        "tool_errors",
        "non_text_results",
        "reject_reason",
        "hosted_mcp",
    }
)
"""What of a story reaches a provider, or comes from it: not what an agent does with it."""


def draw(protocol: str, seed: int) -> Scenario:
    """Draw a story that a provider of the protocol can play."""
    capabilities = SEEN_BY_A_PROVIDER - set(PROTOCOLS[protocol])
    # Stories whose scripts depend on the first message are several conversations.
    drawn = (story_from_seed(number, capabilities) for number in range(seed * 1000, seed * 1000 + 1000))
    return next(story for story in drawn if not story.agents["main"].by_prompt)


class Playing:
    """A model server, and conversations with it that are recorded."""

    def __init__(self, server: ScriptedModelServer, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def see(self, name: str, scenario: Scenario, seed: int, *, stream: bool) -> tuple[list[Any], list[Any], list[str]]:
        """Return what a client sees of a story, what it sees of its recording, and what was not recorded."""
        recorder = Recorder(self.folder / f"{name.replace(' ', '-')}-{seed}.approval.yaml")
        with RecordingProxy(self._serve(name, scenario), recorder).running() as passing:
            first = self._have(name, passing.url, scenario, seed, stream=stream)
        if not recorder.written:
            return first, first, recorder.problems
        (path,) = recorder.written
        recorded = load_scenario(path, root=path.parent)
        return (
            first,
            self._have(name, self._serve(name, recorded), scenario, seed, stream=stream),
            recorder.problems,
        )

    def _serve(self, name: str, scenario: Scenario) -> str:
        options = ConversationOptions(protocol=name.removeprefix("stored "))
        return self.server.url(self.server.begin(scenario, options).name)

    def _have(self, name: str, url: str, drawn: Scenario, seed: int, *, stream: bool) -> list[Any]:
        texts = [step.text for step in drawn.caller or () if isinstance(step, TurnStep) and step.text is not None]
        chooser = random.Random(seed)
        decisions = [chooser.choice([(True, None), (False, None), (False, "not today")]) for _ in range(50)]
        replies = len(drawn.agents["main"].replies)
        return have(open_client(name, url, drawn, stream=stream), texts, replies, lambda k: decisions[k])


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModelServer]:
    """One server for all conversations."""
    with ScriptedModelServer().running() as server:
        yield server


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_recording_plays_back_equal(
    server: ScriptedModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, stream: bool
) -> None:
    """Texts, calls with their ids, reasoning, hosted calls and why a response ended, in their order."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "own")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "own")
    playing = Playing(server, tmp_path)
    for seed in range(20):
        first, again, problems = playing.see(name, draw(name.removeprefix("stored "), seed), seed, stream=stream)

        assert [] == problems, seed
        assert first == again, seed

"""What a client saw of a provider, it sees again when the recorded scenario is served to it.

The provider is our own server with a drawn story; what it cannot say, no recording shows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
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
from pytest_approvals.scenario.load import load_scenario, parse_scenario
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

    def __init__(
        self, server: ScriptedModelServer, folder: Path, answers: Sequence[tuple[bool, str | None]] = ()
    ) -> None:
        self.server = server
        self.folder = folder
        self.answers = answers
        self.text = ""

    def see(self, name: str, scenario: Scenario, seed: int, *, stream: bool) -> tuple[list[Any], list[Any], list[str]]:
        """Return what a client sees of a story, what it sees of its recording, and what was not recorded."""
        recorder = Recorder(self.folder / f"{name.replace(' ', '-')}-{seed}.approval.yaml")
        with RecordingProxy(self._serve(name, scenario), recorder).running() as passing:
            first = self._have(name, passing.url, scenario, seed, stream=stream)
        if not recorder.written:
            return first, first, recorder.problems
        (path,) = recorder.written
        self.text = path.read_text()
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
        decisions = [*self.answers, *chooser.choices([(True, None), (False, None), (False, "not today")], k=50)]
        replies = len(drawn.agents["main"].replies)
        return have(open_client(name, url, drawn, stream=stream), texts, replies, lambda k: decisions[k])


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModelServer]:
    """One server for all conversations."""
    with ScriptedModelServer().running() as server:
        yield server


@pytest.fixture(autouse=True)
def own_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder has credentials of AWS, to sign again with."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "own-id-of-the-recorder")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "own-secret-of-the-recorder")


every_way = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
every_client = pytest.mark.parametrize("name", CLIENTS)


def check_stories(playing: Playing, name: str, seeds: range, *, stream: bool) -> None:
    """Check that the recordings of drawn stories play back equal."""
    for seed in seeds:
        first, again, problems = playing.see(name, draw(name.removeprefix("stored "), seed), seed, stream=stream)

        assert [] == problems, seed
        assert first == again, seed


@every_way
@every_client
def test_a_recording_plays_back_equal(server: ScriptedModelServer, tmp_path: Path, name: str, stream: bool) -> None:
    """Texts, calls with their ids, reasoning, hosted calls and why a response ended, in their order."""
    check_stories(Playing(server, tmp_path), name, range(4), stream=stream)


@pytest.mark.slow
@every_way
@every_client
def test_many_recordings_play_back_equal(server: ScriptedModelServer, tmp_path: Path, name: str, stream: bool) -> None:
    """The same, of many stories."""
    check_stories(Playing(server, tmp_path), name, range(4, 60), stream=stream)


HOSTED = """
title: Hosted servers
tools:
  find: {kind: hosted_mcp, server: web, approval: always, parameters: {q: string}, returns: "found {q}"}
  find_wiki: {called: find, kind: hosted_mcp, server: wiki, parameters: {q: string}, returns: [{page: "{q}"}]}
  drop: {kind: hosted_mcp, server: bank-2, approval: always, parameters: {row: integer}, raises: the bank is closed}
  pay: {approval: always, parameters: {amount: integer}}
model:
  - thinks: Three at once.
    calls:
      - {id: mcpr_1, tool: find, arguments: {q: price}}
      - {id: mcpr_2, tool: find, arguments: {q: name}}
      - {thinks: And the row., id: mcpr_3, tool: drop, arguments: {row: 7}}
      - {id: c1, tool: pay, arguments: {amount: 5}}
  - calls: [{id: own_1, tool: find_wiki, arguments: {q: ada}}]
  - say: Done.
"""
SEEN_OF_HOSTED = [
    ("reasoning", "Three at once."),
    ("asked", "mcpr_1", "find", "web", {"q": "price"}),
    ("asked", "mcpr_2", "find", "web", {"q": "name"}),
    ("reasoning", "And the row."),
    ("asked", "mcpr_3", "drop", "bank-2", {"row": 7}),
    ("call", "c1", "pay", {"amount": 5}),
    ("hosted", "mcp_mcpr_1", "mcpr_1", "find", "web", {"q": "price"}, "found price", None, "completed"),
    (
        *("hosted", "mcp_mcpr_3", "mcpr_3", "drop", "bank-2", {"row": 7}, None),
        {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "the bank is closed"}]},
        "failed",
    ),
    ("hosted", "mcp_own_1", None, "find", "wiki", {"q": "ada"}, '[{"page": "ada"}]', None, "completed"),
    ("say", "Done."),
]


@every_way
@pytest.mark.parametrize("name", ["responses", "stored responses"])
def test_hosted_calls_play_back_equal(server: ScriptedModelServer, tmp_path: Path, name: str, stream: bool) -> None:
    """Requests, decisions with reasons, labels, outputs, errors, and a call that nobody was asked about."""
    answers = [(True, None), (False, "too private"), (True, None)]
    scenario = parse_scenario(HOSTED, name="a/hosted", path="hosted")
    playing = Playing(server, tmp_path, answers=answers)
    first, again, problems = playing.see(name, scenario, 0, stream=stream)

    assert [] == problems
    assert SEEN_OF_HOSTED == [part for response in first for part in response.parts]
    assert first == again
    assert "{mcpr_1: approve, mcpr_2: {reject: too private}, mcpr_3: approve}" in playing.text


def test_some_stories_have_what_only_some_providers_show() -> None:
    """Hosted calls, reasoning that is not shown, arguments that are no JSON, and calls without ids are drawn."""
    drawn = {name: [draw(name, seed) for seed in range(100)] for name in ("responses", "messages", "gemini")}
    kinds = [tool.kind for story in drawn["responses"] for tool in story.tools]
    replies = [reply for story in drawn["messages"] for reply in story.agents["main"].replies]
    calls = [call for story in drawn["gemini"] for reply in story.agents["main"].replies for call in reply.calls]

    assert kinds.count("hosted_mcp") > 10
    assert sum(reply.redacted for reply in replies) > 10
    assert sum(isinstance(call.arguments, str) for reply in replies for call in reply.calls) > 5
    assert sum(call.id is None for call in calls) > 5

"""Agents in JavaScript whose process is killed in a turn."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from pytest_approvals import Scenario, approve, calls, decide, leave, returns, say, send, tool
from pytest_approvals.journal.events import AgentKilled, StateRestored, StreamShown
from pytest_approvals.processes.agent_process import AgentProcess
from pytest_approvals.processes.launchers import AGENT_SIDE_FOLDER, CommandLauncher
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import SharedProcessSource, SubprocessFactory
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import Variant

NODE = shutil.which("node") or "node"
HERE = Path(__file__).parent
JAVASCRIPT = Path(AGENT_SIDE_FOLDER) / "javascript"
FACTS = {
    "framework": "stored",
    "capabilities": [
        "streaming",
        "crash",
        "fresh",
        "stores_in_turns",
        "native.file",
        "answer.restored",
    ],
    "stores": {"file": "a file"},
    "wire_rules": "chat",
}
PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not on this machine")


@pytest.fixture(autouse=True)
def _agent_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the agent finds the class that it extends."""
    monkeypatch.setenv("AGENT_SIDE", str(JAVASCRIPT))


def play_crash(place: str, *, stream: bool = False) -> RecordedRun:
    """Play a turn with an approval whose process is killed at a place, and a message."""
    story = Scenario(
        title="A crash",
        tools=[PAY],
        model=[calls("pay", amount=5), say("It is paid."), say("You are welcome.")],
        caller=[send("Pay 5"), decide(approve("c1"), crashes=place), send("Well?"), leave()],
    )
    words = (NODE, str(JAVASCRIPT / "main.mjs"), str(HERE / "stored_agent"), json.dumps(FACTS))

    async def play() -> RecordedRun:
        pool = ProcessPool()
        source = SharedProcessSource(
            "stored", SubprocessFactory(agent="stored", launcher=CommandLauncher(words=words), pool=pool)
        )
        try:
            await source.fetch_facts()
            variant = Variant(serialize="native.file", source="restored", stream=stream)
            return await run_scenario(story, variant, source, limit=RunLimits(seconds=30))
        finally:
            await pool.close()

    return asyncio.run(play())


def restored(run: RecordedRun) -> list[str]:
    """How the process after the crash was restored: what it lists, or its error."""
    killed = next(event.n for event in run.events if isinstance(event, AgentKilled))
    first = next(event for event in run.events if isinstance(event, StateRestored) and event.n > killed)
    return list(first.error) if first.error else [request["id"] for request in first.pending]


@pytest.mark.parametrize(("place", "waits"), [("before c1", ["c1"]), ("ended c1", ["c1"]), ("model", [])])
def test_a_process_dies_at_the_place_and_another_one_recovers(place: str, waits: list[str]) -> None:
    """It takes what the file has by then."""
    run = play_crash(place)

    assert [place] == [event.place for event in run.events if isinstance(event, AgentKilled)]
    assert waits == restored(run)


@pytest.mark.skipif(not AgentProcess.can_cut_writes, reason="only Linux limits the files of another process")
def test_a_process_dies_in_the_middle_of_a_write() -> None:
    """Node ignores the signal of the kernel unless the process lets it through."""
    run = play_crash("write c1")

    assert ["write c1"] == [event.place for event in run.events if isinstance(event, AgentKilled)]
    assert ["Error", "half a file"] == restored(run)


def test_a_process_dies_with_the_first_thing_that_its_stream_shows() -> None:
    """It does nothing after that, such as to show the rest or to store it."""
    run = play_crash("shown", stream=True)

    assert ["It"] == [event.text for event in run.events if isinstance(event, StreamShown) and event.turn == 2]
    assert ["shown"] == [event.place for event in run.events if isinstance(event, AgentKilled)]

from __future__ import annotations

import asyncio
import gc
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_approvals.checks import judge
from pytest_approvals.journal.files import Journal, read_journal
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.model import Scenario, Variant

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

Load = Callable[[str], Scenario]
Tell = Callable[[str], None]


def runs_a_second(scenario: Scenario, variant: Variant, source: InProcessSource, times: int) -> tuple[float, int]:
    async def all_of_them() -> int:
        events = 0
        for _ in range(times):
            run = await run_scenario(scenario, variant, source)
            assert not any(verdict.fails for verdict in judge(run.events))
            events += len(run.events)
        return events

    start = time.process_time()
    events = asyncio.run(all_of_them())
    return times / (time.process_time() - start), events // times


@pytest.mark.parametrize("name", ["basics/approved", "parallel/one-approved-one-rejected"])
@pytest.mark.parametrize("serialize", ["none", "json"])
def test_the_reference_agent_runs_often_enough(
    scenario: Load, reference: InProcessSource, tell: Tell, name: str, serialize: str
) -> None:
    """The reference agent, the harness and all checks make at least 1,500 runs a second on one core."""
    story = scenario(name)
    oracle = "script" if story.has_decisions else "approve_all"
    variant = Variant(serialize=serialize, source="held" if serialize == "none" else "restored", oracle=oracle)
    runs_a_second(story, variant, reference, 100)

    rate, events = runs_a_second(story, variant, reference, 1_000)

    goal = f"target 1,500, ratio {rate / 1_500:.2f}"
    tell(f"{name} [{serialize}]: {rate:,.0f} runs/s with all checks, {events} events a run ({goal})")
    assert rate >= 1_500


def test_stored_journals_are_checked_fast_enough(
    scenario: Load, reference: InProcessSource, tell: Tell, tmp_path: Path
) -> None:
    """Journals are read from disk and judged by all checks at 200,000 events a second at least."""
    variant = Variant(serialize="json", source="restored", stream=True, chunking="tokens")
    path = tmp_path / "run.jsonl"
    asyncio.run(
        run_scenario(scenario("parallel/partial-answers-in-reverse"), variant, reference, journal=Journal(path))
    )
    times, events = 500, len(read_journal(path).events)

    start = time.process_time()
    for _ in range(times):
        judge(read_journal(path).events)
    rate = times * events / (time.process_time() - start)

    goal = f"goal 200,000, ratio {rate / 200_000:.2f}"
    tell(f"checking stored journals: {rate:,.0f} events/s from disk, {events} events each ({goal})")
    assert rate >= 200_000


def test_memory_stays_flat(scenario: Load, reference: InProcessSource, tell: Tell, tmp_path: Path) -> None:
    """After a first tenth, further runs with journals on disk do not grow the process."""
    story, variant = scenario("basics/approved"), Variant(oracle="approve_all")
    path = tmp_path / "run.jsonl"
    runs = 100_000

    async def some(count: int) -> None:
        for _ in range(count):
            judge((await run_scenario(story, variant, reference, journal=Journal(path))).events)

    def resident() -> float:
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    asyncio.run(some(runs // 10))
    before = resident()
    asyncio.run(some(runs - runs // 10))
    grown = resident() - before

    tell(f"memory over {runs:,} runs: {before:.0f} MB after the first tenth, {grown:+.1f} MB after the rest")
    assert grown < 5

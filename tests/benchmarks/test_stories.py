"""How fast drawn stories are: on the reference agent, beside flows by hand, and what drawing them costs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from pytest_approvals.campaigns.exploration import Exploration, StoryPlayer, kills_process, leaves_process
from pytest_approvals.checks import judge
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run_context import RunLimits
from tests.benchmarks.test_overhead import BY_HAND, source_of

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

Tell = Callable[[str], None]
REQUESTS_BY_HAND = 2
"""How often the model is asked in a flow by hand."""


def measure_stories(source: InProcessSource, first: int, count: int) -> tuple[float, float, int, int]:
    """Return the CPU time of drawing stories and of playing them, their number, and the model's requests."""
    player = StoryPlayer(source, get_session_loop().run, limit=RunLimits(seconds=60.0))
    exploration = Exploration(player=player, seed=20261125)
    # Two of fifty stories leave the process, which is measured elsewhere.
    everything = range(first, first + count)
    numbers = [number for number in everything if not (leaves_process(number) or kills_process(number))]
    start = time.process_time()
    cases = [case for case in map(exploration.draw_case, numbers) if case is not None]
    drawn = time.process_time()
    requests = 0
    for case in cases:
        for variant in case.variants:
            history = player.play(case.story, variant)
            judge(history)
            requests += len(history.exchanges)
    return drawn - start, time.process_time() - drawn, len(cases), requests


def measure_flow(flow: Callable[[], Awaitable[object]], times: int) -> float:
    """Return the CPU time of a flow by hand."""

    async def repeat() -> float:
        start = time.process_time()
        for _ in range(times):
            await flow()
        return (time.process_time() - start) / times

    return asyncio.run(repeat())


def test_stories_on_the_reference_agent(reference: InProcessSource, tell: Tell) -> None:
    """At least 200 stories are drawn, played and judged in a second, and drawing costs less than playing."""
    measure_stories(reference, 0, 50)
    drawing, playing, stories, _ = measure_stories(reference, 1_000, 800)
    rate = stories / (drawing + playing)

    tell(f"reference: {rate:,.0f} stories/s of CPU (goal 200, ratio {rate / 200:.2f})")
    per = f"drawing {drawing / stories * 1e3:.2f} ms a story, playing and judging {playing / stories * 1e3:.2f} ms"
    tell(f"reference: {per} (goal below 1, ratio {drawing / playing:.2f})")
    assert drawing < playing
    assert rate >= 200


@pytest.mark.parametrize("name", list(BY_HAND))
def test_stories_beside_flows_by_hand(name: str, tell: Tell) -> None:
    """Stories on a framework ask the model at 60 % of the rate of a flow by hand at least: a story has more of them."""
    source, flow = source_of(name), BY_HAND[name]()
    measure_stories(source, 0, 60)
    measure_flow(flow, 20)
    rounds = []
    for k in range(1, 4):
        by_hand = measure_flow(flow, 100) / REQUESTS_BY_HAND
        drawing, playing, _, requests = measure_stories(source, 200 * k, 100)
        rounds.append((by_hand / ((drawing + playing) / requests), by_hand, requests / (drawing + playing)))
    share, by_hand, rate = sorted(rounds)[1]

    told = f"by hand {1 / by_hand:,.0f} requests/s of CPU, in stories {rate:,.0f}"
    tell(f"{name}: {told} (goal 0.60 of it, ratio {share:.2f})")
    assert share >= 0.6

"""What an agent leaves behind from story to story."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_approvals.campaigns.leaks import WARM_UP, Footprint, LeakWatch, measure_footprint

PLAIN = Footprint(tasks=1, threads=2, mebibytes=80)


def watch(footprint: Callable[[int], Footprint], stories: int) -> str:
    """Return what a watch says after so many stories; *footprint* gets the number of the measurement."""
    measurements = iter(range(stories))
    leaks = LeakWatch(lambda: footprint(next(measurements)))
    for _ in range(stories):
        leaks.observe()
    return leaks.notice


def test_an_agent_that_leaves_nothing_behind_leaks_nothing() -> None:
    """What imports and caches take in the first stories is no leak either."""
    assert "" == watch(lambda number: PLAIN, 1000)
    assert "" == watch(lambda number: replace(PLAIN, mebibytes=900), WARM_UP)


@pytest.mark.parametrize(
    ("grown", "words"),
    [
        (replace(PLAIN, tasks=111), "110 tasks that have not ended more after 110 stories than after 100"),
        (replace(PLAIN, threads=60), "58 threads more after 110 stories than after 100"),
        (replace(PLAIN, mebibytes=1580), "1,500 MiB of memory more after 110 stories than after 100"),
        (
            Footprint(tasks=1001, threads=2, mebibytes=480),
            "1,000 tasks that have not ended and 400 MiB of memory more after 110 stories than after 100",
        ),
    ],
)
def test_what_leaks_is_said(grown: Footprint, words: str) -> None:
    """With how much it is, and since when."""
    assert words == watch(lambda number: grown if number else PLAIN, WARM_UP + 10)


def test_what_a_process_holds_is_measured() -> None:
    """Tasks that wait count until they end."""
    loop = asyncio.new_event_loop()
    before = measure_footprint(loop)
    task = loop.create_task(asyncio.sleep(3600))
    after = measure_footprint(loop)
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()

    assert (0, 1) == (before.tasks, after.tasks)
    assert 0 == measure_footprint(loop).tasks
    assert after.threads >= 1

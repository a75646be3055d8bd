"""How the adapter knows that a run waits for the user."""

from __future__ import annotations

import asyncio

from pytest_approvals.agent_side.adapters.autogen.progress import RunProgress

EVENT_HOPS = 30


async def pass_iterations(number: int) -> None:
    """Let the event loop go round so many times."""
    for _ in range(number):
        await asyncio.sleep(0)


async def ask_first(progress: RunProgress, answered: asyncio.Event) -> None:
    """Ask, and leave the question just before a run that still asks counts as blocked."""
    with progress.enter("c1", "pay"), progress.wait_for_user():
        await answered.wait()
        await pass_iterations(EVENT_HOPS - 3)


async def ask_again(progress: RunProgress, shown: list[str]) -> None:
    """Ask, and show the question as late as an event may come."""
    with progress.enter("c2", "pay"), progress.wait_for_user():
        await pass_iterations(EVENT_HOPS - 3)
        shown.append("c2")
        await asyncio.Event().wait()


async def ask_twice(progress: RunProgress, answered: asyncio.Event, shown: list[str]) -> None:
    """Make two calls, one after the other, each in a task of its own as the framework does."""
    with progress.begin():
        await asyncio.create_task(ask_first(progress, answered))
        await asyncio.create_task(ask_again(progress, shown))


async def list_what_is_shown() -> list[str]:
    """Return what is shown when the run counts as blocked for the second time."""
    progress, answered, shown = RunProgress(), asyncio.Event(), list[str]()
    run = asyncio.create_task(ask_twice(progress, answered, shown))
    await progress.wait_until_blocked(run, EVENT_HOPS)
    answered.set()
    await progress.wait_until_blocked(run, EVENT_HOPS)
    run.cancel()
    return shown


def test_a_question_reached_late_is_shown_before_the_run_counts_as_blocked() -> None:
    """A run that reaches a second question while the first still counts is watched for as long again."""
    assert ["c2"] == asyncio.run(list_what_is_shown())

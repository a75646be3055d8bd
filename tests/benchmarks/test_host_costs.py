"""What a process costs: to be forked, to be asked, and to be ended."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.types import Blueprint
from pytest_approvals.agent_side.process.fork_server import WARMUP_TOOL, WarmupWorld
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import RemoteAgent

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

AGENT = "pytest_approvals.simulation.reference:ReferenceAgent"
BLUEPRINT = Blueprint(tools=(WARMUP_TOOL,))


async def timed(step: Awaitable[Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = await step
    return time.perf_counter() - start, result


def test_a_fresh_process_is_there_in_milliseconds(tell: Callable[..., None]) -> None:
    """From the wish for one to its first outcome: at most 15 ms for an agent that costs nothing itself."""

    async def one(pool: ProcessPool) -> tuple[float, float]:
        async def first_outcome() -> RemoteAgent:
            agent = await RemoteAgent.build(await pool.start_fresh(AGENT), WarmupWorld(), BLUEPRINT)
            await agent.turn("Practise this.", (), stream=False)
            return agent

        began, agent = await timed(first_outcome())
        ended, _ = await timed(agent.close())
        return began, ended

    async def measured() -> list[tuple[float, float]]:
        pool = ProcessPool()
        await one(pool)
        rows = [await one(pool) for _ in range(40)]
        await pool.close()
        return rows

    began, ended = zip(*asyncio.run(measured()), strict=True)

    tell(f"fork to first outcome: {statistics.median(began) * 1e3:.1f} ms, best {min(began) * 1e3:.1f} ms (target 15)")
    tell(f"end of a process: {statistics.median(ended) * 1e3:.1f} ms, best {min(ended) * 1e3:.1f} ms")
    assert min(began) < 0.015


def test_a_call_costs_a_fraction_of_a_millisecond(tell: Callable[..., None]) -> None:
    """There and back, with nothing to do: at most 0.3 ms."""

    async def measured() -> list[float]:
        pool = ProcessPool()
        agent = await RemoteAgent.build(await pool.start_fresh(AGENT), WarmupWorld(), BLUEPRINT)

        async def some() -> None:
            for _ in range(50):
                await agent.pending()

        rows = [(await timed(some()))[0] / 50 for _ in range(40)]
        await pool.close()
        return rows

    rows = asyncio.run(measured())

    tell(f"a call over the host: {statistics.median(rows) * 1e6:.0f} us, best {min(rows) * 1e6:.0f} us (target 300)")
    assert min(rows) < 0.0003

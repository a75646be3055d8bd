from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.processes.agent_process import AgentProcess, ProcessTimeouts
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import SubprocessFactory

sys.path.insert(0, str(Path(__file__).parent))  # agent processes import the toys by the same names


@pytest.fixture(scope="session")
def pool() -> Iterator[ProcessPool]:
    """Agent processes for all these tests; impatient, because nothing here takes long."""
    opened = ProcessPool(ProcessTimeouts(start=20, answer=5, end=0.5))
    yield opened
    opened.close_now()


@pytest_asyncio.fixture(params=["fresh", "cold"])
async def process(request: pytest.FixtureRequest, pool: ProcessPool) -> AsyncIterator[AgentProcess]:
    """A process with the toy agent, forked from a warm one, or started from nothing."""
    begun = await getattr(pool, f"start_{request.param}")("toy_agent:Toy")
    yield begun
    await begun.end()


@pytest_asyncio.fixture
async def hosted(pool: ProcessPool) -> AsyncIterator[Callable[..., Any]]:
    """Build an agent of a class of the toys, in a process of its own."""
    opened: list[Agent] = []

    async def build(name: str, world: Any, blueprint: Any) -> Agent:
        agent = await SubprocessFactory(agent=name, pool=pool).build(world, blueprint, cold=False)
        opened.append(agent)
        return agent

    yield build
    for agent in opened:
        await agent.close()

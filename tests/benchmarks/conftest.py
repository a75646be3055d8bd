from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.simulation import ReferenceAgent

CATALOGUE = Path(__file__).parents[2] / "scenarios"

Flow = Callable[[], Awaitable[object]]
Tell = Callable[..., None]


@pytest.fixture
def scenario() -> Callable[[str], Scenario]:
    """Loads a scenario of the catalogue."""
    return lambda name: load_scenario(CATALOGUE / f"{name}.approval.yaml", root=CATALOGUE)


@pytest.fixture
def reference() -> InProcessSource:
    """The reference agent in this process."""
    return InProcessSource(name="reference", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent))


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Tell:
    """Prints a line of results past pytest's capturing."""

    def print_line(line: str) -> None:
        with capsys.disabled():
            print(f"\n  {line}", end="")

    return print_line


@pytest.fixture
def cpu_times() -> Callable[[Sequence[Flow], int, int], list[float]]:
    """
    Measures flows against each other: CPU seconds of one run of each, the median of interleaved rounds.

    Interleaved, because a shared machine changes its speed; CPU time, because its wall clock says nothing.
    """

    def measure(flows: Sequence[Flow], rounds: int, times: int) -> list[float]:
        async def repeat(flow: Flow) -> float:
            start = time.process_time()
            for _ in range(times):
                await flow()
            return (time.process_time() - start) / times

        async def interleaved() -> list[float]:
            for flow in flows:
                await repeat(flow)
            measured = [[await repeat(flow) for flow in flows] for _ in range(rounds)]
            return [statistics.median(row[index] for row in measured) for index in range(len(flows))]

        return asyncio.run(interleaved())

    return measure

"""The catalogue, and the reference agent that plays it, also in other processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import SubprocessFactory
from pytest_approvals.simulation import ReferenceAgent


@pytest.fixture(scope="session")
def reference() -> Iterator[InProcessSource]:
    """The reference agent in this process; the processes in which a story may go on are ended at the end."""
    pool = ProcessPool()
    name = f"{ReferenceAgent.__module__}:{ReferenceAgent.__qualname__}"
    yield InProcessSource(
        name="reference",
        adapter=ReferenceAgent,
        facts=describe_adapter(ReferenceAgent),
        elsewhere=SubprocessFactory(agent=name, pool=pool),
    )
    pool.close_now()

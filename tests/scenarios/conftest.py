"""The catalogue, and the reference agent that plays it, also in other processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_approvals.harness.elsewhere import OtherProcesses
from pytest_approvals.harness.host import HostPool
from pytest_approvals.harness.sources import InThisProcess, facts_of
from pytest_approvals.simulation import ReferenceAgent


@pytest.fixture(scope="session")
def reference() -> Iterator[InThisProcess]:
    """The reference agent in this process; the processes in which a story may go on are ended at the end."""
    pool = HostPool()
    name = f"{ReferenceAgent.__module__}:{ReferenceAgent.__qualname__}"
    yield InThisProcess(
        name="reference",
        adapter=ReferenceAgent,
        facts=facts_of(ReferenceAgent),
        elsewhere=OtherProcesses(agent=name, pool=pool),
    )
    pool.close_now()

"""What a story leaves behind."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest

from pytest_approvals.agent_side.contract import Blueprint, Unsupported
from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.simulation.reference import ReferenceAgent
from pytest_approvals.testing import AdapterSession
from pytest_approvals.testing.world import FakeWorld


class Refuses(ReferenceAgent):
    """An adapter that cannot drive what it is given."""

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        raise Unsupported("attach", "the tools are not a list")


def test_a_story_that_cannot_begin_leaves_nothing_open() -> None:
    """Its event loop is closed, as at the end of any other story."""
    gc.collect()
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        with pytest.raises(Unsupported):
            AdapterSession(Refuses, Blueprint(), FakeWorld([], []))
        asyncio.set_event_loop(None)  # which is what the next one does
        gc.collect()

    assert [] == [str(one.message) for one in left]

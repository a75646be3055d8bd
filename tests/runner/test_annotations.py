"""Tools whose gate the application decides on by what their servers say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_approvals.agent_side.contract import Blueprint, ToolSpec
from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Variant
from pytest_approvals.simulation.reference import ReferenceAgent

STORY = """\
title: A server changes its mind
tools:
  wipe:
    kind: mcp
    server: disks
    approval: by_annotations
    parameters: {disk: string}
    annotations: {readOnlyHint: true}
model:
  - calls: [{id: c1, tool: wipe, arguments: {disk: sda}}]
  - say: Done.
  - calls: [{id: c2, tool: wipe, arguments: {disk: sdb}}]
  - say: Done.
caller:
  - send: Wipe
  - restart: {annotations: {wipe: {destructiveHint: true}}}
  - send: And the other one
  - decide: {c2: approve}
"""


class Watched(ReferenceAgent):
    """A reference agent that notes what it is built from."""

    seen: list[ToolSpec]

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.seen.extend(blueprint.tools)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[ToolSpec]:
    found: list[ToolSpec] = []
    monkeypatch.setattr(Watched, "seen", found, raising=False)
    return found


def play(text: str = STORY) -> History:
    """Play a story in the base variant."""
    source = InProcessSource(name="watched", adapter=Watched, facts=describe_adapter(Watched), elsewhere=None)
    story = parse_scenario(text, name="a/b", path="b.yaml")
    return read_history(asyncio.run(run_scenario(story, Variant(serialize="json", source="held"), source)).events)


def test_an_adapter_is_not_told_what_the_application_decides(seen: list[ToolSpec]) -> None:
    """Its tool waits unless it reads the annotations, and they are those of the server at that time."""
    play()

    assert {("always", True)} == {(spec.approval, spec.by_annotations) for spec in seen}
    assert ({"readOnlyHint": True}, {"destructiveHint": True}) == (seen[0].annotations, seen[-1].annotations)


def test_the_journal_says_what_has_to_be_decided(seen: list[ToolSpec]) -> None:
    """The header what comes of the first annotations, and each start what comes of those that have changed."""
    history = play()
    header = history.header
    approvals = [event.approvals for event in history.agent_starts]

    assert header is not None
    assert "never" == header.tools["wipe"]["approval"]
    assert (None, {"wipe": "always"}) == (approvals[0], approvals[-1])


def test_a_call_is_gated_by_what_was_said_when_it_was_made(seen: list[ToolSpec]) -> None:
    """The first call of the tool runs at once, and the one after the restart waits."""
    calls: dict[str, Any] = {call.label: call for call in play().calls}

    assert (False, True) == (calls["c1"].is_gated, calls["c2"].is_gated)
    assert (0, 1) == (len(calls["c1"].requests), len(calls["c2"].requests))


def test_annotations_gate_nothing_else(seen: list[ToolSpec]) -> None:
    """A tool that is gated always is so whatever its server says, and its adapter is told no annotations."""
    history = play(STORY.replace("by_annotations", "always"))

    assert {("always", False, None)} == {(spec.approval, spec.by_annotations, spec.annotations) for spec in seen}
    assert [True] == [call.is_gated for call in history.calls]

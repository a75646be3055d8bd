"""`pytest-approvals keep-state`: what it stores, and what it says where there is nothing to store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.cli.releases import store_paused_state
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.simulation import ReferenceAgent

STORY = """\
title: One call waits
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Done.
"""


class Forgetful(ReferenceAgent):
    """Keeps nothing in the release that is here."""

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        raise Unsupported("serialize.json", "this release keeps its state in memory")


@pytest.fixture
def story(tmp_path: Path) -> Scenario:
    """A scenario in a file of its own."""
    file = tmp_path / "upgrades" / "one.approval.yaml"
    file.parent.mkdir()
    file.write_text(STORY)
    return load_scenario(file, root=tmp_path)


def source(adapter: type[ReferenceAgent]) -> InProcessSource:
    """An agent in this process."""
    return InProcessSource(name="reference", adapter=adapter, facts=describe_adapter(adapter))


def test_the_state_stands_beside_the_scenario(story: Scenario, tmp_path: Path) -> None:
    """Below the agent, its release and the mode."""
    path = store_paused_state(story, AgentSpec.parse("reference==1.0"), "json", source(ReferenceAgent))

    assert tmp_path / "upgrades/__states__/reference/1.0/json/one.json" == path
    assert "upgrades/one" == json.loads(path.read_text())["scenario"]


def test_a_mode_that_the_agent_does_not_know_is_named(story: Scenario) -> None:
    """Nothing is played."""
    with pytest.raises(Unsupported, match=r"native\.redis"):
        store_paused_state(story, AgentSpec.parse("reference==1.0"), "native.redis", source(ReferenceAgent))


def test_what_only_this_release_lacks_is_told_as_its_adapter_says(story: Scenario, tmp_path: Path) -> None:
    """What can be known only when the agent is built; no state is stored."""
    with pytest.raises(Unsupported, match="this release keeps its state in memory"):
        store_paused_state(story, AgentSpec.parse("reference==1.0"), "json", source(Forgetful))

    assert not list(tmp_path.rglob("__states__"))

"""Drawn stories in which two processes take up one session at the same time, played on the reference agent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.checks import judge
from pytest_approvals.journal.events import Event, StateRestored
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.variants import allowed_variants

pytestmark = pytest.mark.timeout(120)

TIME_LIMIT = 60.0

HELPERS = """
title: Another worker takes the session up while a sub-agent goes on
tools:
  ask_helper: {runs: helper}
  helper/wire: {approval: always, parameters: {sum: integer}}
agents:
  helper:
    model:
      Wire for frank:
        - calls: [{id: h1, tool: wire, arguments: {sum: 3}}]
        - calls: [{id: k1, tool: wire, arguments: {sum: 4}}]
        - say: Done.
      Wire for ivan: [{calls: [{id: h1, tool: wire, arguments: {sum: 5}}]}, {say: Done.}, {say: Done.}]
model:
  - calls:
      - {id: o4, tool: ask_helper, arguments: {input: Wire for frank}}
      - {id: o5, tool: ask_helper, arguments: {input: Wire for ivan}}
  - say: Done.
caller:
  - send: Go ahead.
  - together: [{decide: {o4/h1: approve, o5/h1: approve}, stops: before o5/h1}, {send: "And now?"}]
"""


def play(text: str, serialize: str) -> list[Event]:
    """Return the journal of a story."""
    scenario = parse_scenario(text, name="drawn/story", path="story.approval.yaml")
    runs = AgentRuns(AgentRelease(spec=AgentSpec.parse("reference")), {scenario.id: scenario}, TIME_LIMIT)
    asked_for = {"serialize": (serialize,), "protocol": ("native",), "source": ("restored",)}
    variant = allowed_variants(scenario, runs.source.facts, asked_for)[0]
    return list(runs.history(scenario.id, variant).events)


def find_failing(events: list[Event]) -> list[str]:
    return [verdict.check for verdict in judge(read_history(events)) if verdict.status == "fail"]


@pytest.fixture(scope="module")
def helpers() -> list[Event]:
    """The journal of two workers, of which the first is stopped after a sub-agent's model has made another call."""
    return play(HELPERS, "native.sqlite")


def test_a_store_lists_what_a_running_turn_has_stored(helpers: list[Event]) -> None:
    """The second worker sees the new request of the first one, whose turn has not ended."""
    [listed] = [event for event in helpers if isinstance(event, StateRestored)][1:2]

    assert ["k1"] == [entry["call_id"] for entry in listed.pending]
    assert [] == find_failing(helpers)


def test_a_state_that_was_kept_before_cannot_list_it(helpers: list[Event]) -> None:
    """As JSON it is what was saved before the call was made."""
    events = [replace(event, mode="json") if isinstance(event, StateRestored) else event for event in helpers]

    assert "request-shows-the-call" in find_failing(events)

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


EDITED = """
title: A tool asks again after an edit, and another worker takes the session up
tools:
  write_row: {approval: always, parameters: {fields: object}, asks_again: "Really?", returns: ok}
  delete_file: {approval: always}
model:
  - calls: [{id: c1, tool: write_row, arguments: {fields: {}}}, {id: c4, tool: delete_file}]
  - say: Done.
caller:
  - send: Go ahead.
  - together:
      - decide: {c1: {edit: {fields: {name: heidi}}}, c4: {edit: {}}}
        stops: started c4
      - decide: {c1: approve, c4: approve}
"""


@pytest.fixture(scope="module")
def edited() -> list[Event]:
    """The journal of two workers, of which the first is stopped after it has run an edited call that asks again."""
    return play(EDITED, "native.sqlite")


def test_a_store_lists_a_call_as_another_worker_has_run_it(edited: list[Event]) -> None:
    """The second worker sees the arguments of the first one's edit."""
    listed = [entry["arguments"] for event in edited if isinstance(event, StateRestored) for entry in event.pending]

    assert {"fields": {"name": "heidi"}} in listed
    assert [] == find_failing(edited)


def test_a_state_that_was_kept_before_knows_no_edit(edited: list[Event]) -> None:
    """As JSON it is what was saved before the call was edited."""
    events = [replace(event, mode="json") if isinstance(event, StateRestored) else event for event in edited]

    assert "request-shows-the-call" in find_failing(events)


def test_a_store_lists_what_another_worker_has_read_as_a_number() -> None:
    """The model wrote a text where the tool takes a number, in a turn that has not ended."""
    events = play(
        """
title: The arguments of the first worker's call are read by the types of its tool
tools:
  write_row: {approval: always, parameters: {row: integer}}
  look_into: {}
  lock: {approval: always}
model:
  - calls: [{id: c6, tool: lock}]
  - calls: [{id: c1, tool: write_row, arguments: {row: "1"}, invalid: true}, {id: c5, tool: look_into}]
  - say: Done.
caller:
  - send: Go ahead.
  - together: [{decide: {c6: approve}, stops: before c5}, {decide: {c6: {edit: {}}}}]
""",
        "native.sqlite",
    )

    assert {"row": 1} in [
        entry["arguments"] for event in events if isinstance(event, StateRestored) for entry in event.pending
    ]
    assert [] == find_failing(events)

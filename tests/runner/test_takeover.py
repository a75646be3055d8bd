"""States that other releases saved, resumed by the agent under test."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.agents.adapters import resolve_local_agent
from pytest_approvals.agents.sources import create_source
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.checks import judge
from pytest_approvals.errors import UsageError
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.stored_state_agent import PausedState, capture_paused_state
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.stored_states import list_stored_states, stored_state_path
from pytest_approvals.scenario.variants import plan_variants

STORY = """\
title: One call ran, one waits
tools:
  look: {parameters: {what: string}, returns: "saw {what}"}
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}, {id: c2, tool: look, arguments: {what: it}}]
  - say: Done.
only: {serialize: [json, native]}
"""
SOURCE = create_source(resolve_local_agent(AgentSpec(name="reference")))


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """A scenario in a folder of its own."""
    path = tmp_path / "scenarios" / "upgrades" / "one.approval.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(STORY)
    return load_scenario(path, root=tmp_path / "scenarios")


def kept(scenario: Scenario, version: str, serialize: str, folder: Path) -> Path:
    """Store what the reference agent saves, as if a release of it had."""
    folder.mkdir(parents=True)
    state = asyncio.run(capture_paused_state(scenario, serialize, SOURCE, "reference", str(folder)))
    path = stored_state_path(scenario, "reference", version, serialize)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(state.text())
    return path


@pytest.mark.parametrize("serialize", ["json", "native.sqlite"])
def test_what_was_saved_is_restored_and_continues(scenario: Scenario, tmp_path: Path, serialize: str) -> None:
    """What ran before does not run again, the request is there, and its answer counts."""
    kept(scenario, "1.0", serialize, tmp_path / "store")
    variant = Variant(serialize=serialize, source="restored", oracle="approve_all", saved_by="1.0")
    run = asyncio.run(run_scenario(scenario, variant, SOURCE))

    assert [] == [verdict for verdict in judge(run.events) if verdict.fails]
    assert ["look", "pay"] == [event.tool for event in run.events if event.kind == "tool.start"]
    assert ["built", "restored"] == [event.how for event in run.events if event.kind == "agent.start"]
    assert f"{serialize.replace('_', '-')}-restored-approve-all-from-1.0" == variant.id


def test_a_state_that_lost_its_request_is_a_finding(scenario: Scenario, tmp_path: Path) -> None:
    """A newer release that restores less than was saved fails a check."""
    path = kept(scenario, "1.0", "json", tmp_path / "store")
    written = json.loads(path.read_text())
    state = json.loads(written["state"])
    state["main"]["calls"] = []
    path.write_text(json.dumps({**written, "state": json.dumps(state)}))
    variant = Variant(serialize="json", source="restored", oracle="approve_all", saved_by="1.0")
    run = asyncio.run(run_scenario(scenario, variant, SOURCE))

    assert "pending-survives" in {verdict.check for verdict in judge(run.events) if verdict.fails}


def test_states_of_older_releases_make_variants(scenario: Scenario, tmp_path: Path) -> None:
    """One for each state and oracle; the same release and newer ones have none."""
    for number, version in enumerate(("1.10", "1.9", "2.0")):
        kept(scenario, version, "json", tmp_path / f"store-{number}")

    found = plan_variants(scenario, SOURCE.facts, upgrade=("reference", "2.0"))

    assert ["1.9", "1.9", "1.10", "1.10"] == [one.saved_by for one in found if one.saved_by]
    assert ["1.9", "1.10", "2.0"] == [one.version for one in list_stored_states(scenario, "reference")]
    assert [] == [one for one in plan_variants(scenario, SOURCE.facts) if one.saved_by]
    pinned = {"serialize": ("native.sqlite",)}
    assert [] == [
        one
        for one in plan_variants(scenario, SOURCE.facts, overrides=pinned, upgrade=("reference", "2.0"))
        if one.saved_by
    ]


def test_an_agent_that_does_not_pause_leaves_no_state(scenario: Scenario, tmp_path: Path) -> None:
    """There is nothing that could be restored."""
    free = replace(scenario, tools=tuple(replace(tool, approval="never") for tool in scenario.tools))

    with pytest.raises(UsageError) as error:
        asyncio.run(capture_paused_state(free, "json", SOURCE, "reference", str(tmp_path)))

    assert "upgrades/one on reference: no state to store (the first turn finished)" == str(error.value)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', '{"format": 1, "agent": "x"}'])
def test_what_is_no_stored_state_is_named(tmp_path: Path, text: str) -> None:
    """The error names the file."""
    path = tmp_path / "one.json"
    path.write_text(text)

    with pytest.raises(UsageError) as error:
        PausedState.read(path)

    assert str(error.value).startswith(f"{path}: invalid stored state (")


STORED = {
    "format": 1, "agent": "x", "framework": None, "version": "1", "scenario": "a/b", "serialize": "json", "state": "{}",
    "happened": [], "requests": [], "files": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"state": 5}, "state must be text"),
        (
            {"happened": [{"event": "tool.start", "x": "1", "tool": "t", "arguments": {}}]},
            "tool.start: field 'x' must be a",
        ),
        ({"happened": [{"event": "run.end"}]}, "unexpected event 'run.end'"),
        (
            {"requests": [{"q": "q1", "id": [], "tool": "t"}]},
            "turn.end: field 'requests': key 'id' must be text or null",
        ),
        ({"files": {"../../x": ""}}, "the file '../../x' is not below the folder of the store"),
        ({"files": {"/x": ""}}, "the file '/x' is not below the folder of the store"),
        ({"files": {"x": "%"}}, "Only base64 data is allowed"),
    ],
)
def test_a_stored_state_of_another_shape_is_refused_before_it_is_used(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    """Nothing of it is replayed, and no file is written outside of the folder of the store."""
    path = tmp_path / "one.json"
    path.write_text(json.dumps(STORED | changed))

    with pytest.raises(UsageError) as error:
        PausedState.read(path)

    assert str(error.value).startswith(f"{path}: invalid stored state ({message}")


def test_a_stored_state_that_is_nested_too_deep_is_named(tmp_path: Path) -> None:
    """Python's parser gives up on it."""
    path = tmp_path / "one.json"
    path.write_text("[" * 100_000)

    with pytest.raises(UsageError, match="invalid stored state"):
        PausedState.read(path)


def test_a_state_that_is_not_there_is_an_error(scenario: Scenario) -> None:
    """It is said what was looked for."""
    variant = Variant(serialize="json", source="restored", saved_by="7.0")

    with pytest.raises(UsageError) as error:
        asyncio.run(run_scenario(scenario, variant, SOURCE))

    assert "upgrades/one: no stored state of reference 7.0 saved as 'json'" == str(error.value)

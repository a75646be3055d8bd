"""Where a verdict changes: on agents of this process, which stand for releases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.campaigns.bisect import VerdictChange, bisect_releases, find_distinguishing_run
from pytest_approvals.errors import UsageError
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.simulation.faults import FAMILIES

CHECK = "rejected-never-runs"
FAULT = next(name for name, fault in FAMILIES["execution"].items() if fault.caught_by == CHECK)
SCENARIOS = ("basics/approved", "basics/rejected-with-a-reason")

Of = Callable[[str], AgentRuns]


@pytest.fixture
def catalogue() -> dict[str, Scenario]:
    """A small catalogue."""
    root = stock_folder()
    return {name: load_scenario(root / f"{name}.approval.yaml", root=root) for name in SCENARIOS}


@pytest.fixture
def of(catalogue: dict[str, Scenario], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Of:
    """Return an agent by release: 1 to 3 are good, 4 and 5 have the defect, 8 cannot be built, 9 cannot be started."""
    module = f"""
from pytest_approvals.simulation.faults import build_faulty_agent, load_fault

faulty = build_faulty_agent(load_fault({FAULT!r}))

class Unbuilt(faulty):
    def __init__(self, *given, **named):
        raise TypeError("an argument is missing")

FLAVOURS = {{"": faulty, "unbuilt": Unbuilt}}
"""
    (tmp_path / "bisected_adapter.py").write_text(module)
    monkeypatch.chdir(tmp_path)
    agents = {"8": "bisected.unbuilt", "9": "reference==9"}

    def suspect(version: str) -> AgentRuns:
        agent = agents.get(version, "reference" if version < "4" else "bisected")
        return AgentRuns(AgentRelease(spec=AgentSpec.parse(agent)), catalogue, 5.0)

    return suspect


def changed(catalogue: dict[str, Scenario], of: Of, *versions: str) -> tuple[VerdictChange, list[str]]:
    tried: list[str] = []
    witness = find_distinguishing_run(CHECK, of(versions[0]), of(versions[-1]), catalogue, together=False)
    change = bisect_releases(
        witness, versions, of, step=lambda version, what: tried.append(f"{version} {what.split(':')[0]}")
    )
    return change, tried


def test_the_release_that_changed_the_verdict_is_found(catalogue: dict[str, Scenario], of: Of) -> None:
    """Each half is left out at once."""
    change, tried = changed(catalogue, of, "1", "2", "3", "4", "5")

    assert ("3", "4", ()) == (change.last, change.first, change.between)
    assert ["3 rejected-never-runs holds", "4 rejected-never-runs fails"] == tried


def test_the_good_release_may_be_the_newer_one(catalogue: dict[str, Scenario], of: Of) -> None:
    """What is looked for is then the release that mended it."""
    change, _ = changed(catalogue, of, "1", "2", "4", "5")

    assert ("2", "4") == (change.last, change.first)


def test_a_release_that_cannot_be_judged_is_left_out(catalogue: dict[str, Scenario], of: Of) -> None:
    """If it lies between the two, it is named."""
    change, tried = changed(catalogue, of, "1", "9", "5")

    assert ("1", "5", ("9",)) == (change.last, change.first, change.between)
    assert ["9 cannot be judged"] == tried


def test_a_release_that_builds_no_agent_is_left_out(catalogue: dict[str, Scenario], of: Of) -> None:
    """Nothing fails in a run in which nothing happens, but that is no evidence."""
    change, tried = changed(catalogue, of, "1", "8", "5")

    assert ("1", "5", ("8",)) == (change.last, change.first, change.between)
    assert ["8 cannot be judged"] == tried


def test_a_good_release_that_builds_no_agent_tells_nothing(catalogue: dict[str, Scenario], of: Of) -> None:
    """The error names the run and what was in the way."""
    with pytest.raises(UsageError, match=r"cannot be played on bisected\.unbuilt: .*an argument is missing"):
        find_distinguishing_run(CHECK, of("8"), of("5"), catalogue, together=False)


def test_a_run_that_tells_the_ends_apart_is_needed(catalogue: dict[str, Scenario], of: Of) -> None:
    """Without one it is said whether the check fails on both or on none."""
    with pytest.raises(UsageError) as on_both:
        find_distinguishing_run(CHECK, of("4"), of("5"), catalogue, together=False)
    with pytest.raises(UsageError) as on_none:
        find_distinguishing_run(CHECK, of("1"), of("2"), catalogue, together=False)

    assert f"{CHECK} fails on bisected, too, wherever it fails on bisected" == str(on_both.value)
    assert f"{CHECK} does not fail on reference in any of these scenarios" == str(on_none.value)

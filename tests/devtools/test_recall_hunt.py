"""Whether a bug is found: on agents of this process, with a defect and without."""

from pathlib import Path

import pytest

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease
from pytest_approvals.devtools.known_bugs import KnownBug
from pytest_approvals.devtools.known_bugs.search import KnownBugSearch, SearchResult, flavour_pairs
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_scenario, parse_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.simulation.faults import FAMILIES

SCENARIOS = ("basics/approved", "basics/rejected-with-a-reason", "parallel/one-approved-one-rejected")
FAULT = next(name for name, fault in FAMILIES["execution"].items() if fault.caught_by == "rejected-never-runs")

SHOP = """
from pytest_approvals.agent_side.contract import Agent

class Shop(Agent):
    framework = "shop"

class Till(Shop): ...
class Night(Shop): ...
class Web(Agent):
    framework = "shop-web"

FLAVOURS = {"": Shop, "plain": Shop, "till": Till, "till_night": Night, "web": Web}
"""


@pytest.fixture(scope="module")
def catalogue() -> dict[str, Scenario]:
    """A small catalogue."""
    root = stock_folder()
    return {name: load_scenario(root / f"{name}.approval.yaml", root=root) for name in SCENARIOS}


@pytest.fixture(autouse=True)
def broken_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent of the project that has the defect: `rejectrunner`."""
    module = f"""
        from pytest_approvals.simulation.faults import build_faulty_agent, load_fault
        FLAVOURS = {{"": build_faulty_agent(load_fault({FAULT!r}))}}
    """
    (tmp_path / "rejectrunner_adapter.py").write_text("\n".join(line.strip() for line in module.splitlines()))
    monkeypatch.chdir(tmp_path)


def release(agent: str) -> AgentRelease:
    """Return an agent as rows name it."""
    return AgentRelease(spec=AgentSpec.parse(agent))


def hunted(catalogue: dict[str, Scenario], bad: str, good: str | None, *checks: str) -> SearchResult:
    """Looks for a bug."""
    row = KnownBug(
        id="bug",
        title="A bug",
        sources=("owner/repository#1",),
        bad=release(bad),
        good=None if good is None else release(good),
        checks=checks,
    )
    return KnownBugSearch(catalogue, time_limit=5.0).search(row)


@pytest.mark.parametrize("good", ["reference", None])
def test_what_fails_on_the_bad_agent_alone_is_found(catalogue: dict[str, Scenario], good: str | None) -> None:
    """With no good agent it is enough that it fails."""
    answer = hunted(catalogue, "rejectrunner", good, "rejected-never-runs", "asked-once")

    assert "found bug: rejected-never-runs" == str(answer)
    assert answer.scenario in SCENARIOS


def test_what_fails_on_both_is_missed(catalogue: dict[str, Scenario]) -> None:
    """A check that fails on the good agent in the same variant shows nothing."""
    answer = hunted(catalogue, "rejectrunner", "rejectrunner", "rejected-never-runs")

    assert "missed bug: rejected-never-runs failed on rejectrunner in the same variants, too" == str(answer)


TWICE = """
title: Both are rejected
tools:
  pay: {parameters: {amount: integer}, returns: "paid {amount}", approval: always}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 1}}, {id: c2, tool: pay, arguments: {amount: 2}}]
  - say: Done.
caller:
  - send: Pay
  - decide: {c1: reject, c2: reject}
"""


@pytest.mark.parametrize(("good", "told"), [("one.second", "found bug: "), ("one", "missed bug: ")])
def test_a_failure_about_another_call_is_another_one(good: str, told: str, tmp_path: Path) -> None:
    """Where the same check fails on both, it counts about which call it does."""
    module = f"""
from pytest_approvals.simulation.faults import build_faulty_agent, load_fault

class First(load_fault({FAULT!r})):
    "A rejection lets the first call run."
    _runs = "c1"

    def apply_decision(self, conversation, call, decision, turn):
        if call.id == self._runs:
            return super().apply_decision(conversation, call, decision, turn)
        return super(load_fault({FAULT!r}), self).apply_decision(conversation, call, decision, turn)

class Second(First):
    "A rejection lets the second call run."
    _runs = "c2"

FLAVOURS = {{"": build_faulty_agent(First), "second": build_faulty_agent(Second)}}
"""
    (tmp_path / "one_adapter.py").write_text(module)
    catalogue = {"twice": parse_scenario(TWICE, name="twice", path="twice.approval.yaml")}

    assert str(hunted(catalogue, "one", good, "rejected-never-runs")).startswith(told)


def test_a_failure_of_another_check_finds_nothing(catalogue: dict[str, Scenario]) -> None:
    """The failures of other checks are named, so that a user sees whether the row or the catalogue is wrong."""
    answer = hunted(catalogue, "rejectrunner", "reference", "asked-once")

    assert not answer.found
    assert f"none of its checks failed in {answer.runs} runs on rejectrunner; what failed: " in answer.why
    assert "rejected-never-runs (" in answer.why


def test_an_agent_that_does_nothing_wrong_is_not_found(catalogue: dict[str, Scenario]) -> None:
    """No check fails on the reference agent."""
    answer = hunted(catalogue, "reference", None, "rejected-never-runs", "same-outcome-in-every-mode")

    assert f"missed bug: none of its checks failed in {answer.runs} runs on reference; nothing failed" == str(answer)


def test_a_bug_of_another_flavour_is_found(catalogue: dict[str, Scenario], tmp_path: Path) -> None:
    """A row that names no flavour means all of that distribution; the answer says in which one it was found."""
    module = (tmp_path / "rejectrunner_adapter.py").read_text()
    sound = (
        'from pytest_approvals.simulation import FLAVOURS as SOUND\nFLAVOURS = {"": SOUND[""], "odd": FLAVOURS[""]}\n'
    )
    (tmp_path / "oddly_adapter.py").write_text(f"{module}\n{sound}")

    answer = hunted(catalogue, "oddly", "oddly", "rejected-never-runs")
    alone = hunted(catalogue, "oddly", None, "rejected-never-runs")

    assert "missed bug: " in str(answer)
    assert ("found bug: rejected-never-runs", "oddly.odd") == (str(alone), alone.agent)


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("shop==2", ["shop==2", "shop.till==2", "shop.till_night==2"]),
        ("shop.till==2", ["shop.till==2", "shop.till_night==2"]),
        ("shop.web==3", ["shop.web==3"]),
        ("shop.gone==3", ["shop.gone==3"]),
    ],
)
def test_a_row_means_the_kinds_of_what_it_names(tmp_path: Path, named: str, meant: list[str]) -> None:
    """All flavours with the same distribution, or those whose name continues the named one."""
    (tmp_path / "shop_adapter.py").write_text(SHOP)
    row = KnownBug(id="bug", title="A bug", sources=(), bad=release(named), good=release(named), checks=())

    assert [(one, one) for one in meant] == [(str(bad), str(good)) for bad, good in flavour_pairs(row)]


def test_an_agent_that_cannot_be_started_is_the_reason(catalogue: dict[str, Scenario]) -> None:
    """Other rows go on."""
    answer = hunted(catalogue, "reference==9", None, "rejected-never-runs")

    assert "missed bug: agent 'reference==9' cannot be started: it has no framework, so neither releases" in str(answer)


def test_an_unknown_flavour_is_the_reason(catalogue: dict[str, Scenario]) -> None:
    """A table may know more agents than this release of the package."""
    answer = hunted(catalogue, "reference.loud", None, "rejected-never-runs")

    assert str(answer).startswith("missed bug: Unknown flavour of reference 'loud'")

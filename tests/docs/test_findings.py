"""The pages about findings: each scenario is played on the agent that its page names, and its check says so still."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.environments import installers
from pytest_approvals.agents.package_registries import NPM
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.checks import CHECKS, judge, judge_group
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant

FOLDER = Path(__file__).parents[2] / "docs" / "findings"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
HANGS = 4.0
"""Seconds after which a run that hangs has shown that it does."""

RACES = [path for path in PAGES if "\n| seen | sometimes: " in path.read_text(encoding="utf-8")]
"""The pages of findings that a run may show or not, as the framework's event loop has it."""

every_page = pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page says in its table, and its scenario."""

    agent: str
    release: str
    check: str
    status: str
    requirement: str
    variant: Variant
    scenario: Scenario

    @classmethod
    def read(cls, path: Path) -> Page:
        text = path.read_text(encoding="utf-8")
        rows = dict(re.findall(r"^\| (\w[\w ]*) \| (.*) \|$", text, re.MULTILINE))
        check = re.fullmatch(r"`([a-z-]+)` \(([a-z-]+)\): (.*)", rows["check"])
        story = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
        assert check is not None, "its row `check` reads `SLUG` (STATUS): REQUIREMENT"
        assert story is not None, "its scenario is the first block of YAML"
        return cls(
            agent=rows["agent"].strip("`"),
            release=rows["release"],
            check=check[1],
            status=check[2],
            requirement=check[3],
            variant=_variant(rows["variant"]),
            scenario=parse_scenario(story[1], name=f"findings/{path.stem}", path=str(path)),
        )


def _variant(written: str) -> Variant:
    given: dict[str, Any] = dict(re.findall(r"(\w+): ([\w.]+)", written))
    return Variant(**{name: True if value == "True" else value for name, value in given.items()})


@cache
def source(agent: str) -> AgentSource:
    """Gives the agent: here, or in the environment with its pinned release."""
    if get_adapter(AgentSpec.parse(agent)).registry == NPM.name and not installers.is_npm_available():
        pytest.skip("Node is not on this machine")
    return AgentRuns(AgentRelease(spec=AgentSpec.parse(agent)), {}, HANGS).source


def played(page: Page, variant: Variant) -> History:
    limit = RunLimits(seconds=HANGS if page.check == "run-ends" else 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = get_session_loop().run(run_scenario(page.scenario, variant, source(page.agent), limit=limit))
    return read_history(run.events)


def test_there_are_pages() -> None:
    """The folder is where it is looked for, and its index names every page."""
    index = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert [] == [path.name for path in PAGES if f"({path.name})" not in index]
    assert len(PAGES) > 100


def test_few_findings_are_races() -> None:
    """What cannot be shown at will is an exception."""
    assert ["strands-paused-sub-agent-stays-locked"] == [path.stem for path in RACES]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "path",
    [
        # `-m slow` plays those of all pages, and other sessions every third one.
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if number % 3 else [])
        for number, path in enumerate(PAGES)
        if path not in RACES
    ],
)
def test_the_scenario_shows_the_finding(path: Path) -> None:
    """Played as the page says, it fails the check that the page names."""
    page = Page.read(path)
    shown, *others = [played(page, variant) for variant in dict.fromkeys([page.variant, Variant()])]
    verdicts = [*judge(shown), *(judge_group([*others, shown]) if others else ())]

    assert (page.check, page.status) in {(verdict.check, verdict.status) for verdict in verdicts}


@every_page
def test_the_page_names_what_it_is_about(path: Path) -> None:
    """The release that was looked at is the one that is tested, and the check is quoted as it stands."""
    page = Page.read(path)
    facts = source(page.agent).facts

    assert f"{facts.framework} {facts.version}" in page.release
    assert CHECKS[page.check].requirement == page.requirement

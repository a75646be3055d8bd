"""The pages about what Pydantic AI gets wrong: each scenario is played, and its check says so still."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

from pytest_approvals.agent_side.adapters.pydantic_ai import FLAVOURS
from pytest_approvals.checks import CHECKS, judge
from pytest_approvals.harness.run import run_scenario
from pytest_approvals.harness.sources import InThisProcess, facts_of
from pytest_approvals.journal.history import History
from pytest_approvals.scenario.load import scenario_from_text
from pytest_approvals.scenario.parts import Variant

VARIANTS = {"base": Variant(), "json-restored": Variant(serialize="json", source="restored")}
PAGES = sorted(Path(__file__).parents[4].joinpath("docs", "findings").glob("pydantic-ai-*.md"))


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page says in its table, and its scenario."""

    flavour: str
    release: str
    check: str
    requirement: str
    status: str
    variant: str
    scenario: str

    @classmethod
    def read(cls, path: Path) -> Page:
        text = path.read_text(encoding="utf-8")
        rows = dict(re.findall(r"^\| (\w[\w ]*) \| (.*) \|$", text, re.MULTILINE))
        check = re.fullmatch(r"`([a-z-]+)` \(([a-z-]+)\): (.*)", rows["check"])
        scenario = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
        assert check is not None
        assert scenario is not None
        return cls(
            flavour=rows["agent"].strip("`").partition(".")[2],
            release=rows["release"],
            check=check[1],
            status=check[2],
            requirement=check[3],
            variant=rows["variant"],
            scenario=scenario[1],
        )

    def play(self, path: Path) -> History:
        scenario = scenario_from_text(self.scenario, name=f"findings/{path.stem}", path=str(path))
        adapter = FLAVOURS[self.flavour]
        source = InThisProcess(name="pydantic_ai", adapter=adapter, facts=facts_of(adapter))
        return History.of(asyncio.run(run_scenario(scenario, VARIANTS[self.variant], source)).events)


def test_there_are_pages() -> None:
    """The folder is where it is looked for."""
    assert 12 == len(PAGES)


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_the_scenario_shows_the_finding(path: Path) -> None:
    """Played as the page says, it fails the check that the page names."""
    page = Page.read(path)
    history = page.play(path)

    assert (page.check, page.status) in {(verdict.check, verdict.status) for verdict in judge(history)}


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_the_page_names_what_it_is_about(path: Path) -> None:
    """The release that was looked at is the one that is tested, and the check is quoted as it stands."""
    page = Page.read(path)

    assert f"pydantic-ai-slim {version('pydantic-ai-slim')}" in page.release
    assert CHECKS[page.check].requirement == page.requirement

"""The pages about what the OpenAI Agents SDK gets wrong: each scenario is played, and its check says so still."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.agent_side.adapters.openai_agents import FLAVOURS
from pytest_approvals.checks import CHECKS, judge, judge_group
from pytest_approvals.harness.run import run_scenario
from pytest_approvals.harness.sources import InThisProcess, facts_of
from pytest_approvals.journal.history import History
from pytest_approvals.scenario.load import scenario_from_text
from pytest_approvals.scenario.parts import Variant

PAGES = sorted(Path(__file__).parents[4].joinpath("docs", "findings").glob("openai-agents-*.md"))


@dataclass(frozen=True, kw_only=True)
class Page:
    flavour: str
    release: str
    check: str
    requirement: str
    status: str
    variant: Variant
    scenario: str

    @classmethod
    def read(cls, path: Path) -> Page:
        text = path.read_text()
        rows = dict(re.findall(r"^\| (\w[\w ]*) \| (.*) \|$", text, re.MULTILINE))
        check = re.fullmatch(r"`([a-z-]+)` \((\w+)\): (.*)", rows["check"])
        scenario = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
        assert check
        assert scenario
        return cls(
            flavour=rows["agent"].strip("`").partition(".")[2],
            release=rows["release"],
            check=check[1],
            status=check[2],
            requirement=check[3],
            variant=_variant(rows["variant"]),
            scenario=scenario[1],
        )


def _variant(written: str) -> Variant:
    given: dict[str, Any] = dict(re.findall(r"(\w+): ([\w.]+)", written))
    return Variant(**given)


def test_there_are_pages() -> None:
    """The folder is where it is looked for."""
    assert len(PAGES) > 5


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_the_scenario_shows_the_finding(path: Path) -> None:
    """Played as the page says, it fails the check that the page names."""
    page = Page.read(path)
    adapter = FLAVOURS[page.flavour]
    scenario = scenario_from_text(page.scenario, name=f"findings/{path.stem}", path=str(path))
    source = InThisProcess(name="openai_agents", adapter=adapter, facts=facts_of(adapter))
    variants = {page.variant: None, Variant(): None}
    runs = [asyncio.run(run_scenario(scenario, variant, source)) for variant in variants]

    shown, *others = [History.of(run.events) for run in runs]
    found = {(verdict.check, verdict.status) for verdict in (*judge(shown), *judge_group([*others, shown]))}
    assert (page.check, page.status) in found


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_the_page_names_what_it_is_about(path: Path) -> None:
    """The release that was looked at is the one that is tested, and the check is quoted as it stands."""
    page = Page.read(path)

    assert f"openai-agents {version('openai-agents')}" in page.release
    assert CHECKS[page.check].requirement == page.requirement

"""Tests of the table of upgrades after a crash."""

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agent_side.contract.types import Blueprint
from pytest_approvals.devtools.pages import upgrades
from pytest_approvals.devtools.pages.upgrades import (
    PAGE,
    UPGRADE_POINTS,
    UpgradedSource,
    UpgradeRow,
    find_previous_minor,
    format_table,
    replace_table,
)
from pytest_approvals.errors import UsageError
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.simulation.reference.agent import ReferenceAgent, ReferenceAgentOverChat


def source_of(adapter: type[ReferenceAgent]) -> InProcessSource:
    """A source of agents of this class."""
    return InProcessSource(name=adapter.__name__, adapter=adapter, facts=describe_adapter(adapter))


def test_the_first_agent_of_each_run_is_of_the_older_release():
    """All that follow are of the newer one, whose facts count."""
    source = UpgradedSource(source_of(ReferenceAgentOverChat), source_of(ReferenceAgent))

    async def build():
        return type(await source.build(None, Blueprint()))

    run = get_session_loop().run
    kinds = [run(build()), run(build())]
    source.begin_run()

    assert [ReferenceAgentOverChat, ReferenceAgent, ReferenceAgentOverChat] == [*kinds, run(build())]
    assert "ReferenceAgent" == source.name


@pytest.mark.parametrize(
    ("release", "asked", "found"),
    [
        ("2.13.0", [">=2.12,<2.13"], "last"),
        ("2.68.0", [">=2.67,<2.68", ">=2.65,<2.68"], "last"),
        ("3.0.1", [">=2,<3"], "last"),
        ("0.0.4", [], None),
    ],
)
def test_the_release_before_is_of_the_last_minor_version_that_there_is(monkeypatch, release, asked, found):
    """The range is widened while no release fits."""
    ranges, registries = [], set()

    def find(distribution, wanted, *, registry):
        ranges.append(wanted)
        registries.add(registry)
        if len(ranges) < len(asked):
            raise UsageError("no release fits")
        return ("first", "last")

    monkeypatch.setattr(upgrades, "find_releases", find)

    assert found == find_previous_minor("some-agent", release, registry="npm")
    assert (asked, {"npm"} if asked else set()) == (ranges, registries)


def test_the_table_takes_the_place_of_the_one_before():
    """What stands around it on the page stays."""
    cells = ("waits",) * len(UPGRADE_POINTS)
    row = UpgradeRow(agent="agno", store="sqlite", older="3.0.9", newer="3.1.10", cells=cells)
    page = replace_table(PAGE.read_text(encoding="utf-8"), format_table([row]))

    assert "| `agno` | sqlite | 3.0.9 | 3.1.10 | waits |" in page
    assert replace_table(page, format_table([row])) == page
    assert page.partition("## Known bugs")[2] == PAGE.read_text(encoding="utf-8").partition("## Known bugs")[2]


@pytest.mark.parametrize("agent", ["google_adk", "google_adk.resumable", "langgraph", "agno"])
def test_the_stores_on_a_server_are_on_the_page(agent):
    """The page is made with a server, so that no store of a framework is left out."""
    page = PAGE.read_text(encoding="utf-8")

    assert f"| `{agent}` | postgres |" in page

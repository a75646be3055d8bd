"""Section of `docs/releases.md`: a newer release takes up what an older one stored before its process was killed.

`python -m pytest_approvals.devtools.pages.upgrades`, in a checkout, plays it for each durable store of
`docs/crashes.md`, and writes the table. With `--agent NAME` it prints the rows of that agent only. The stores on
PostgreSQL are played if `PYTEST_APPROVALS_POSTGRES` is the address of a server.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.package_registries import PYPI
from pytest_approvals.agents.pins import get_pinned_release
from pytest_approvals.agents.releases import find_releases
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.devtools.pages.crashes import (
    AGENTS,
    POINTS,
    TIME_LIMIT,
    CrashPoint,
    StorePlayer,
    StoreSetting,
    list_stores,
)
from pytest_approvals.errors import ApprovalsError, UsageError
from pytest_approvals.journal.history import History
from pytest_approvals.processes.agent_source import AgentSource

PAGE = Path("docs/releases.md")
"""The page, from the root of a checkout."""

START, END = "<!-- upgrades after a crash: begin -->", "<!-- upgrades after a crash: end -->"
"""What stands around the table on the page."""

UPGRADE_POINTS: tuple[CrashPoint, ...] = tuple(point for point in POINTS if point.title in {
    "the request is stored, nobody has seen it",
    "approved, the call is about to run",
    "between the effect and its record",
    "the model is told the result",
})  # fmt: skip
"""The points at which the older release dies."""


class UpgradedSource:
    """An `AgentSource` that builds the first agent of a run in an older release, and all others in a newer one.

    Args:
        older: Builds the first agent.
        newer: Builds the others.
    """

    def __init__(self, older: AgentSource, newer: AgentSource) -> None:
        self._older = older
        self._newer = newer
        self._has_begun = False

    def begin_run(self) -> None:
        """Let the next agent be the first one of a run."""
        self._has_begun = False

    @property
    def name(self) -> str:
        """See `AgentSource.name`."""
        return self._newer.name

    @property
    def facts(self) -> Facts:
        """See `AgentSource.facts`."""
        return self._newer.facts

    @property
    def gated(self) -> frozenset[str] | None:
        """See `AgentSource.gated`."""
        return self._newer.gated

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        """See `AgentSource.build`."""
        return await self._next_source().build(world, blueprint)

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `AgentSource.build_fresh`."""
        return await self._next_source().build_fresh(world, blueprint, cold=cold)

    def _next_source(self) -> AgentSource:
        source = self._newer if self._has_begun else self._older
        self._has_begun = True
        return source


class UpgradePlayer(StorePlayer):
    """Player of the stories on one store, whose process is of another release after the crash."""

    def __init__(self, older: AgentSpec, newer: AgentSpec, setting: StoreSetting) -> None:
        super().__init__(str(newer), setting)
        source = AgentRuns(AgentRelease(spec=older), {}, TIME_LIMIT).source
        self._upgraded = UpgradedSource(source, self._runs.source)
        self._runs.source = self._upgraded

    def _play(self, name: str) -> History | None:
        self._upgraded.begin_run()
        return super()._play(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRow:
    """What a newer release does with what an older one stored.

    Attributes:
        agent: The agent, with its flavour.
        store: `json`, or the name of a store of its framework.
        older, newer: The releases.
        cells: For each of `UPGRADE_POINTS`, what happens.
    """

    agent: str
    store: str
    older: str
    newer: str
    cells: tuple[str, ...]


def find_previous_minor(distribution: str, release: str, *, registry: str = PYPI.name) -> str | None:
    """Return the newest release of the last minor version before *release*; None if there is none.

    Before the first minor version of a major one stands the last one of the major version before.

    Args:
        distribution: The distribution.
        release: A release of it.
        registry: The name of its package registry.
    """
    version = Version(release)
    # Each release that fits costs a question to the registry, so that the range is as small as it can be.
    for back in _MINORS_BACK if version.minor else ():
        lowest = f"{version.major}.{max(0, version.minor - back)}"
        with suppress(UsageError):
            return find_releases(distribution, f">={lowest},<{version.major}.{version.minor}", registry=registry)[-1]
    if not version.major:
        return None
    with suppress(UsageError):
        return find_releases(distribution, f">={version.major - 1},<{version.major}", registry=registry)[-1]
    return None


_MINORS_BACK = (1, 3, 10)
"""How many minor versions to go back, some of which may have been left out."""


def examine_upgrade(agent: str) -> Iterator[UpgradeRow]:
    """Play the stories on each store of an agent, in its pinned release after the previous minor one.

    Raises:
        ApprovalsError: A release cannot be started.
    """
    spec = AgentSpec.parse(agent)
    adapter = get_adapter(spec)
    framework = adapter.framework
    newest = get_pinned_release(framework, adapter.registry) if framework else None
    older = find_previous_minor(framework, newest, registry=adapter.registry) if framework and newest else None
    if newest is None or older is None:
        return
    before, after = (AgentSpec(name=spec.name, flavour=spec.flavour, version=each) for each in (older, newest))
    stores = list_stores(AgentRuns(AgentRelease(spec=after), {}, TIME_LIMIT).source)
    with warnings.catch_warnings():
        # Frameworks warn about themselves in every run.
        warnings.simplefilter("ignore")
        for serialize in stores:
            player = UpgradePlayer(before, after, StoreSetting(serialize=serialize))
            cells = tuple(player.describe_recovery(point) for point in UPGRADE_POINTS)
            store = serialize.removeprefix("native.")
            yield UpgradeRow(agent=agent, store=store, older=older, newer=newest, cells=cells)


def format_table(rows: Sequence[UpgradeRow]) -> str:
    """Return the table of the page."""
    lines = [
        f"| agent | store | killed | goes on | {' | '.join(point.title for point in UPGRADE_POINTS)} |",
        f"|---|---|---|---|{'---|' * len(UPGRADE_POINTS)}",
        *(
            f"| `{row.agent}` | {row.store} | {row.older} | {row.newer} | {' | '.join(row.cells)} |"
            for row in rows
        ),
    ]  # fmt: skip
    return "\n".join(lines)


def replace_table(page: str, table: str) -> str:
    """Return the text of the page with another table."""
    before, _, rest = page.partition(START)
    return f"{before}{START}\n\n{table}\n\n{END}{rest.partition(END)[2]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table, or print the rows of the agents that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.pages.upgrades")
    parser.add_argument("--agent", action="append", metavar="NAME", help="an agent, without writing the page")
    args = parser.parse_args(arguments)
    rows: list[UpgradeRow] = []
    try:
        for agent in args.agent or AGENTS:
            for row in examine_upgrade(agent):
                rows.append(row)
                print(format_table([row]).splitlines()[-1], flush=True)
    except ApprovalsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    if not args.agent:
        PAGE.write_text(replace_table(PAGE.read_text(encoding="utf-8"), format_table(rows)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

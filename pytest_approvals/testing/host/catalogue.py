"""Scenarios of the catalogue, run on a process and judged by all checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_approvals.checks import CHECKS, judge
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.launchers import CommandLauncher
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import SharedProcessSource, SubprocessFactory
from pytest_approvals.runner.event_loops import SessionLoop
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.catalogue import select_scenarios
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.variants import plan_variants
from pytest_approvals.testing.host.rules import HostFinding

FAMILIES = ("basics", "parallel")
"""The families that every process is tested with; scenarios that need a capability it does not claim are left out."""

RUN_TIME_LIMIT = 20.0
"""Seconds that a run may take."""


def run_catalogue(command: Sequence[str], agent: str, scenarios: Sequence[str]) -> list[HostFinding]:
    """Return the scenarios that fail on a process, with the first failure of each.

    Raises:
        UnknownName: There is no such scenario.
    """
    # The id of a scenario is its path below the root.
    stories = [
        load_scenario(path, root=path.parents[name.count("/")])
        for name, path in select_scenarios(scenarios, Path.cwd()).items()
    ]
    loop, pool = SessionLoop(), ProcessPool()
    source = SharedProcessSource(
        agent, SubprocessFactory(agent=agent, launcher=CommandLauncher(words=tuple(command)), pool=pool)
    )
    try:
        loop.run(source.fetch_facts())
        return [finding for story in stories for finding in _first_failure(story, source, loop)]
    finally:
        loop.run(pool.close())
        loop.close()


def _first_failure(story: Scenario, source: SharedProcessSource, loop: SessionLoop) -> Iterator[HostFinding]:
    for variant in plan_variants(story, source.facts):
        run = loop.run(run_scenario(story, variant, source, limit=RunLimits(seconds=RUN_TIME_LIMIT)))
        for verdict in judge(read_history(run.events)):
            if verdict.fails:
                sentence = CHECKS[verdict.check].requirement.rstrip(".")
                yield HostFinding(
                    name=f"{story.id}[{variant.id}]",
                    requirement=sentence[0].lower() + sentence[1:],
                    what=f"expected {verdict.expected}, and saw {verdict.actual}",
                )
                return

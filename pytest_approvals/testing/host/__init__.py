"""Conformance tests for agent processes in any language: the requirements of `docs/host-protocol.md`.

First the rules of the protocol are tested, then the scenarios of the catalogue with all checks.
`pytest-approvals conformance` prints the result; `host_conforms` is for a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_approvals.checks import CHECKS, judge
from pytest_approvals.errors import ApprovalsError
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
from pytest_approvals.testing.host.rules import RULES, HostFinding, check_rules

__all__ = ["FAMILIES", "RULES", "HostConformanceError", "HostFinding", "check_host", "host_conforms"]

FAMILIES = ("basics", "parallel")
"""The families that every process is tested with; scenarios that need a capability it does not claim are left out."""

RUN_TIME_LIMIT = 20.0
"""Seconds that a run may take."""


class HostConformanceError(ApprovalsError, AssertionError):
    """A process that breaks the host protocol; *found* has the findings."""

    def __init__(self, command: Sequence[str], found: Sequence[HostFinding]) -> None:
        self.found = tuple(found)
        lines = [f"  {finding}" for finding in found]
        super().__init__("\n".join([f"{' '.join(command)} does not conform to the host protocol:", *lines]))


def check_host(
    command: Sequence[str], *, agent: str = "agent", scenarios: Sequence[str] = FAMILIES
) -> list[HostFinding]:
    """Return the findings about a process: the rules that it breaks, or else the scenarios that fail.

    Args:
        command: The program of the process, with its arguments.
        agent: The agent that it is to drive, as `hello` names it.
        scenarios: The scenarios, by id or family.

    Raises:
        UnknownName: There is no such scenario.
        AgentUnavailable: The process cannot be started.
    """
    broken = check_rules(command, agent)
    return broken or run_catalogue(command, agent, scenarios)


def host_conforms(command: Sequence[str], *, agent: str = "agent", scenarios: Sequence[str] = FAMILIES) -> None:
    """Assert that a process conforms to the host protocol; see `check_host`.

    Raises:
        HostConformanceError: It does not.
    """
    findings = check_host(command, agent=agent, scenarios=scenarios)
    if findings:
        raise HostConformanceError(command, findings)


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

"""The stories of the catalogue, played on a process and judged with all checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_approvals.catalogues import chosen
from pytest_approvals.checks import CHECKS, judge
from pytest_approvals.harness.elsewhere import OtherProcesses
from pytest_approvals.harness.host import HostPool
from pytest_approvals.harness.play import Limit
from pytest_approvals.harness.residents import InEnvironment
from pytest_approvals.harness.run import run_scenario
from pytest_approvals.harness.runtimes import Command
from pytest_approvals.journal.history import History
from pytest_approvals.pytest_side.waiting import LastingLoop
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.parts import Scenario
from pytest_approvals.scenario.variants import variants

from .rules import Finding

FAMILIES = ("basics", "parallel")
"""What every process is tried with; what it does not claim is left out."""

SECONDS = 20.0
"""How long a run may take."""


def played(command: Sequence[str], agent: str, scenarios: Sequence[str]) -> list[Finding]:
    """
    Lists the stories that fail on a process, the first failure of each.

    Errors:
        UnknownName: There is no such scenario.
    """
    stories = [
        load_scenario(path, root=path.parents[name.count("/")]) for name, path in chosen(scenarios, Path.cwd()).items()
    ]
    loop, pool = LastingLoop(), HostPool()
    source = InEnvironment(agent, OtherProcesses(agent=agent, environment=Command(words=tuple(command)), pool=pool))
    try:
        loop.wait_for(source.ask())
        return [one for story in stories for one in _failures(story, source, loop)]
    finally:
        loop.wait_for(pool.close())
        loop.close()


def _failures(story: Scenario, source: InEnvironment, loop: LastingLoop) -> Iterator[Finding]:
    for variant in variants(story, source.facts):
        run = loop.wait_for(run_scenario(story, variant, source, limit=Limit(seconds=SECONDS)))
        for verdict in judge(History.of(run.events)):
            if verdict.fails:
                sentence = CHECKS[verdict.check].requirement.rstrip(".")
                what = f"expected {verdict.expected}, and saw {verdict.actual}"
                requirement = sentence[0].lower() + sentence[1:]
                yield Finding(name=f"{story.id}[{variant.id}]", requirement=requirement, what=what)
                return

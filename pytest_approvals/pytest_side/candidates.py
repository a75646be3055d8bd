"""The agents of a session: what their specs come to here, and what the harness builds them from."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_approvals.agent_side.contract import Agent, Attachment
from pytest_approvals.agents import AgentSpec, LocalAgent, adapter_of, default_agents, runnable
from pytest_approvals.errors import AgentUnavailable, ApprovalsError, UsageError
from pytest_approvals.harness.elsewhere import OtherProcesses
from pytest_approvals.harness.environments import Recipe
from pytest_approvals.harness.sources import AgentSource, FreshProcesses, InThisProcess, facts_of
from pytest_approvals.pins import pinned
from pytest_approvals.pytest_side.settings import Settings
from pytest_approvals.pytest_side.waiting import lasting_loop, wait_for
from pytest_approvals.released import environments, recipe_of, released
from pytest_approvals.waivers import Waiver, load_waivers, waiver_file

REFERENCE = "reference"
"""The agent that seeded faults are for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """
    An agent that scenarios run on.

    Attributes:
        stored: The known failures of its adapter.
        updates: They are being brought up to date, and none of them counts meanwhile.
        has_transcripts: Its transcripts of the catalogue are stored, and so can be compared.
        wait_for: Waits for a run on it.
    """

    local: LocalAgent
    source: AgentSource
    stored: tuple[Waiver, ...] = ()
    updates: bool = False
    has_transcripts: bool = False
    wait_for: Callable[[Coroutine[Any, Any, Any]], Any] = wait_for

    @property
    def name(self) -> str:
        """The agent as reports name it."""
        return self.source.name

    @property
    def waiver_file(self) -> Path:
        """Where the known failures of its adapter stand."""
        return waiver_file(self.local.spec.name)

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """The known failures that count."""
        return () if self.updates else self.stored


def candidates(settings: Settings, checks: Iterable[str]) -> tuple[tuple[Candidate, ...], dict[str, AgentUnavailable]]:
    """
    Gives the agents that the settings name, or else all that can run here; and for each that could not be started, the
    reason.

    Errors:
        WaiverError: A file of waivers has a mistake.
        UsageError: A fault is wanted, and the reference agent takes no part.
    """
    slugs = frozenset(checks)
    specs = [AgentSpec.parse(spec) for spec in settings.agents or default_agents()]
    if (settings.requirements or settings.python) and all(recipe_of(spec) is None for spec in specs):
        raise UsageError(
            "--with and --python are for environments; name an agent with its release: --agent NAME==VERSION"
        )
    if settings.fault and not any(spec.name == REFERENCE for spec in specs):
        raise UsageError(f"a fault is switched on in the agent {REFERENCE}, which takes no part in this run")
    found: list[Candidate] = []
    absent: dict[str, AgentUnavailable] = {}
    for spec in specs:
        try:
            found.append(_candidate(spec, settings, slugs))
        except AgentUnavailable as error:
            absent[str(spec)] = error
    return tuple(found), absent


def make_environments(settings: Settings) -> None:
    """Makes the environments of the agents that the settings name, as far as that is possible."""
    for spec in map(AgentSpec.parse, settings.agents):
        with suppress(ApprovalsError):
            recipe = recipe_of(spec, settings.requirements, settings.python)
            if recipe is not None:
                environments().get(recipe, str(spec))


def source_of(local: LocalAgent, attachment: Attachment | None = None) -> AgentSource:
    """Gives what builds an agent for the harness."""
    return InThisProcess(
        name=str(local.spec),
        adapter=local.adapter,
        facts=facts_of(local.adapter, version=local.version, where=local.where),
        elsewhere=_elsewhere(local.adapter),
        attachment=attachment,
    )


def _candidate(spec: AgentSpec, settings: Settings, checks: frozenset[str]) -> Candidate:
    recipe = recipe_of(spec, settings.requirements, settings.python)
    if recipe is not None:
        return _released(spec, recipe, settings, checks)
    local = runnable(spec)
    if settings.fault and spec.name == REFERENCE:
        return Candidate(local=local, source=_faulty(local, settings.fault))
    return Candidate(
        local=local,
        source=source_of(local),
        stored=load_waivers(waiver_file(spec.name), checks),
        updates=settings.update_waivers,
        has_transcripts=_has_transcripts(local),
    )


def _released(spec: AgentSpec, recipe: Recipe, settings: Settings, checks: frozenset[str]) -> Candidate:
    loop = lasting_loop()
    source = released(spec, recipe)
    loop.wait_for(source.ask())
    facts = source.facts
    local = LocalAgent(spec=spec, adapter=adapter_of(spec), version=facts.version, where=facts.where)
    return Candidate(
        local=local,
        source=source,
        stored=load_waivers(waiver_file(spec.name), checks),
        updates=settings.update_waivers,
        has_transcripts=_has_transcripts(local),
        wait_for=loop.wait_for,
    )


def _faulty(local: LocalAgent, fault: str) -> AgentSource:
    from pytest_approvals.simulation.faults import faulty, load_fault

    adapter: type[Agent] = faulty(load_fault(fault))
    facts = facts_of(adapter, where=local.where)
    return InThisProcess(name=str(local.spec), adapter=adapter, facts=facts, elsewhere=_elsewhere(adapter))


def _elsewhere(adapter: type[Agent]) -> FreshProcesses:
    return OtherProcesses(agent=f"{adapter.__module__}:{adapter.__qualname__}")


def _has_transcripts(local: LocalAgent) -> bool:
    if local.spec.version or local.spec.checkout:
        return False
    return local.spec.name == REFERENCE or (local.framework is not None and pinned(local.framework) == local.version)

"""Agents under test of a session, resolved from the settings."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.adapters import LocalAgent, get_adapter, list_default_agents, resolve_local_agent
from pytest_approvals.agents.environments import Recipe
from pytest_approvals.agents.launch import create_environment_source, get_environment_cache, resolve_recipe
from pytest_approvals.agents.pins import get_pinned_release
from pytest_approvals.agents.sources import REFERENCE, create_source, subprocess_factory
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.agents.waivers import Waiver, get_waiver_file, load_waivers
from pytest_approvals.checks import EFFECTS, Check
from pytest_approvals.errors import AgentUnavailable, ApprovalsError, UsageError
from pytest_approvals.plugin.settings import Settings
from pytest_approvals.processes.agent_source import AgentSource, InProcessSource
from pytest_approvals.runner.event_loops import get_reused_loop, get_session_loop, run_coroutine
from pytest_approvals.scenario.catalogue import stock_folder

_PACKAGE = Path(__file__).parents[1]
_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentUnderTest:
    """An agent that scenarios run on.

    Attributes:
        stored: The known failures of its adapter.
        own: The known failures in the user's files.
        own_files: These files.
        updates: Whether they are being updated; none of them counts meanwhile.
        has_transcripts: Whether its transcripts of the catalogue are stored.
        run: Runs a coroutine, a run on it, to its end.
    """

    local: LocalAgent
    source: AgentSource
    stored: tuple[Waiver, ...] = ()
    own: tuple[Waiver, ...] = ()
    own_files: tuple[Path, ...] = ()
    updates: bool = False
    has_transcripts: bool = False
    run: Callable[[Coroutine[Any, Any, Any]], Any] = run_coroutine

    @property
    def name(self) -> str:
        """The agent as reports name it."""
        return self.source.name

    @property
    def waiver_file(self) -> Path:
        """The file with the known failures of its adapter."""
        return get_waiver_file(self.local.spec.name)

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """The known failures that count."""
        return () if self.updates else (*self.own, *self.stored)

    @property
    def is_built_in(self) -> bool:
        """Whether its adapter comes with this package, so that *stored* is about the built-in catalogue only."""
        return self.waiver_file.is_relative_to(_PACKAGE)

    def waivers_for(self, file: Path) -> tuple[Waiver, ...]:
        """Return the known failures that count for the scenario in a file."""
        if self.updates or not self.is_built_in or file.resolve().is_relative_to(stock_folder().resolve()):
            return self.waivers
        return self.own


def resolve_agents(
    settings: Settings, checks: Mapping[str, Check]
) -> tuple[tuple[AgentUnderTest, ...], dict[str, AgentUnavailable]]:
    """Return the agents that the settings name, or else all that can run here, and the errors of the absent ones.

    Args:
        settings: The settings.
        checks: All checks by their slugs, which waivers may name.

    Raises:
        WaiverError: A file of waivers has a mistake.
        UsageError: A fault is switched on, and the reference agent takes no part.
    """
    specs = [AgentSpec.parse(spec) for spec in settings.agents or list_default_agents()]
    if (settings.requirements or settings.python) and all(resolve_recipe(spec) is None for spec in specs):
        raise UsageError(
            "--with and --python are for environments; name an agent with its release: --agent NAME==VERSION"
        )
    if settings.fault and not any(spec.name == REFERENCE for spec in specs):
        raise UsageError(f"a fault is switched on in the agent {REFERENCE}, which takes no part in this run")
    for file in settings.waivers:
        if not file.exists() and not settings.update_waivers:
            raise UsageError(f"waiver file {file} does not exist")
    agents: list[AgentUnderTest] = []
    absent: dict[str, AgentUnavailable] = {}
    for spec in specs:
        try:
            agents.append(_resolve_agent(spec, settings, checks))
        except AgentUnavailable as error:
            absent[str(spec)] = error
    return tuple(agents), absent


def build_environments(settings: Settings) -> None:
    """Build the environments of the agents that the settings name, as far as that is possible."""
    for spec in map(AgentSpec.parse, settings.agents):
        with suppress(ApprovalsError):
            recipe = resolve_recipe(spec, settings.requirements, settings.python)
            if recipe is not None:
                get_environment_cache().get(recipe, str(spec))


def _resolve_agent(spec: AgentSpec, settings: Settings, checks: Mapping[str, Check]) -> AgentUnderTest:
    recipe = resolve_recipe(spec, settings.requirements, settings.python)
    if recipe is not None:
        return _resolve_released_agent(spec, recipe, settings, checks)
    local = resolve_local_agent(spec)
    _require_writable(spec.name, settings)
    if settings.fault and spec.name == REFERENCE:
        return AgentUnderTest(
            local=local, source=_create_faulty_source(local, settings.fault), run=get_reused_loop().run
        )
    return AgentUnderTest(
        local=local,
        source=create_source(local),
        stored=load_narrow_waivers(get_waiver_file(spec.name), checks),
        own=_load_own_waivers(settings, checks),
        own_files=settings.waivers,
        updates=settings.update_waivers,
        has_transcripts=has_stored_transcripts(local),
        run=get_reused_loop().run,
    )


def _resolve_released_agent(
    spec: AgentSpec, recipe: Recipe, settings: Settings, checks: Mapping[str, Check]
) -> AgentUnderTest:
    _require_writable(spec.name, settings)
    loop = get_session_loop()
    source = create_environment_source(spec, recipe)
    loop.run(source.fetch_facts())
    facts = source.facts
    local = LocalAgent(spec=spec, adapter=get_adapter(spec), version=facts.version, where=facts.where)
    return AgentUnderTest(
        local=local,
        source=source,
        stored=load_narrow_waivers(get_waiver_file(spec.name), checks),
        own=_load_own_waivers(settings, checks),
        own_files=settings.waivers,
        updates=settings.update_waivers,
        has_transcripts=has_stored_transcripts(local),
        run=loop.run,
    )


def _load_own_waivers(settings: Settings, checks: Mapping[str, Check]) -> tuple[Waiver, ...]:
    return tuple(waiver for file in settings.waivers for waiver in load_narrow_waivers(file, checks))


def load_narrow_waivers(path: Path, checks: Mapping[str, Check]) -> tuple[Waiver, ...]:
    """Load a file of waivers, none of which hides an effect in every scenario.

    Args:
        path: The file.
        checks: All checks by their slugs.

    Raises:
        WaiverError: The file is invalid, or too wide for the severity of a check.
    """
    effects = {slug: check.severity for slug, check in checks.items() if check.severity in EFFECTS}
    return load_waivers(path, checks, effects)


def _require_writable(name: str, settings: Settings) -> None:
    """Refuse to update waivers in an installed package.

    Raises:
        UsageError: They would be written there, since no file of the user's own is named.
    """
    path = get_waiver_file(name)
    if settings.update_waivers and not settings.waivers and _INSTALLED & set(path.parts):
        raise UsageError(
            f"--update-waivers would write into the installed package, {path}; name a file of your own: --waivers FILE"
        )


def _create_faulty_source(local: LocalAgent, fault: str) -> AgentSource:
    from pytest_approvals.simulation.faults import build_faulty_agent, load_fault

    adapter: type[Agent] = build_faulty_agent(load_fault(fault))
    facts = describe_adapter(adapter, where=local.where)
    return InProcessSource(name=str(local.spec), adapter=adapter, facts=facts, elsewhere=subprocess_factory(adapter))


def has_stored_transcripts(local: LocalAgent) -> bool:
    """Return whether the transcripts of the catalogue that are stored are those of an agent, in its release."""
    if local.spec.version or local.spec.checkout:
        return False
    return local.spec.name == REFERENCE or (
        local.framework is not None and get_pinned_release(local.framework, local.adapter.registry) == local.version
    )

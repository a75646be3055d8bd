"""Cached runs of a release of an agent: the agent is started once, and each of its runs is made once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pytest_approvals.agents.adapters import resolve_local_agent
from pytest_approvals.agents.launch import create_environment_source, resolve_recipe
from pytest_approvals.agents.sources import create_source
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.checks import Verdict, judge, judge_group, merge_traits, observe_traits
from pytest_approvals.errors import AgentUnavailable, ApprovalsError
from pytest_approvals.journal.events import TurnStart, event_from_dict
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.remembered_runs import RememberedRuns, get_runs_folder
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.runner.run_dependencies import are_unchanged, digest_run, list_local_files
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.variants import plan_variants

FAILED_STATUSES = frozenset({"fail", "warning"})
"""The statuses of a verdict whose requirement does not hold; waivers are ignored here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """What fails in a run: a check, about which call, and when; releases differ in how they put it.

    Attributes:
        check: The slug.
        session, label: The call that the failure is about; None as the label if it is about the whole run.
        turn: How many turns had begun when it showed.
        expected: What should have been seen.
    """

    check: str
    session: str
    label: str | None
    turn: int
    expected: str

    @classmethod
    def of_verdict(cls, verdict: Verdict, history: History) -> Symptom:
        """Return what a failing verdict shows."""
        last = max(verdict.witness, default=0)
        turn = sum(start.n <= last for start in history.events_of(TurnStart))
        return cls(
            check=verdict.check, session=verdict.session, label=verdict.label, turn=turn, expected=verdict.expected
        )


@dataclass(slots=True, kw_only=True)
class ScenarioRuns:
    """The results of the runs of one scenario on one agent.

    Attributes:
        symptoms: What failed, for each variant that ran.
        clean: The histories of the runs in which none failed.
        unplayed: What kept the harness from playing a run to its end, for each variant of which that is so.
    """

    symptoms: dict[str, frozenset[Symptom]] = field(default_factory=dict)
    unplayed: dict[str, str] = field(default_factory=dict)
    clean: list[History] = field(default_factory=list)


class CampaignMemory:
    """Journals of the runs of earlier campaigns in which no check failed; they are judged anew each time.

    Args:
        store: What holds them.
        is_fresh: Whether every run is to be played, and kept for later campaigns.

    Attributes:
        remembered: How many runs were not played.
    """

    def __init__(self, store: RememberedRuns, *, is_fresh: bool = False) -> None:
        self.remembered = 0
        self._store = store
        self._is_fresh = is_fresh

    @classmethod
    def of_user(cls, *, is_fresh: bool = False) -> CampaignMemory | None:
        """Return the memory of the user; None if it is turned off."""
        folder = get_runs_folder()
        return None if folder is None else cls(RememberedRuns(folder), is_fresh=is_fresh)

    def find(self, key: str) -> History | None:
        """Return what happened in the run with a key; None if it has to be played."""
        row = self._store.find(key) if key and not self._is_fresh else None
        if row is None or not are_unchanged(row["files"]):
            return None
        return read_history([event_from_dict(event) for event in row["events"]])

    def keep(self, key: str, history: History) -> None:
        """Keep what happened in a run; nothing without a key."""
        if key:
            events = [event.to_dict() for event in history.events]
            self._store.keep(key, {"files": list_local_files(), "events": events})

    def close(self) -> str:
        """Write what waits, and return what there is to say; empty if there is nothing."""
        self._store.close()
        if self._store.problem is not None:
            return f"runs are not remembered: {self._store.problem}"
        count = f"{self.remembered:,} run{' was' if self.remembered == 1 else 's were'} remembered"
        return f"{count}; --fresh-runs plays every run" if self.remembered else ""


class AgentRuns:
    """The runs of one release of an agent.

    Args:
        release: The release.
        catalogue: The scenarios, by id.
        limit: The limits of one run, or its seconds.
        memory: The journals of earlier campaigns; without it every run is played.
    """

    def __init__(
        self,
        release: AgentRelease,
        catalogue: Mapping[str, Scenario],
        limit: float | RunLimits,
        memory: CampaignMemory | None = None,
    ) -> None:
        self.release = release
        self._memory = memory
        self._catalogue = catalogue
        self._limit = limit if isinstance(limit, RunLimits) else RunLimits(seconds=limit)
        self._loop = get_session_loop()
        self._variants: dict[str, tuple[Variant, ...]] = {}
        self._runs: dict[str, ScenarioRuns] = {}

    @cached_property
    def unavailable(self) -> str | None:
        """Why the agent cannot be started; None if it can."""
        try:
            _ = self.source
        except ApprovalsError as error:
            return str(error)
        return None

    @cached_property
    def source(self) -> AgentSource:
        """The source that builds the agent.

        Raises:
            ApprovalsError: It cannot be started.
        """
        spec = self.release.spec
        recipe = resolve_recipe(spec, self.release.requirements, self.release.python)
        if recipe is None:
            if self.release.requirements or self.release.python:
                why = "it runs in this environment, where nothing is installed"
                raise AgentUnavailable(str(spec), why, f"name its release: {spec}==VERSION")
            return create_source(resolve_local_agent(spec))
        source = create_environment_source(spec, recipe)
        self._loop.run(source.fetch_facts())
        return source

    @property
    def number_of_runs(self) -> int:
        """The number of runs that were made."""
        return sum(len(runs.symptoms) for runs in self._runs.values())

    def variants(self, scenario: str) -> tuple[Variant, ...]:
        """Return the variants in which the agent runs a scenario; none if it cannot."""
        if scenario not in self._variants:
            facts = self.source.facts
            upgrade = (self.release.spec.base, facts.version) if facts.version else None
            self._variants[scenario] = plan_variants(self._catalogue[scenario], facts, upgrade=upgrade)
        return self._variants[scenario]

    def history(self, scenario: str, variant: Variant) -> History:
        """Run a scenario, and return what happened."""
        # Frameworks warn about themselves in every run; a campaign reports verdicts only.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = run_scenario(self._catalogue[scenario], variant, self.source, limit=self._limit)
            return read_history(self._loop.run(run).events)

    def broken(self, scenario: str, variant: Variant) -> frozenset[str]:
        """Return the checks that fail in a run."""
        return frozenset(symptom.check for symptom in self.symptoms(scenario, variant))

    def symptoms(self, scenario: str, variant: Variant) -> frozenset[Symptom]:
        """Return what fails in a run."""
        runs = self._runs.setdefault(scenario, ScenarioRuns())
        if variant.id not in runs.symptoms:
            history, verdicts = self._judge_run(scenario, variant)
            failed = [verdict for verdict in verdicts if verdict.status in FAILED_STATUSES]
            runs.symptoms[variant.id] = frozenset(Symptom.of_verdict(verdict, history) for verdict in failed)
            if problem := next((each.actual for each in verdicts if each.status == "harness-error"), None):
                runs.unplayed[variant.id] = problem
            # Group checks compare runs; one that failed a check differs from the others anyway.
            if not any(verdict.fails for verdict in verdicts):
                runs.clean.append(history)
        return runs.symptoms[variant.id]

    def why_unplayed(self, scenario: str, variant: Variant) -> str | None:
        """Return what kept the harness from playing a run to its end, in which nothing fails as nothing happens."""
        self.broken(scenario, variant)
        return self._runs[scenario].unplayed.get(variant.id)

    def _judge_run(self, scenario: str, variant: Variant) -> tuple[History, list[Verdict]]:
        """Return what happened and the verdicts; a remembered run that fails is played."""
        memory, key = self._memory, ""
        if memory is not None:
            key = self._digest_run(scenario, variant) or ""
            known = memory.find(key)
            verdicts = judge(known) if known is not None else []
            if known is not None and not any(verdict.fails for verdict in verdicts):
                memory.remembered += 1
                return known, verdicts
        history = self.history(scenario, variant)
        verdicts = judge(history)
        if memory is not None and not any(verdict.fails for verdict in verdicts):
            memory.keep(key, history)
        return history, verdicts

    def _digest_run(self, scenario: str, variant: Variant) -> str | None:
        release = self.release
        options = {"campaign": repr(self._limit), "with": list(release.requirements), "python": release.python}
        return digest_run(self._catalogue[scenario], variant, self.source, release.spec, options)

    def failed_group_checks(self, scenario: str, variants: Sequence[Variant] | None = None) -> frozenset[str]:
        """Return the checks that fail on the runs of a scenario together: of all its variants, or of *variants*."""
        for variant in self.variants(scenario) if variants is None else variants:
            self.broken(scenario, variant)
        clean = self._runs[scenario].clean if scenario in self._runs else []
        return _failed_checks(judge_group(clean) if len(clean) > 1 else [])

    def forget(self, scenario: str) -> None:
        """Forget the runs of a scenario, which hold their journals."""
        self._runs.pop(scenario, None)

    def traits(self) -> dict[str, tuple[str, ...]]:
        """Return the design choices that the agent shows in the plainest variant of each scenario."""
        plainest = [(scenario, self.variants(scenario)[:1]) for scenario in self._catalogue]
        return merge_traits(
            observe_traits(self.history(scenario, variant)) for scenario, variants in plainest for variant in variants
        )

    def failure_counts(self) -> dict[str, int]:
        """Return the number of runs in which each check failed, the most frequent first."""
        counts: dict[str, int] = {}
        for runs in self._runs.values():
            for symptoms in runs.symptoms.values():
                for slug in {symptom.check for symptom in symptoms}:
                    counts[slug] = counts.get(slug, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _failed_checks(verdicts: Iterable[Verdict]) -> frozenset[str]:
    return frozenset(verdict.check for verdict in verdicts if verdict.status in FAILED_STATUSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRelease:
    """An agent in a release, with the environment that it needs.

    Attributes:
        requirements: Further requirements of its environment.
        python: The version of Python of its environment; empty for the one that runs this.
    """

    spec: AgentSpec
    requirements: tuple[str, ...] = ()
    python: str = ""

    def __str__(self) -> str:
        extras = (*self.requirements, *((f"Python {self.python}",) if self.python else ()))
        return f"{self.spec} with {', '.join(extras)}" if extras else str(self.spec)

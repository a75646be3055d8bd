"""Scenario files as pytest collects and runs them: a file is a collector, an agent in a variant is an item.

The way of an item, each step a function of the one before; pytest is at both ends of it:

    item → begin_run → run_scenario → judge → findings, warnings and waivers as pytest takes them → transcript
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_approvals.agents.waivers import CheckOutcome, Waiver, find_waiver
from pytest_approvals.checks import CheckFailed
from pytest_approvals.errors import ApprovalsError, RequirementWarning, ScenarioError, TranscriptMismatch
from pytest_approvals.errors.printable import escape_lines, escape_value
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.plugin.results import build_mismatch_line
from pytest_approvals.plugin.snapshot import (
    assert_transcript,
    hide_from_other_extensions,
    is_transcript_stored,
    is_updating_snapshots,
    special_transcript_names,
    transcript_name,
)
from pytest_approvals.reporting.findings import format_waiver
from pytest_approvals.reporting.judged_run import JudgedRun, outcome_of
from pytest_approvals.reporting.subject import Subject
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.catalogue import find_root, stock_folder
from pytest_approvals.scenario.labels import list_occurrences
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.scenario_cache import load_cached_scenario
from pytest_approvals.yaml_files import find_line

if TYPE_CHECKING:
    from pytest_approvals.plugin.agents import AgentUnderTest
    from pytest_approvals.plugin.remembered_items import RememberedItem, RememberedVerdict
    from pytest_approvals.plugin.state import PluginState

HANG_TIME_LIMIT = 5.0
"""Seconds for a run that is known to hang: waiting longer for it shows nothing more."""


INVALID_SCENARIOS = pytest.StashKey[int]()
"""How many scenario files of a session could not be collected because they have a mistake."""


class ScenarioCollector(pytest.File):
    """A scenario file; its items are the agents that can play it, each in its variants."""

    def __init__(self, *, state: PluginState, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.state = state
        self.transcript_names: dict[str, set[str]] = {}
        self._waivers: dict[str, tuple[Waiver, ...]] = {}

    @property
    def shown_path(self) -> str:
        """The path relative to where pytest was started."""
        return display_path(self.path, self.config)

    def collect(self) -> Iterator[ScenarioItem]:
        """Yield the items.

        Raises:
            CollectError: The file has a mistake, or an agent cannot be used.
        """
        try:
            scenario = self.load()
            hide_from_other_extensions(self.config)
            for agent in self.state.agents:
                variants = self.state.plan_variants(scenario, agent)
                writers = self.state.plan_transcripts(scenario, agent)
                facts = agent.source.facts
                special = {
                    each
                    for name in writers
                    for each in special_transcript_names(name, [*facts.stores], [*facts.protocols])
                }
                self.transcript_names[agent.name] = {*writers, *special}
                yield from self._create_items(scenario, agent, variants, dict(writers))
        except ApprovalsError as error:
            if isinstance(error, ScenarioError):
                self.session.stash[INVALID_SCENARIOS] = self.session.stash.get(INVALID_SCENARIOS, 0) + 1
            raise self.CollectError(str(error)) from None

    def _create_items(
        self, scenario: Scenario, agent: AgentUnderTest, variants: Iterable[Variant], writers: dict[str, Variant]
    ) -> Iterator[ScenarioItem]:
        for variant in variants:
            item = ScenarioItem.from_parent(
                self,
                name=f"{agent.name}[{variant.id}]",
                callobj=run_requesting_item,
                scenario=scenario,
                agent=agent,
                variant=variant,
            )
            # No plan names the transcript of a store or a protocol, so the first variant that uses it writes it.
            item.writer = writers.setdefault(item.transcript, variant)
            yield item

    def load(self) -> Scenario:
        """Return the scenario.

        Raises:
            ScenarioError: The file has a mistake.
        """
        try:
            return load_cached_scenario(self.path, root=find_root(self.path, self.state.settings.folders))
        except ScenarioError as error:
            raise ScenarioError(self.shown_path, error.line, error.what) from None

    def transcripts(self) -> dict[str, set[str]]:
        """Return the names of the transcripts that the items of each agent use; see `snapshot.py`."""
        return self.transcript_names

    def waivers_for(self, agent: AgentUnderTest) -> tuple[Waiver, ...]:
        """Return the known failures of an agent that count for the scenario."""
        # Looked for once: whether they count depends on the places of files, which take longer to find than to read.
        if agent.name not in self._waivers:
            self._waivers[agent.name] = agent.waivers_for(self.path)
        return self._waivers[agent.name]


class ScenarioItem(pytest.Function):
    """One scenario on one agent in one variant.

    It is a pytest function, because syrupy's fixture asks for one.

    Attributes:
        writer: The variant that writes the transcript.
    """

    def __init__(self, *, scenario: Scenario, agent: AgentUnderTest, variant: Variant, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scenario = scenario
        self.agent = agent
        self.variant = variant
        self.writer = variant
        facts = {
            "scenario": scenario.id,
            "agent": agent.name,
            "version": agent.source.facts.version or "",
            "variant": variant.id,
        }
        self.user_properties += [(name, escape_value(text)) for name, text in facts.items()]

    @property
    def id(self) -> Any:
        """Its id as pytest reads it back from its cache, where the text in brackets is a part of its own."""
        own = super().id
        return type(own).parse(str(own))

    @property
    def collector(self) -> ScenarioCollector:
        """The file that it was collected from."""
        assert isinstance(self.parent, ScenarioCollector)
        return self.parent

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """The known failures that count for it."""
        return self.collector.waivers_for(self.agent)

    @property
    def transcript(self) -> str:
        """The name of the transcript that it is compared with."""
        name = transcript_name(self.agent.name, self.scenario, self.variant)
        return next((each for each in self._special_names() if is_transcript_stored(self, each)), name)

    def _special_names(self) -> Iterator[str]:
        """Yield the names of the transcripts that it could have because of its store or its protocol."""
        variant, facts = self.variant, self.agent.source.facts
        store = variant.serialize.removeprefix("native.")
        yield from special_transcript_names(
            transcript_name(self.agent.name, self.scenario, variant),
            [store] if store in facts.stores else [],
            [variant.protocol] if variant.protocol in facts.protocols else [],
        )

    @property
    def writes(self) -> bool:
        """Whether it is the item that writes the transcript."""
        return self.writer == self.variant

    @property
    def remedy(self) -> str:
        """What to do if its transcript differs from the stored one and is right."""
        if self.writes:
            return "update with --snapshot-update"
        text = f"--snapshot-update stores what {self.agent.name}[{self.writer.id}] tells"
        # Those of a store and a protocol together can follow.
        more = self.transcript.count("-") + 1
        headings = " or ".join(f"`# {name}`" for name in self._special_names() if name.count("-") == more)
        return (
            f"{text}; if this is as right, put the heading {headings} at the end of the file before"
            if headings
            else text
        )

    @property
    def is_compared(self) -> bool:
        """Whether its transcript is compared with a stored one.

        That is so in the catalogue for the pinned releases alone, in a project for every agent that was not named with
        a release. Oracles that take no part in a usual run have no transcript, nor have states that other
        releases saved. `pytest-approvals run` compares what is stored, and does not ask for what is not.
        """
        spec = self.agent.local.spec
        if self.collector.state.settings.fault or spec.version or spec.checkout or self.variant.saved_by:
            return False
        name = self.transcript
        if name not in self.collector.transcript_names[self.agent.name]:
            return False
        if self.config.getoption("approvals_chosen") and not (
            is_transcript_stored(self, name) or is_updating_snapshots(self.config)
        ):
            return False
        return self.agent.has_transcripts or not self.path.is_relative_to(stock_folder())

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where it is defined: the line of the title of its scenario."""
        return self.path, self.line_of_call(None) - 1, self.name

    def line_of_call(self, label: str | None) -> int:
        """Return the line of a call in the model's script; that of the title if there is no such call."""
        scenario = self.scenario
        for occurrence in list_occurrences(scenario) if label is not None else ():
            if occurrence.label == label:
                return find_line(occurrence.path, scenario.lines) or 1
        return find_line(("title",), scenario.lines) or 1

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what is printed of a failure: the findings, and the line of the call concerned."""
        error = excinfo.value
        if not isinstance(error, ApprovalsError):
            return escape_lines(str(super().repr_failure(excinfo)))
        label = error.findings[0].verdict.label if isinstance(error, CheckFailed) and error.findings else None
        return escape_lines(f"{escape_value(self.collector.shown_path)}:{self.line_of_call(label)}: {error}")

    def add_report_section(self, when: str, key: str, content: str) -> None:
        """Add what the agent has printed."""
        super().add_report_section(when, key, escape_lines(content))


def list_other_shards(
    items: Iterable[pytest.Item], number: int, count: int, times: Mapping[tuple[str, str], float]
) -> set[pytest.Item]:
    """Return the items of scenarios that are in another one of several parts that take about the same time.

    All variants of a scenario on an agent are in the same part, because they are also judged together. Tests of users
    are in no part. A scenario without a time counts as if its runs took what others do; without any time runs count.

    Args:
        items: All items.
        number: The part, from 1.
        count: How many parts there are.
        times: The seconds that each scenario took on each agent.
    """
    groups: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        if isinstance(item, ScenarioItem):
            groups.setdefault((item.scenario.id, item.agent.name), []).append(item)
    known = [(times[group], len(several)) for group, several in groups.items() if group in times]
    seconds = sum(took for took, _ in known)
    usual = seconds / sum(runs for _, runs in known) if seconds else 1.0
    weights = {group: times[group] if group in times else usual * len(several) for group, several in groups.items()}
    sizes = [0.0] * count
    others: set[pytest.Item] = set()
    for group, several in sorted(groups.items(), key=lambda entry: (-weights[entry[0]], entry[0])):
        smallest = sizes.index(min(sizes))
        sizes[smallest] += weights[group]
        if smallest != number - 1:
            others.update(several)
    return others


# --- running an item --------------------------------------------------------------------------------------------------


def run_requesting_item(request: pytest.FixtureRequest) -> None:
    """Run the scenario item that asks for a fixture; it is the function of all of these items."""
    item = request.node
    assert isinstance(item, ScenarioItem)
    run_item(item.collector.state, item)


def run_item(state: PluginState, item: ScenarioItem) -> None:
    """Run an item and judge it.

    Raises:
        CheckFailed: It broke a requirement, and no waiver covers that.
        NetworkAccessDenied: It tried to reach another machine.
        JournalError: Its journal could not be written.
        TranscriptMismatch: It broke no requirement, but does something else than before.
    """
    memory = state.memory
    remembered = memory.find(item.scenario, item.variant, item.agent) if memory is not None else None
    if remembered is not None and remembered.verdict is not None:
        _repeat_outcome(state, item, remembered, remembered.verdict)
        return
    if remembered is not None:
        run = remembered.restore_run(item.scenario, item.variant, item.agent.name)
        judged = _judge(state, item, run)
        if judged.failing:
            state.pop_record(item)
            remembered = None
    if remembered is None:
        agent = item.agent
        # The project's filters of warnings are about its own code; as errors they would change what a framework does.
        with warnings.catch_warnings(), state.guard.watch(item.nodeid) as watch:
            warnings.simplefilter("default")
            run = agent.run(_record_run(state, item))
        # The first run of an agent imports its framework.
        state.freeze_imports()
        judged = _judge(state, item, run)
        # After the run was recorded for the report, and before the findings that a refused connection may have caused.
        watch.raise_leaks()
    try:
        _raise_outcome(state, item, run, judged)
    except pytest.xfail.Exception:
        _keep_run(state, item, run, judged)
        raise
    _keep_run(state, item, run, judged)


def _judge(state: PluginState, item: ScenarioItem, run: RecordedRun) -> JudgedRun:
    agent = item.agent
    key = (state.memory.key_of(item.scenario, item.variant, agent) if state.memory is not None else None) or ""
    flavour = agent.local.flavour
    judged = state.judge(item, run, agent.source, waivers=item.waivers, flavour=flavour, key=key)
    item.user_properties.append(("findings", ", ".join(finding.verdict.check for finding in judged.findings)))
    return judged


def _raise_outcome(state: PluginState, item: ScenarioItem, run: RecordedRun, judged: JudgedRun) -> None:
    judged.raise_findings()
    if run.journal.failure is not None:
        raise run.journal.failure
    for warning in judged.warnings():
        item.warn(warning)
    if judged.waived:
        # `xfail` raises, so a run with a waived failure is not compared with its transcript.
        pytest.xfail("; ".join(format_waiver(str(waiver)) for waiver in judged.waived.values()))
    if not judged.findings and item.is_compared and not is_expected_to_differ(item, judged.subject):
        _compare_transcript(state, item, judged.subject, judged.transcript)


def _keep_run(state: PluginState, item: ScenarioItem, run: RecordedRun, judged: JudgedRun) -> None:
    if state.memory is not None:
        state.memory.keep(item.agent, run, judged, state.get_record(item))


def _repeat_outcome(
    state: PluginState, item: ScenarioItem, remembered: RememberedItem, verdict: RememberedVerdict
) -> None:
    """Report a remembered run, and raise what its item raised, or a difference from what is stored by now.

    Raises:
        TranscriptMismatch: Its transcript is not the stored one.
    """
    state.add_record(item, remembered.restore_record(verdict), verdict.transcript)
    item.user_properties.append(("findings", verdict.findings))
    for text in verdict.warnings:
        item.warn(RequirementWarning(text))
    if verdict.waived:
        pytest.xfail(escape_value(verdict.waived))
    subject = Subject.of(remembered.header, more=state.settings.rerun_words)
    if not verdict.findings and item.is_compared and not is_expected_to_differ(item, subject):
        _compare_transcript(state, item, subject, Transcript.parse(verdict.transcript))


async def _record_run(state: PluginState, item: ScenarioItem) -> RecordedRun:
    agent, scenario, variant = item.agent, item.scenario, item.variant
    place = Subject(scenario=scenario.id, agent=agent.name, version=agent.source.facts.version, variant=variant.id)
    hang = outcome_of("run-ends", place, agent.local.flavour)
    limit = RunLimits(seconds=run_time_limit(state.settings.time_limit, hang, item.waivers))
    journal = state.begin_run(scenario, agent.source, variant)
    return await run_scenario(scenario, variant, agent.source, journal=journal, limit=limit, seed=state.settings.seed)


def run_time_limit(seconds: float, hang: CheckOutcome, waivers: Iterable[Waiver]) -> float:
    """Return the time limit of a run: *seconds*, or less if a waiver says that it does not end."""
    return min(seconds, HANG_TIME_LIMIT) if find_waiver(hang, waivers) is not None else seconds


def is_expected_to_differ(item: ScenarioItem, subject: Subject) -> bool:
    """Return whether a waiver says that the variants of the item's scenario differ.

    Then only the item that writes the transcript has to be what is stored.
    """
    differs = outcome_of("same-outcome-in-every-mode", subject, item.agent.local.flavour)
    return not item.writes and find_waiver(differs, item.waivers) is not None


def _compare_transcript(state: PluginState, item: ScenarioItem, subject: Subject, transcript: Transcript) -> None:
    try:
        assert_transcript(item, transcript, item.transcript, write=item.writes, remedy=item.remedy)
    except TranscriptMismatch as error:
        state.add_report_line(item, build_mismatch_line(subject, error))
        raise


def display_path(path: Path, config: pytest.Config) -> str:
    """Return a path relative to where pytest was started, if it is below that."""
    here = config.invocation_params.dir
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)

"""Plugin state: what the scenario items and the users' tests of one pytest session share."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from pytest_approvals import extensions
from pytest_approvals.errors import TranscriptMismatch
from pytest_approvals.errors.printable import escape_lines
from pytest_approvals.plugin.settings import read_settings
from pytest_approvals.scenario.catalogue import find_root, stock_folder
from pytest_approvals.scenario.model import Scenario, Variant

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract.metadata import Facts
    from pytest_approvals.agents.waivers import Waiver
    from pytest_approvals.journal.files import Journal
    from pytest_approvals.plugin.agents import AgentUnderTest
    from pytest_approvals.plugin.network_guard import SessionNetworkGuard
    from pytest_approvals.plugin.remembered_items import RunMemory
    from pytest_approvals.plugin.results import RunRecord, SessionResults
    from pytest_approvals.processes.agent_source import AgentSource
    from pytest_approvals.reporting.judged_run import JudgedRun
    from pytest_approvals.reporting.report import VerdictLine
    from pytest_approvals.runner.run import RecordedRun

_RECORDS = pytest.StashKey[list["RunRecord"]]()
_TRANSCRIPTS = pytest.StashKey[list[str]]()

MANY_MODULES = 50
"""How many imported modules are worth another look at what garbage collections leave out."""


class AgentIdentity(Protocol):
    """What the report says of an agent; an `AgentSource` has it."""

    @property
    def name(self) -> str:
        """The agent as reports name it."""

    @property
    def facts(self) -> Facts:
        """What is known of it."""


class PluginState:
    """What the runs of a pytest session share.

    Raises:
        ApprovalsError: An option, or an extension, cannot be used.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self._journal_names: dict[str, int] = {}
        self.notes: list[str] = []
        self._frozen_modules = 0
        # Before the settings are read, which may name agents and oracles of the project.
        for kind in extensions.EXTENSION_KINDS:
            self._register_extensions(kind)
        self.settings = read_settings(config)

    def _register_extensions(self, kind: str) -> None:
        for offered in getattr(self.config.hook, f"pytest_approvals_{kind}")(config=self.config):
            for name, extension in offered.items():
                extensions.register(kind, name, extension)

    @property
    def is_worker(self) -> bool:
        """Whether this is a worker of pytest-xdist, which hands its results to another process."""
        return hasattr(self.config, "workerinput")

    # --- what runs ---

    @cached_property
    def agents(self) -> tuple[AgentUnderTest, ...]:
        """The agents that scenarios run on."""
        from pytest_approvals.checks import CHECKS
        from pytest_approvals.plugin.agents import resolve_agents
        from pytest_approvals.reporting.judged_run import load_extension_checks

        load_extension_checks()
        # Resolving may start agent processes, and they inherit the guard from the environment.
        self.guard.guard_subprocesses()
        agents, absent = resolve_agents(self.settings, CHECKS)
        self.results.absent = {name: str(error) for name, error in absent.items()}
        if absent and not agents:
            raise next(iter(absent.values()))
        return agents

    @cached_property
    def guard(self) -> SessionNetworkGuard:
        """The guard that lets nothing leave for another machine."""
        from pytest_approvals.plugin.network_guard import SessionNetworkGuard, hosts_from_environment

        return SessionNetworkGuard([*self.settings.allowed_hosts, *hosts_from_environment()])

    @cached_property
    def memory(self) -> RunMemory | None:
        """What is remembered of the runs of earlier sessions; None if this session neither reads nor keeps any."""
        from pytest_approvals.plugin.remembered_items import RunMemory

        return RunMemory.of_session(self.config, self.settings)

    def describe_late_leaks(self) -> str:
        """Return what tried to reach other machines after the end of its test, and was not reported yet."""
        if "guard" not in self.__dict__:
            return ""
        from pytest_approvals.plugin.network_guard import describe_leaks

        return str(describe_leaks(self.guard.collect_leaks()) or "")

    @property
    def was_used(self) -> bool:
        """Whether anything was collected or run, or was to be."""
        # Looking into __dict__ does not create the cached property, as asking for it would.
        return "results" in self.__dict__ or bool(self.chosen)

    @cached_property
    def results(self) -> SessionResults:
        """The results of the runs."""
        from pytest_approvals.plugin.results import SessionResults

        return SessionResults()

    def plan_variants(self, scenario: Scenario, agent: AgentUnderTest) -> tuple[Variant, ...]:
        """Return the variants in which an agent runs a scenario; none if it does not apply."""
        from pytest_approvals.scenario.variants import missing_capabilities, plan_variants

        settings, facts = self.settings, agent.source.facts
        upgrade = (agent.local.spec.base, facts.version) if facts.version else None
        planned = plan_variants(scenario, facts, strength=settings.strength, overrides=settings.pinned, upgrade=upgrade)
        if planned:
            self.results.add_plan(scenario.id, agent.name, planned)
        elif missing := missing_capabilities(scenario, facts):
            self.results.add_not_applicable(scenario.id, agent.name, missing)
        else:
            self._note_what_is_asked_for(agent)
        return planned

    def _note_what_is_asked_for(self, agent: AgentUnderTest) -> None:
        """Note why an agent cannot do what the options ask for."""
        for serialize in self.settings.pinned.get("serialize", ()):
            missing = agent.source.facts.missing
            why = missing.get(serialize, missing.get(f"serialize.{serialize}"))
            note = f"note: {agent.name} cannot do serialize={serialize}: {why}"
            if why is not None and note not in self.notes:
                self.notes.append(note)

    def plan_transcripts(self, scenario: Scenario, agent: AgentUnderTest) -> dict[str, Variant]:
        """Return the variant that writes each transcript: the plainest one that runs by default."""
        from pytest_approvals.plugin.snapshot import transcript_name
        from pytest_approvals.scenario.variants import plan_variants

        first: dict[str, Variant] = {}
        # Without the options of this session, so that the same variant writes in every session.
        for variant in plan_variants(scenario, agent.source.facts):
            first.setdefault(transcript_name(agent.name, scenario, variant), variant)
        return first

    @cached_property
    def chosen(self) -> frozenset[Path]:
        """The scenario files that `pytest-approvals run` chose; none if pytest was started by itself."""
        return frozenset(map(Path, self.config.getoption("approvals_chosen")))

    @cached_property
    def paths_to_chosen(self) -> frozenset[Path]:
        """The chosen files and all folders above them: all that pytest has to look into."""
        return self.chosen.union(*(file.parents for file in self.chosen))

    def build_environments(self) -> None:
        """Build the environments that the agents need, before workers start and while output can be seen.

        A failure shows when the agent is to be started.
        """
        if self.is_worker or not self.settings.agents:
            return
        from pytest_approvals.plugin.agents import build_environments

        build_environments(self.settings)

    def set_collection_args(self) -> None:
        """Point pytest to the scenarios if no files were named.

        Those are the scenarios that `pytest-approvals run` chose, else the project's folders in addition to what pytest
        collects itself.
        """
        if self.config.args_source is pytest.Config.ArgsSource.ARGS:
            return
        if self.chosen:
            folders = (*self.settings.folders, stock_folder())
            self.config.args[:] = sorted({str(find_root(path, folders)) for path in self.chosen})
        else:
            self.config.args += [str(folder) for folder in self.settings.folders]

    # --- runs ---

    def freeze_imports(self) -> None:
        """Leave out of garbage collections what there is by now, if many modules were imported since the last call.

        A collection looks at everything in the process, most of which modules have made and keep. Only a process that
        `pytest-approvals run` has started is changed in this way.
        """
        if self.chosen and len(sys.modules) >= self._frozen_modules + MANY_MODULES:
            gc.freeze()
            self._frozen_modules = len(sys.modules)

    def begin_run(self, scenario: Scenario, source: AgentSource, variant: Variant) -> Journal:
        """Call the hook for the begin of a run, and return the journal to record it in; the run closes it."""
        from pytest_approvals.journal.files import Journal, journal_file_name

        hook = self.config.hook
        hook.pytest_approvals_run_begins(scenario=scenario, variant=variant, agent=source.name, config=self.config)
        folder = self.settings.journals
        if folder is None:
            return Journal(None)
        # An error of this comes back when the file is opened, and says more there.
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        name = journal_file_name(scenario.id, source.name, variant.id)
        # A test may run the same agent several times, or be repeated.
        number = self._journal_names[name] = self._journal_names.get(name, 0) + 1
        return Journal(folder / (name if number == 1 else f"{name.removesuffix('.jsonl')}~{number}.jsonl"))

    def judge(
        self,
        item: pytest.Item,
        run: RecordedRun,
        agent: AgentIdentity,
        *,
        waivers: Sequence[Waiver] = (),
        flavour: str = "",
        is_user_run: bool = False,
        key: str = "",
    ) -> JudgedRun:
        """Judge a run of an item, and keep its record for the report.

        Args:
            item: The item that made the run.
            run: The run.
            agent: The agent that ran.
            waivers: Its known failures.
            flavour: Its flavour, which a waiver may name.
            is_user_run: Whether it is a run of a user's test.
            key: The digest of what the run depends on; empty if it is not remembered.
        """
        from pytest_approvals.journal.events import Header
        from pytest_approvals.plugin.results import RunRecord
        from pytest_approvals.reporting.judged_run import judge_run
        from pytest_approvals.reporting.report import ReportedAgent
        from pytest_approvals.reporting.subject import Subject

        header = run.events[0]
        assert isinstance(header, Header)
        subject = Subject.of(header, f"pytest {item.nodeid}" if is_user_run else "", self.settings.rerun_words)
        settings = self.settings
        judged = judge_run(
            run.events,
            subject,
            flavour=flavour,
            waivers=waivers,
            strict=settings.strict,
            fail_on=settings.fail_on,
        )
        self.config.hook.pytest_approvals_run_ends(run=run, verdicts=judged.verdicts, config=self.config)
        about = ReportedAgent.of(agent.name, agent.facts)
        record = RunRecord.of(
            judged,
            about,
            title=run.scenario.title,
            is_user_run=is_user_run,
            is_base=_is_base_variant(run.variant),
            with_traits=self.settings.report is not None,
            key=key,
        )
        self.add_record(item, record, str(judged.transcript))
        return judged

    def add_record(self, item: pytest.Item, record: RunRecord, transcript: str) -> None:
        """Keep the record and the transcript of a run of an item for the report."""
        item.stash.setdefault(_RECORDS, []).append(record)
        item.stash.setdefault(_TRANSCRIPTS, []).append(transcript)

    def pop_record(self, item: pytest.Item) -> RunRecord:
        """Return the record of an item's latest run, and forget it and its transcript."""
        item.stash[_TRANSCRIPTS].pop()
        return item.stash[_RECORDS].pop()

    def get_record(self, item: pytest.Item) -> RunRecord:
        """Return the record of an item's latest run."""
        return item.stash[_RECORDS][-1]

    def note_gates(self, item: pytest.Item, is_gated: bool, ungated: tuple[str, ...], asked: tuple[str, ...]) -> None:
        """Keep with the record of an item's latest run what is said about gates at the end of the session."""
        records = item.stash[_RECORDS]
        records[-1] = replace(records[-1], is_gated=is_gated, ungated=ungated, asked=asked)

    def add_report_line(self, item: pytest.Item, line: VerdictLine) -> None:
        """Add a line of the report to the record of an item's latest run."""
        item.stash[_RECORDS][-1].lines.append(line)

    def annotate(
        self, item: pytest.Item, report: pytest.TestReport, error: pytest.ExceptionInfo[BaseException] | None
    ) -> None:
        """Attach the records of an item's runs to its report, and their transcripts to that of a failure."""
        records = item.stash.get(_RECORDS, [])
        # A test report of pytest-xdist travels with all its attributes, if they are plain values.
        vars(report)["approvals"] = [record.dump() for record in records] if self.is_worker else list(records)
        vars(report)["approvals_told"] = error is not None and _is_printed_here(error.value)
        # An item has a report for set-up, call and teardown; each record travels with one of them.
        records.clear()
        if report.failed:
            texts = item.stash.get(_TRANSCRIPTS, [])
            report.sections += [("approvals transcript", escape_lines(text)) for text in texts]

    # --- the end ---

    def close(self) -> None:
        """End the network guard, close the report, and forget the extensions of the project."""
        if "results" in self.__dict__ and self.results.stream is not None:
            self.results.stream.close()
        if "guard" in self.__dict__:
            self.guard.close()
        if (memory := self.__dict__.get("memory")) is not None:
            memory.store.close()
        # The registry belongs to the process, where another session may follow, as with pytester.
        extensions.unregister_all()


def _is_base_variant(variant: Variant) -> bool:
    return (variant.serialize, variant.resume, variant.stream, variant.source) == ("none", "same", False, "held")


def _is_printed_here(error: BaseException) -> bool:
    # Imported on the first failure only: all checks come with it.
    from pytest_approvals.checks import CheckFailed

    return isinstance(error, (CheckFailed, TranscriptMismatch))


def get_agent(state: PluginState, name: str) -> AgentUnderTest | None:
    """Return the agent that reports call *name*, if it takes part."""
    return next((agent for agent in state.agents if agent.name == name), None)

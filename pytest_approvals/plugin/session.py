"""The bench: what all scenario items and people's own tests of a session share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_approvals import extensions
from pytest_approvals.errors import TranscriptMismatch
from pytest_approvals.plugin.settings import read_settings
from pytest_approvals.scenario.catalogue import find_root, stock_folder
from pytest_approvals.scenario.model import Scenario, Variant

if TYPE_CHECKING:
    from pytest_approvals.agents.waivers import Waiver
    from pytest_approvals.journal.files import Journal
    from pytest_approvals.plugin.agents import AgentUnderTest
    from pytest_approvals.plugin.network_guard import SessionNetworkGuard
    from pytest_approvals.plugin.results import SessionResults
    from pytest_approvals.processes.agent_source import AgentFacts, AgentSource
    from pytest_approvals.reporting.judged_run import JudgedRun
    from pytest_approvals.runner.run import RecordedRun

_RECORDS = pytest.StashKey[list[dict[str, Any]]]()
_TEXTS = pytest.StashKey[list[str]]()


class AgentIdentity(Protocol):
    """What the report says of an agent: an `AgentSource` says it."""

    @property
    def name(self) -> str:
        """The agent as reports name it."""

    @property
    def facts(self) -> AgentFacts:
        """What is known of it."""


class ApprovalsSession:
    """
    What the runs of a session share.

    Errors:
        ApprovalsError: An option, or something that others bring, cannot be used.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        for kind in extensions.EXTENSION_KINDS:
            self._take_in(kind)
        self.settings = read_settings(config)

    def _take_in(self, kind: str) -> None:
        for given in getattr(self.config.hook, f"pytest_approvals_{kind}")(config=self.config):
            for name, what in given.items():
                extensions.register(kind, name, what)

    @property
    def travels(self) -> bool:
        """Whether what comes of a run goes to another process, as in the workers of pytest-xdist."""
        return hasattr(self.config, "workerinput")

    # --- what runs ---

    @cached_property
    def candidates(self) -> tuple[AgentUnderTest, ...]:
        """The agents that scenarios run on."""
        from pytest_approvals.checks import CHECKS
        from pytest_approvals.plugin.agents import resolve_agents
        from pytest_approvals.reporting.judged_run import load_extension_checks

        load_extension_checks()
        self.guard.guard_subprocesses()
        found, absent = resolve_agents(self.settings, CHECKS)
        self.results.absent = {name: str(error) for name, error in absent.items()}
        if absent and not found:
            raise next(iter(absent.values()))
        return found

    @cached_property
    def guard(self) -> SessionNetworkGuard:
        """What watches that nothing leaves for another machine."""
        from pytest_approvals.plugin.network_guard import SessionNetworkGuard, hosts_from_environment

        return SessionNetworkGuard([*self.settings.allowed_hosts, *hosts_from_environment()])

    @property
    def was_used(self) -> bool:
        """Whether anything was collected or run, or was to be."""
        return "results" in self.__dict__ or bool(self.chosen)

    @cached_property
    def results(self) -> SessionResults:
        """What came of the runs."""
        from pytest_approvals.plugin.results import SessionResults

        return SessionResults()

    def variants(self, scenario: Scenario, candidate: AgentUnderTest) -> tuple[Variant, ...]:
        """Gives the variants in which an agent runs a scenario; none where it does not apply."""
        from pytest_approvals.scenario.variants import missing_capabilities, plan_variants

        settings, facts = self.settings, candidate.source.facts
        upgrade = (candidate.local.spec.base, facts.version) if facts.version else None
        found = plan_variants(scenario, facts, strength=settings.strength, overrides=settings.pinned, upgrade=upgrade)
        if found:
            self.results.planned(scenario.id, candidate.name, found)
        elif missing := missing_capabilities(scenario, facts):
            self.results.not_applicable(scenario.id, candidate.name, missing)
        return found

    def writers(self, scenario: Scenario, candidate: AgentUnderTest) -> dict[str, Variant]:
        """Gives the variant that writes each transcript: the plainest one that runs by default."""
        from pytest_approvals.plugin.snapshot import transcript_name
        from pytest_approvals.scenario.variants import plan_variants

        first: dict[str, Variant] = {}
        for variant in plan_variants(scenario, candidate.source.facts):
            first.setdefault(transcript_name(candidate.name, scenario, variant), variant)
        return first

    @cached_property
    def chosen(self) -> frozenset[Path]:
        """The scenario files that `pytest-approvals run` chose; none where it does not run."""
        return frozenset(map(Path, self.config.getoption("approvals_chosen")))

    @cached_property
    def on_the_way(self) -> frozenset[Path]:
        """The chosen files and all folders above them: what pytest has to look into, and nothing beside it."""
        return self.chosen.union(*(file.parents for file in self.chosen))

    def prepare(self) -> None:
        """
        Makes the environments that the agents need, before workers start and while what is written can be seen. A
        failure shows when the agent is to be started.
        """
        if self.travels or not self.settings.agents:
            return
        from pytest_approvals.plugin.agents import build_environments

        build_environments(self.settings)

    def aim(self) -> None:
        """
        Points pytest to the scenarios, where nobody named files: to those that `pytest-approvals run` chose, else to
        the project's folders besides what pytest collects itself.
        """
        if self.config.args_source is pytest.Config.ArgsSource.ARGS:
            return
        if self.chosen:
            folders = (*self.settings.folders, stock_folder())
            self.config.args[:] = sorted({str(find_root(path, folders)) for path in self.chosen})
        else:
            self.config.args += [str(folder) for folder in self.settings.folders]

    # --- runs ---

    @contextmanager
    def journal(self, scenario: Scenario, source: AgentSource, variant: Variant) -> Iterator[Journal]:
        """Tells that a run begins, and gives the journal to record it in."""
        from pytest_approvals.journal.files import Journal

        hook = self.config.hook
        hook.pytest_approvals_run_begins(scenario=scenario, variant=variant, agent=source.name, config=self.config)
        path = None
        if self.settings.journals is not None:
            self.settings.journals.mkdir(parents=True, exist_ok=True)
            path = self.settings.journals / f"{_journal_file_name(scenario.id, source.name, variant.id)}.jsonl"
        yield Journal(path)

    def judge(
        self,
        item: pytest.Item,
        run: RecordedRun,
        source: AgentIdentity,
        *,
        waivers: Sequence[Waiver] = (),
        flavour: str = "",
        own: bool = False,
    ) -> JudgedRun:
        """
        Judges a run of an item, and keeps what came of it for the report.

        Arguments:
            own: It is a run of a person's own test.
        """
        from pytest_approvals.journal.events import Header
        from pytest_approvals.plugin.results import build_record
        from pytest_approvals.reporting.judged_run import judge_run
        from pytest_approvals.reporting.report import ReportedAgent
        from pytest_approvals.reporting.subject import Subject

        header = run.events[0]
        assert isinstance(header, Header)
        subject = Subject.of(header, f"pytest {item.nodeid}" if own else "", self.settings.rerun_words)
        result = judge_run(run.events, subject, flavour=flavour, waivers=waivers, strict=self.settings.strict)
        self.config.hook.pytest_approvals_run_ends(run=run, verdicts=result.verdicts, config=self.config)
        facts = source.facts
        about = ReportedAgent(
            agent=source.name, framework=facts.framework, version=facts.version, where=facts.where, issues=facts.issues
        )
        title = run.scenario.title
        record = build_record(
            result, about, title=title, own=own, travels=self.travels, keep=_is_base_variant(run.variant)
        )
        item.stash.setdefault(_RECORDS, []).append(record)
        item.stash.setdefault(_TEXTS, []).append(str(result.transcript))
        return result

    def note(self, item: pytest.Item, line: dict[str, Any]) -> None:
        """Adds a line of the report to the record of an item's latest run."""
        item.stash[_RECORDS][-1]["lines"].append(line)

    def annotate(
        self, item: pytest.Item, report: pytest.TestReport, error: pytest.ExceptionInfo[BaseException] | None
    ) -> None:
        """Puts what came of an item's runs on its report, and their transcripts on that of a failure."""
        records = item.stash.get(_RECORDS, [])
        vars(report)["approvals"] = list(records)
        vars(report)["approvals_told"] = error is not None and _is_told(error.value)
        records.clear()
        if report.failed:
            report.sections += [("approvals transcript", text) for text in item.stash.get(_TEXTS, [])]

    def take_in(self, report: pytest.TestReport) -> None:
        """Takes in what an item reported; a group whose last variant it was is judged."""
        from pytest_approvals.plugin.session_finish import judge_variant_group

        for record in getattr(report, "approvals", ()):
            group = self.results.add(record, report.nodeid.partition("::")[0])
            if self.results.is_complete(group):
                judge_variant_group(self, group)

    def flavour_of(self, agent: str) -> str:
        """Gives the flavour of one of the agents."""
        return next((one.local.spec.flavour for one in self.candidates if one.name == agent), "")

    # --- the end ---

    def finish(self, session: pytest.Session) -> None:
        """Judges what can only be judged at the end, and writes the report."""
        from pytest_approvals.plugin.session_finish import finish_session

        finish_session(self, session)

    def summarise(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the findings and the matrix, if anything ran."""
        from pytest_approvals.plugin.session_finish import print_summary

        print_summary(self, terminalreporter)

    def close(self) -> None:
        """Lets go of what others brought."""
        if "guard" in self.__dict__:
            self.guard.close()
        extensions.unregister_all()


def _is_base_variant(variant: Variant) -> bool:
    return (variant.serialize, variant.resume, variant.stream, variant.source) == ("none", "same", False, "held")


def _journal_file_name(*words: str) -> str:
    return re.sub(r"[^\w.=-]+", "-", "__".join(words))


def _is_told(error: BaseException) -> bool:
    """Return whether the error is one that this plugin prints itself."""
    # Imported on the first failure only: all checks come with it.
    from pytest_approvals.checks import CheckFailed

    return isinstance(error, (CheckFailed, TranscriptMismatch))

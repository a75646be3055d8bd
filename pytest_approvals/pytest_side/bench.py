"""The bench: what all scenario items and people's own tests of a session share."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_approvals import extensions
from pytest_approvals.catalogues import root_of, stock_folder
from pytest_approvals.pytest_side.settings import read_settings
from pytest_approvals.scenario.parts import Scenario, Variant

if TYPE_CHECKING:
    from pytest_approvals.pytest_side.candidates import Candidate
    from pytest_approvals.pytest_side.items import ScenarioItem
    from pytest_approvals.pytest_side.results import Results


class Bench:
    """
    What the runs of a session share.

    Errors:
        ApprovalsError: An option, or something that others bring, cannot be used.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        for kind in extensions.KINDS:
            self._take_in(kind)
        self.settings = read_settings(config)

    def _take_in(self, kind: str) -> None:
        for given in getattr(self.config.hook, f"pytest_approvals_{kind}")(config=self.config):
            for name, what in given.items():
                extensions.bring(kind, name, what)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The agents that scenarios run on."""
        from pytest_approvals.checks import CHECKS
        from pytest_approvals.pytest_side.candidates import candidates

        return candidates(self.settings, CHECKS)

    @cached_property
    def results(self) -> Results:
        """What came of the runs."""
        from pytest_approvals.pytest_side.results import Results

        return Results()

    def variants(self, scenario: Scenario, candidate: Candidate) -> tuple[Variant, ...]:
        """Gives the variants in which an agent runs a scenario; none where it does not apply."""
        from pytest_approvals.scenario.variants import missing_capabilities, variants

        settings, facts = self.settings, candidate.source.facts
        found = variants(scenario, facts, strength=settings.strength, overrides=settings.pinned)
        if found:
            self.results.planned(scenario.id, candidate.name, found)
        else:
            missing = missing_capabilities(scenario, facts)
            self.results.not_applicable(scenario.id, candidate.name, missing)
        return found

    def writers(self, scenario: Scenario, candidate: Candidate) -> tuple[Variant, ...]:
        """Gives the variants that write transcripts: for each oracle the plainest one that runs by default."""
        from pytest_approvals.scenario.variants import variants

        first: dict[str, Variant] = {}
        for variant in variants(scenario, candidate.source.facts):
            first.setdefault(variant.oracle, variant)
        return tuple(first.values())

    @cached_property
    def chosen(self) -> frozenset[Path]:
        """The scenario files that `pytest-approvals run` chose; none where it does not run."""
        return frozenset(map(Path, self.config.getoption("approvals_chosen")))

    def aim(self) -> None:
        """
        Points pytest to the scenarios, where nobody named files: to those that `pytest-approvals run` chose, else to
        the project's folders besides what pytest collects itself.
        """
        if self.config.args_source is pytest.Config.ArgsSource.ARGS:
            return
        if self.chosen:
            folders = (*self.settings.folders, stock_folder())
            self.config.args[:] = sorted({str(root_of(path, folders)) for path in self.chosen})
        else:
            self.config.args += [str(folder) for folder in self.settings.folders]

    def play(self, item: ScenarioItem, request: pytest.FixtureRequest) -> None:
        """
        Plays an item and judges it.

        Errors:
            CheckFailed: It broke a requirement, and no waiver covers that.
            TranscriptDiffers: It broke none, but does something else than before.
        """
        from pytest_approvals.pytest_side.playing import play

        play(self, item)

    def annotate(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Puts what came of an item's runs on its report."""

    def finish(self, session: pytest.Session) -> None:
        """Judges what can only be judged at the end."""

    def summarise(self, terminalreporter: Any) -> None:
        """Prints the summary."""

    def close(self) -> None:
        """Lets go of what others brought."""
        extensions.take_back()

"""Scenario files as pytest sees them: a file is a collector, an agent with a variant is an item."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_approvals.checks import CheckFailed
from pytest_approvals.errors import ApprovalsError, ScenarioError
from pytest_approvals.plugin.snapshot import (
    hide_from_other_extensions,
    is_transcript_stored,
    is_updating_snapshots,
    protocol_transcript_name,
    transcript_name,
)
from pytest_approvals.scenario.catalogue import find_root, stock_folder
from pytest_approvals.scenario.labels import list_occurrences
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.yaml_files import find_line

if TYPE_CHECKING:
    from pytest_approvals.plugin.agents import AgentUnderTest
    from pytest_approvals.plugin.session import ApprovalsSession


class ScenarioCollector(pytest.File):
    """A scenario file; its items are the agents that can play it, each in its variants."""

    def __init__(self, *, bench: ApprovalsSession, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bench = bench
        self.names: dict[str, set[str]] = {}

    @property
    def shown_path(self) -> str:
        """The path as people see it: relative to where pytest was started."""
        return display_path(self.path, self.config)

    def collect(self) -> Iterator[ScenarioItem]:
        """
        Gives the items.

        Errors:
            CollectError: The file has a mistake, or an agent cannot be used.
        """
        try:
            scenario = self.load()
            hide_from_other_extensions(self.config)
            for candidate in self.bench.candidates:
                found = self.bench.variants(scenario, candidate)
                writers = self.bench.writers(scenario, candidate)
                over = {
                    protocol_transcript_name(name, one) for name in writers for one in candidate.source.facts.protocols
                }
                self.names[candidate.name] = {*writers, *over}
                yield from self._items(scenario, candidate, found, dict(writers))
        except ApprovalsError as error:
            raise self.CollectError(str(error)) from None

    def _items(
        self, scenario: Scenario, candidate: AgentUnderTest, found: Iterable[Variant], writers: dict[str, Variant]
    ) -> Iterator[ScenarioItem]:
        for variant in found:
            item = self.item(scenario, candidate, variant)
            item.writes = writers.setdefault(item.transcript, variant) == variant
            yield item

    def load(self) -> Scenario:
        """
        Loads the scenario.

        Errors:
            ScenarioError: The file has a mistake.
        """
        try:
            return load_scenario(self.path, root=find_root(self.path, self.bench.settings.folders))
        except ScenarioError as error:
            raise ScenarioError(self.shown_path, error.line, error.what) from None

    def transcripts(self) -> dict[str, set[str]]:
        """Gives the names of the transcripts that the items of each agent use; see `snapshot.py`."""
        return self.names

    def item(self, scenario: Scenario, candidate: AgentUnderTest, variant: Variant) -> ScenarioItem:
        """Makes the item of one agent in one variant."""
        given = {"scenario": scenario, "candidate": candidate, "variant": variant}
        name = f"{candidate.name}[{variant.id}]"
        return ScenarioItem.from_parent(self, name=name, callobj=run_requesting_item, **given)


class ScenarioItem(pytest.Function):
    """
    One scenario on one agent in one variant.

    It is a pytest function, because syrupy's fixture asks for one.

    Attributes:
        writes: It is the one that writes the transcript.
    """

    def __init__(self, *, scenario: Scenario, candidate: AgentUnderTest, variant: Variant, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scenario = scenario
        self.candidate = candidate
        self.variant = variant
        self.writes = False
        facts = candidate.source.facts
        self.user_properties += [
            ("scenario", scenario.id),
            ("agent", candidate.name),
            ("version", facts.version or ""),
            ("variant", variant.id),
        ]

    @property
    def id(self) -> Any:
        """Its id as pytest reads it back from its cache, in which what stands in brackets is a part of its own."""
        own = super().id
        return type(own).parse(str(own))

    @property
    def file(self) -> ScenarioCollector:
        """The file that it was collected from."""
        assert isinstance(self.parent, ScenarioCollector)
        return self.parent

    @property
    def transcript(self) -> str:
        """The name of the transcript that it is compared with."""
        name = transcript_name(self.candidate.name, self.scenario, self.variant)
        own = protocol_transcript_name(name, self.variant.protocol)
        return own if is_transcript_stored(self, own) else name

    @property
    def compares(self) -> bool:
        """
        Whether its transcript is compared with a stored one: in the catalogue for the pinned releases alone, in a
        project for every agent that was not asked for in a release of its own. Oracles that take no part in a usual
        run have none, nor have states that other releases saved. `pytest-approvals run` compares what is stored, and
        does not ask for what is not.
        """
        spec = self.candidate.local.spec
        if self.file.bench.settings.fault or spec.version or spec.checkout or self.variant.saved_by:
            return False
        name = self.transcript
        if name not in self.file.names[self.candidate.name]:
            return False
        if self.config.getoption("approvals_chosen") and not (
            is_transcript_stored(self, name) or is_updating_snapshots(self.config)
        ):
            return False
        return self.candidate.has_transcripts or not self.path.is_relative_to(stock_folder())

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Says where it stands: at the title of its scenario."""
        return self.path, self.line_of_call(None) - 1, self.name

    def line_of_call(self, label: str | None) -> int:
        """Gives the line of a call in the model's script; that of the title where there is no such call."""
        scenario = self.scenario
        for one in list_occurrences(scenario) if label is not None else ():
            if one.label == label:
                return find_line(one.path, scenario.lines) or 1
        return find_line(("title",), scenario.lines) or 1

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Gives what is printed of a failure: the findings, and the line of the call concerned."""
        error = excinfo.value
        if isinstance(error, CheckFailed):
            label = error.findings[0].verdict.label if error.findings else None
            return f"{self.file.shown_path}:{self.line_of_call(label)}: {error}"
        if isinstance(error, ApprovalsError):
            return f"{self.file.shown_path}:{self.line_of_call(None)}: {error}"
        return super().repr_failure(excinfo)


def run_requesting_item(request: pytest.FixtureRequest) -> None:
    """Plays the scenario of the item that asks."""
    from pytest_approvals.plugin.item_runner import run_item

    item = request.node
    assert isinstance(item, ScenarioItem)
    run_item(item.file.bench, item)


def display_path(path: Path, config: pytest.Config) -> str:
    """Gives a path relative to where pytest was started, if it is below that."""
    here = config.invocation_params.dir
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)

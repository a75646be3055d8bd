"""What came of the runs of a session; under pytest-xdist the controller's gathers what its workers report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from pytest_approvals.scenario.parts import Variant


class Results:
    """
    The results of a session, in the order in which they came.

    Attributes:
        runs: What each item reported of each of its runs.
        plan: For each scenario and agent the variants that were collected.
        skipped: For each scenario and agent that it does not apply to, the capabilities that are missing.
    """

    def __init__(self) -> None:
        self.runs: list[Mapping[str, Any]] = []
        self.plan: dict[tuple[str, str], list[str]] = {}
        self.skipped: dict[tuple[str, str], list[str]] = {}

    def planned(self, scenario: str, agent: str, variants: Iterable[Variant]) -> None:
        """Notes the variants in which an agent runs a scenario."""
        self.plan[scenario, agent] = [variant.id for variant in variants]

    def not_applicable(self, scenario: str, agent: str, missing: Iterable[str]) -> None:
        """Notes that an agent cannot run a scenario."""
        self.skipped[scenario, agent] = sorted(missing)

    def add(self, report: pytest.TestReport) -> None:
        """Takes in what an item reported of its runs."""
        self.runs += getattr(report, "approvals", ())

    def for_controller(self) -> list[Any]:
        """Gives what a worker of pytest-xdist found out while collecting."""
        return [[list(table.items()) for table in (self.plan, self.skipped)]]

    def merge(self, output: list[Any]) -> None:
        """Takes in what a worker found out while collecting; all workers find the same."""
        plan, skipped = output[0]
        self.plan |= {tuple(key): list(value) for key, value in plan}
        self.skipped |= {tuple(key): list(value) for key, value in skipped}

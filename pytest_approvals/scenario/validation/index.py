"""A scenario as its validation looks at it: the calls by label, the steps and answers with their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_approvals.errors import suggest_name
from pytest_approvals.scenario.labels import CallOccurrence, list_occurrences
from pytest_approvals.scenario.model import Scenario, ScriptedDecision, StageStep, Step, TogetherStep, Tool, TurnStep
from pytest_approvals.yaml_files import Diagnostic, KeyPath, join_path


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioIndex:
    """
    One scenario, looked at.

    Attributes:
        calls: Every call that the scripts can make.
        by_label: One of them for each full label.
        attached: A person's own agent plays it, with tools that are not known here.
    """

    scenario: Scenario
    calls: tuple[CallOccurrence, ...]
    by_label: dict[str, CallOccurrence]
    attached: bool = False

    @classmethod
    def of(cls, scenario: Scenario, *, attached: bool = False) -> ScenarioIndex:
        """Looks at *scenario*."""
        calls = list_occurrences(scenario)
        return cls(scenario=scenario, calls=calls, by_label={one.label: one for one in calls}, attached=attached)

    def tool_path(self, tool: Tool) -> KeyPath:
        """Gives the place of a tool, which a file may call after its agent, too."""
        whole: KeyPath = ("tools", f"{tool.agent}/{tool.name}")
        return whole if join_path(whole) in self.scenario.lines else ("tools", tool.name)

    def steps(self) -> Iterator[tuple[Step, KeyPath]]:
        """Gives every step with its place, those that run at the same time after the step that holds them."""
        for k, step in enumerate(self.scenario.caller or ()):
            yield step, ("caller", k)
            if isinstance(step, TogetherStep):
                for j, inner in enumerate(step.steps):
                    yield inner, ("caller", k, "together", j)

    def answers(self) -> Iterator[tuple[ScriptedDecision, KeyPath]]:
        """Gives every answer of the caller's script with its place."""
        for step, path in self.steps():
            if isinstance(step, (TurnStep, StageStep)):
                key = "stage" if isinstance(step, StageStep) else "decide"
                for k, answer in enumerate(step.answers):
                    yield answer, (*path, key, k)

    def unknown_label(self, label: str, path: KeyPath, what: str) -> Iterator[Diagnostic]:
        """Gives the mistake of naming a call that no script makes."""
        if label not in self.by_label:
            yield Diagnostic(path, f"{what} {label!r}, a call that no script makes{suggest_name(label, self.by_label)}")

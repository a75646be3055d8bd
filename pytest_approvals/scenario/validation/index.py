"""Index of a scenario for its validation: calls by label, steps and decisions with their key paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_approvals.errors import suggest_name
from pytest_approvals.scenario.labels import CallOccurrence, list_inner_calls, list_occurrences
from pytest_approvals.scenario.model import Scenario, ScriptedDecision, StageStep, Step, TogetherStep, Tool, TurnStep
from pytest_approvals.yaml_files import Diagnostic, KeyPath, join_path


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioIndex:
    """A scenario with its calls.

    Attributes:
        calls: Every call that the scripts can make.
        by_label: One of them for each full label.
        attached: A user agent plays the scenario, with tools that are not known here.
    """

    scenario: Scenario
    calls: tuple[CallOccurrence, ...]
    by_label: dict[str, CallOccurrence]
    attached: bool = False

    @classmethod
    def of(cls, scenario: Scenario, *, attached: bool = False) -> ScenarioIndex:
        """Index *scenario*."""
        calls = list_occurrences(scenario)
        by_label = {occurrence.label: occurrence for occurrence in calls}
        if attached:
            # Which call runs an agent is not known here, so that its calls have no outer label.
            by_label |= {occurrence.label: occurrence for occurrence in list_inner_calls(scenario)} | by_label
        return cls(scenario=scenario, calls=calls, by_label=by_label, attached=attached)

    def tool_path(self, tool: Tool) -> KeyPath:
        """Return the path of a tool, whose key may be prefixed with its agent."""
        with_agent: KeyPath = ("tools", f"{tool.agent}/{tool.name}")
        return with_agent if join_path(with_agent) in self.scenario.lines else ("tools", tool.name)

    def steps(self) -> Iterator[tuple[Step, KeyPath]]:
        """Yield every step with its path; simultaneous ones follow the step that holds them."""
        for k, step in enumerate(self.scenario.caller or ()):
            yield step, ("caller", k)
            if isinstance(step, TogetherStep):
                for j, inner in enumerate(step.steps):
                    yield inner, ("caller", k, "together", j)

    def decisions(self) -> Iterator[tuple[ScriptedDecision, KeyPath]]:
        """Yield every decision of the caller's script with its path."""
        for step, path in self.steps():
            if isinstance(step, (TurnStep, StageStep)):
                key = "stage" if isinstance(step, StageStep) else "decide"
                for k, decision in enumerate(step.answers):
                    yield decision, (*path, key, k)

    def validate_label(self, label: str, path: KeyPath, subject: str) -> Iterator[Diagnostic]:
        """Yield a diagnostic if no script makes a call with that label."""
        known = label.rpartition("/")[2] if self.attached else label
        if known not in self.by_label:
            message = f"{subject} {label!r}, a call that no script makes{suggest_name(label, self.by_label)}"
            yield Diagnostic(path, message)

"""A scenario as its validation looks at it: the calls by label, the steps and answers with their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_approvals.errors import nearest
from pytest_approvals.scenario.labels import Occurrence, occurrences
from pytest_approvals.scenario.mistakes import Mistake, Path, dotted
from pytest_approvals.scenario.parts import Answer, Scenario, Stage, Step, Together, Tool, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """
    One scenario, looked at.

    Attributes:
        calls: Every call that the scripts can make.
        by_label: One of them for each full label.
        attached: A person's own agent plays it, with tools that are not known here.
    """

    scenario: Scenario
    calls: tuple[Occurrence, ...]
    by_label: dict[str, Occurrence]
    attached: bool = False

    @classmethod
    def of(cls, scenario: Scenario, *, attached: bool = False) -> View:
        """Looks at *scenario*."""
        calls = occurrences(scenario)
        return cls(scenario=scenario, calls=calls, by_label={one.label: one for one in calls}, attached=attached)

    def tool_path(self, tool: Tool) -> Path:
        """Gives the place of a tool, which a file may call after its agent, too."""
        whole: Path = ("tools", f"{tool.agent}/{tool.name}")
        return whole if dotted(whole) in self.scenario.lines else ("tools", tool.name)

    def steps(self) -> Iterator[tuple[Step, Path]]:
        """Gives every step with its place, those that run at the same time after the step that holds them."""
        for k, step in enumerate(self.scenario.caller or ()):
            yield step, ("caller", k)
            if isinstance(step, Together):
                for j, inner in enumerate(step.steps):
                    yield inner, ("caller", k, "together", j)

    def answers(self) -> Iterator[tuple[Answer, Path]]:
        """Gives every answer of the caller's script with its place."""
        for step, path in self.steps():
            if isinstance(step, (Turn, Stage)):
                key = "stage" if isinstance(step, Stage) else "decide"
                for k, answer in enumerate(step.answers):
                    yield answer, (*path, key, k)

    def unknown_label(self, label: str, path: Path, what: str) -> Iterator[Mistake]:
        """Gives the mistake of naming a call that no script makes."""
        if label not in self.by_label:
            yield Mistake(path, f"{what} {label!r}, a call that no script makes{nearest(label, self.by_label)}")

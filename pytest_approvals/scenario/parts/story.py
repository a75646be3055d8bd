"""The scenario itself: its parts together, and what guards its story."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.contract import Parameter
from pytest_approvals.agent_side.neutral import Limits

from .script import Script
from .steps import Stage, Step, Together, Turn
from .tools import Tool

PROMPT = "Go ahead."
"""The first message where a scenario says nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """
    Guards of the story, judged besides the checks.

    Attributes:
        runs: The labels of the calls that ran, in any order; None leaves it open.
        output: The last output; None leaves it open.
    """

    runs: tuple[str, ...] | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """
    One story.

    Attributes:
        id: `FAMILY/NAME`, from its path; kebab-case.
        about: Prose a maintainer can quote in a bug report.
        sources: Public issues that it stands for, `OWNER/REPO#NUMBER` or an address.
        requires: Capabilities that its content does not show by itself; `requirements.required` adds those that it
            shows.
        answer: The fields of the answer that the main agent has to end with; empty where it ends with text.
        agents: The scripts by agent name; `main` is always there.
        caller: None: send the prompt, let the oracle answer until the end.
        prompt: The first message, where *caller* is None.
        reaches: What must happen on the reference agent in every variant: `paused`, `approved`, `rejected`, `edited`,
            `refused`, `failed`, `finished`, `saved`, `asked_again`, ... and how often at least.
        only: Dimensions of the variants that are pinned to these values.
        vary: Dimensions that are varied though they are not by default: `resume`, `history`, `source`,
            `chunking`.
        oracles: The oracles of its variants, as the oracle dimension; empty where the story decides itself.
        held_back: Tools that the agent gets only from a restart with them on.
        servers: By MCP server how an agent connects to it, `http` or `stdio`; `http` where nothing is said.
        options: Options for the adapter's flavour.
        equal_arguments: Two calls of one tool may have equal arguments.
        fakes: The values made by Faker, and what stands for each of them in a snapshot.
        path, lines: Where it was loaded from; the lines of its keys (`tools.delete_file`), from 1.
    """

    id: str
    title: str
    about: str = ""
    sources: tuple[str, ...] = ()
    requires: frozenset[str] = frozenset()
    tools: tuple[Tool, ...] = ()
    answer: Mapping[str, Parameter] = field(default_factory=dict)
    agents: Mapping[str, Script] = field(default_factory=dict)
    caller: tuple[Step, ...] | None = None
    prompt: str = PROMPT
    reaches: Mapping[str, int] = field(default_factory=dict)
    expect: Expect = Expect()
    limits: Limits = Limits()
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    vary: frozenset[str] = frozenset()
    oracles: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()
    servers: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    equal_arguments: bool = False
    fakes: Mapping[str, str] = field(default_factory=dict)
    path: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """The folder part of the id."""
        return self.id.rpartition("/")[0]

    @property
    def decides_itself(self) -> bool:
        """Whether the caller's script holds decisions, so that no oracle is varied."""
        return any(_holds_answers(step) for step in self.caller or ())


def _holds_answers(step: Step) -> bool:
    if isinstance(step, Together):
        return any(_holds_answers(part) for part in step.steps)
    return isinstance(step, (Turn, Stage)) and bool(step.answers)

"""What the tests share that play a story twice: on an agent that the adapter builds, and on one that a person wrote.

The person's agent is written in the framework's public API, with the tools of the story as plain functions, and is
handed to `approvals.run` as the docs say. Both journals have to say the same, and the checks have to find the same.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import ndiff
from typing import Any

from pytest_approvals import Approvals
from pytest_approvals.agent_side.contract import MAIN, Condition, Parameter
from pytest_approvals.agent_side.contract.types import Limits, needs_approval
from pytest_approvals.agents.adapters import resolve_local_agent
from pytest_approvals.agents.sources import create_source
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.checks import Verdict, judge
from pytest_approvals.errors import RequirementWarning
from pytest_approvals.journal.events import (
    DecisionMade,
    Event,
    Header,
    StateRestored,
    StateSaved,
    StreamShown,
    ToolStart,
)
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.outcome import extract_outcome
from pytest_approvals.runner.event_loops import run_coroutine
from pytest_approvals.runner.probe_tools import format_result
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder
from pytest_approvals.scenario.model import (
    CancelStep,
    LeaveStep,
    LetOracleStep,
    RestoreStep,
    SaveStep,
    Scenario,
    Script,
    StageStep,
    Tool,
    ToolBehaviour,
    TurnStep,
    Variant,
    all_replies,
    all_steps,
    crash_places,
)
from pytest_approvals.scenario.variants import plan_variants
from tests.native_scripts import load

FEW = (
    "basics/approved",
    "decisions/edited-beside-rejected-and-approved",
    "failures/tool-raises",
    "parallel/gated-and-ungated-siblings",
    "state/late-decision-after-a-new-message",
    "state/three-turns-in-one-session",
    "streaming/parallel-requests-in-a-stream",
)
"""A cut of the stories."""

NEVER_ASKED = "the answer to what was never asked is an error of the person's test, and not handed over"
OWN_FAILURE = "the oracle does not answer again after a person's agent has failed by itself"
"""Why the two ways differ on purpose, in any framework."""

TIME_LIMIT = 10.0
"""Seconds for a run: some frameworks never return from a run that was cancelled."""


class ToolRaised(Exception):
    """What a person's tools fail with; named as the exception of built tools, because models are told the name."""


@dataclass(frozen=True)
class OwnTool:
    """A tool of the person's agent.

    Attributes:
        spec: The tool as the story has it.
        acts: What its body does, given the arguments.
    """

    spec: Tool
    acts: Callable[[Mapping[str, Any]], Any]

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.spec.name

    @property
    def is_gated(self) -> bool:
        """Whether every call needs approval."""
        return self.spec.approval == "always"

    @property
    def is_conditional(self) -> bool:
        """Whether some calls need approval."""
        return isinstance(self.spec.approval, Condition)

    def needs_approval(self, arguments: Any) -> bool:
        """Return whether a call needs approval."""
        return needs_approval(self.spec.approval, arguments)

    def write(self, keyword: str = "async def", first: str = "") -> Any:
        """Return the function that a person would have written, with names, types, defaults and a docstring.

        Args:
            keyword: `def` or `async def`.
            first: A parameter before those of the tool, such as the framework's context.
        """
        parameters = sorted(self.spec.parameters.items(), key=lambda item: not item[1].required)
        written = [first] * bool(first) + [_write_parameter(name, parameter) for name, parameter in parameters]
        values = ", ".join(f"{name!r}: {name}" for name, _ in parameters)
        source = (
            f"{keyword} {self.name}({', '.join(written)}) -> Any:\n"
            f"    {self.spec.description or f'Runs {self.name}.'!r}\n"
            f"    return acts({{{values}}})\n"
        )
        names: dict[str, Any] = {"__name__": __name__, "Any": Any, "acts": self.acts}
        exec(source, names)
        return names[self.name]


_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list[Any]",
    "object": "dict[str, Any]",
}


def _write_parameter(name: str, parameter: Parameter) -> str:
    if parameter.required:
        return f"{name}: {_TYPES[parameter.type]}"
    optional = " | None" if parameter.default is None else ""
    return f"{name}: {_TYPES[parameter.type]}{optional} = {parameter.default!r}"


@dataclass
class _Effects:
    """What the bodies of a story's tools do; a person's body knows its arguments, and not its call."""

    scenario: Scenario
    done: Counter[str] = field(default_factory=Counter)

    def make_tool(self, tool: Tool) -> OwnTool:
        """Return a tool of the story as a person has it."""

        def act(arguments: Mapping[str, Any]) -> Any:
            key = f"{tool.name} {_write(arguments)}"
            behaviours = self._find_behaviours(tool, arguments)
            behaviour = behaviours[min(self.done[key], len(behaviours) - 1)]
            self.done[key] += 1
            if behaviour.raises is not None:
                raise ToolRaised(behaviour.raises)
            return format_result(behaviour.returns, arguments)

        return OwnTool(tool, act)

    def _find_behaviours(self, tool: Tool, arguments: Mapping[str, Any]) -> Sequence[ToolBehaviour]:
        calls = (call for _, reply in all_replies(self.scenario) for call in reply.calls)
        labels = [call.label for call in calls if call.tool == tool.name and call.arguments == arguments]
        return next((tool.per_call[label] for label in labels if label in tool.per_call), tool.behaviours)


Build = Callable[[Any, Sequence[OwnTool]], Any]
"""What makes the person's agent of the framework's model and the tools of a story."""


def play_built(agent: str, scenario: Scenario, variant: Variant) -> list[str]:
    """Return what a run says on an agent that the adapter builds, in lines that are equal for equal runs."""
    source = create_source(resolve_local_agent(AgentSpec.parse(agent)))
    events = run_coroutine(run_scenario(scenario, variant, source, limit=RunLimits(seconds=TIME_LIMIT))).events
    return _describe(events, judge(read_history(events)))


def play_attached(
    approvals: Approvals,
    agent: str,
    scenario: Scenario,
    variant: Variant,
    build: Build,
    answers: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the same of a run on a person's agent, in a person's test."""
    effects = _Effects(scenario)
    tools = [effects.make_tool(tool) for tool in scenario.tools]
    with warnings.catch_warnings():
        # Judged on both sides, and compared.
        warnings.simplefilter("ignore", RequirementWarning)
        run = approvals.run(
            lambda model: build(model, tools),
            scenario.prompt,
            model=_read_model(scenario.agents[MAIN]),
            caller=scenario.caller,
            gated={tool.name: tool.approval for tool in scenario.tools if tool.approval != "never"},
            answers=answers,
            equal_arguments=scenario.equal_arguments,
            agent=agent,
            oracle=variant.oracle,
            serialize=variant.serialize,
            history=variant.history,
            stream=variant.stream,
            answer=variant.source,
            chunking=variant.chunking,
            checks="collect",
            time_limit=TIME_LIMIT,
        )
    # Judged as if an adapter had built the agent.
    events = [replace(event, attached=False) if isinstance(event, Header) else event for event in run.events]
    return _describe(events, judge(read_history(events)))


def _read_model(script: Script) -> Any:
    return {**script.by_prompt, "otherwise": script.replies} if script.by_prompt else script.replies


def _describe(events: Iterable[Event], verdicts: Iterable[Verdict]) -> list[str]:
    lines: list[str] = []
    for event in events:
        if isinstance(event, Header):
            lines += [f"tool {name}: {_write(_leave_out_screened(tool))}" for name, tool in sorted(event.tools.items())]
        if isinstance(event, StateSaved):
            lines.append(f"save {event.name} {event.mode} {event.error}")
        if isinstance(event, StateRestored):
            pending = [request.get("label") for request in event.pending]
            lines.append(f"restore {event.name} {event.mode} {pending} {event.present} {event.error}")
        if isinstance(event, StreamShown):
            lines.append(f"shown {event.turn} {event.what} {event.tool} {event.text}")
    lines += [_write(written) for _, written in extract_outcome(map(_leave_out_what_is_the_users, events))]
    passed = ("pass", "not-applicable")
    return lines + sorted(f"{verdict.check} {verdict.status}" for verdict in verdicts if verdict.status not in passed)


def _leave_out_screened(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out that a hook stands before the tool: it is the gate of the person's agent."""
    return {name: value for name, value in tool.items() if name != "screened"}


def _leave_out_what_is_the_users(event: Event) -> Event:
    """Leave out what only an attached agent has: values of its own, and answers in its own words."""
    if isinstance(event, ToolStart):
        return replace(event, real=None)
    return replace(event, own=None) if isinstance(event, DecisionMade) else event


def _write(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def load_for_both(name: str) -> Scenario:
    """Return a story of the catalogue.

    After a tool has failed, the caller leaves: the oracle does not approve again what failed in a person's own code.
    """
    scenario = load(name)
    raises = any(behaviour.raises for tool in scenario.tools for behaviour in tool.all_behaviours)
    if not raises or not scenario.caller or isinstance(scenario.caller[-1], LeaveStep):
        return scenario
    return replace(scenario, caller=(*scenario.caller, LeaveStep()))


def find_all() -> list[str]:
    """Return the stories of the catalogue that need nothing but one agent with tools, and messages and answers."""
    return [name for name in find_scenarios([stock_folder()]) if _is_plain(load(name))]


_STEPS = (TurnStep, LetOracleStep, LeaveStep, SaveStep, RestoreStep, CancelStep, StageStep)


def _is_plain(scenario: Scenario) -> bool:
    return (
        all(_is_plain_tool(tool) for tool in scenario.tools)
        and all(isinstance(step, _STEPS) for step in all_steps(scenario))
        and not (scenario.answer or scenario.options or scenario.held_back or "protocol" in scenario.only)
        # An attached agent is in the process of its test, which cannot be killed, nor have a disk of its own.
        and not crash_places(scenario)
        and not any(isinstance(step, TurnStep) and step.disk_full for step in all_steps(scenario))
        and scenario.limits == Limits()
    )


def _is_plain_tool(tool: Tool) -> bool:
    if tool.kind != "function" or tool.agent != MAIN or tool.runs or tool.hands_over_to or tool.called:
        return False
    approval = tool.approval
    if isinstance(approval, Condition) and (approval.answers or approval.raises or approval.waits_for):
        return False
    return not any(behaviour.waits_for or behaviour.asks_again for behaviour in tool.all_behaviours)


def plan(agent: str, scenario: Scenario) -> list[Variant]:
    """Return the plainest variant that the adapter plays, the plainest with a JSON state, and the plainest stream.

    What an attached agent cannot do is left out.
    """
    local = resolve_local_agent(AgentSpec.parse(agent))
    facts = create_source(local).facts
    kinds: dict[tuple[bool, bool], Variant] = {}
    for variant in plan_variants(scenario, facts):
        is_refused = variant.serialize in local.adapter.attached_missing
        if variant.protocol == "native" and variant.resume == "same" and not (variant.saved_by or is_refused):
            kinds.setdefault((variant.serialize == "json", variant.stream), variant)
    return list(kinds.values())[:3]


@dataclass(frozen=True)
class Comparison:
    """What came of playing stories both ways.

    Attributes:
        played: The stories that the adapter plays.
        differences: The lines that differ, `-` those of the built agent, by story and variant.
    """

    played: frozenset[str]
    differences: Mapping[str, list[str]]

    @property
    def differing(self) -> set[str]:
        """The stories that differ in any variant."""
        return {name.partition(" ")[0] for name in self.differences}


def compare(
    approvals: Approvals, agent: str, build: Build, names: Iterable[str], answers: Mapping[str, Any] | None = None
) -> Comparison:
    """Play stories both ways; *answers* is what the gate of the person's agent takes for decisions."""
    played: set[str] = set()
    differences: dict[str, list[str]] = {}
    for name in names:
        scenario = load_for_both(name)
        for variant in plan(agent, scenario):
            played.add(name)
            built = play_built(agent, scenario, variant)
            attached = play_attached(approvals, agent, scenario, variant, build, answers)
            if built != attached:
                lines = ndiff(built, attached)
                differences[f"{name} {variant.id}"] = [line for line in lines if line[:1] in "-+"]
    return Comparison(frozenset(played), differences)

"""The play: what all sides of one run share.

One scenario in one variant on one agent, with the journal that records it. The sides (world, caller, store) hold the
play and nothing of each other.

How an error is written into a journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.types import MAIN, Blueprint, Condition, Parameter, ToolSpec
from pytest_approvals.journal.events import Header
from pytest_approvals.journal.files import Journal
from pytest_approvals.runner.approval_requests import ApprovalRequests
from pytest_approvals.runner.probe_tools import ProbeTools, Signals
from pytest_approvals.runner.timeouts import Deadline
from pytest_approvals.scenario.model import Scenario, Tool, Variant

if TYPE_CHECKING:
    from pytest_approvals.processes.agent_source import AgentSource
    from pytest_approvals.runner.mcp.endpoints import ExecuteCall, RunMcpServers
    from pytest_approvals.runner.model_endpoint import ModelEndpoint


@dataclass(slots=True)
class RunCounters:
    """The numbers that the harness gives out in one run."""

    turn: int = 0
    model: int = 0
    execution: int = 0
    processes: list[int] = field(default_factory=list)

    def next_turn(self) -> int:
        """Gives the number of the next turn."""
        self.turn += 1
        return self.turn

    def next_model(self) -> int:
        """Gives the number of the next question to the model."""
        self.model += 1
        return self.model

    def next_execution(self) -> int:
        """Gives the number of the next execution of a tool."""
        self.execution += 1
        return self.execution

    def process(self, number: int | None) -> int | None:
        """Gives the number within this run of a process that the host numbers *number*; None for this process."""
        if number is None:
            return None
        if number not in self.processes:
            self.processes.append(number)
        return self.processes.index(number) + 1


@dataclass(slots=True, kw_only=True)
class RunLimits:
    """
    How far a run may go.

    Attributes:
        seconds: The time a run may take; past it, the run ends as `timeout`.
        model_calls: How often the model may be asked; past it, its script counts as exhausted. The oracle answers no
            more often, either, so that requests which come back under new names end, too.
        rounds: How often the oracle answers the same unmoved requests.
    """

    seconds: float = 30.0
    model_calls: int = 50
    rounds: int = 3


@dataclass(slots=True, kw_only=True)
class RunContext:
    """
    One run of a scenario.

    Attributes:
        header: The first event; recorded when the agent was built, because an attached agent brings its own tools.
        held_back: Tools that the agent has not got yet, or has no more.
        parameters: Those of tools that take others by now than the scenario declares.
        gated: The tools of a person's own agent that must wait, where the person says so.
        lenient: Record what a real provider would refuse, but answer it.
        connected: The MCP servers that its agents connect to; None where they connect to none.
        served: The model where it is reached over a protocol; None where the world itself is asked.
    """

    scenario: Scenario
    variant: Variant
    journal: Journal
    header: Header
    limit: RunLimits = field(default_factory=RunLimits)
    lenient: bool = False
    connected: RunMcpServers | None = None
    served: ModelEndpoint | None = None
    signals: Signals = field(default_factory=Signals)
    requests: ApprovalRequests = field(default_factory=ApprovalRequests)
    counters: RunCounters = field(default_factory=RunCounters)
    held_back: frozenset[str] = frozenset()
    parameters: dict[str, Mapping[str, Parameter]] = field(default_factory=dict)
    gated: frozenset[str] | None = None
    tools: ProbeTools = field(init=False)
    deadline: Deadline = field(init=False)

    def __post_init__(self) -> None:
        self.tools = ProbeTools(self.scenario.tools)
        self.deadline = Deadline(self.limit.seconds)
        self.held_back = frozenset(self.scenario.held_back)

    @property
    def wire_rules(self) -> str:
        """Whose rules the model inputs follow."""
        return self.header.wire_rules

    def begin(self, tools: tuple[ToolSpec, ...] = ()) -> None:
        """Records the header, once; *tools* are those that the agent turned out to have."""
        if not self.header.n:
            specs = tuple(map(self._as_wished, tools))
            self.header.tools |= {_tool_key(spec): _describe_tool(spec) for spec in specs if not self._is_known(spec)}
            self.journal.record(self.header)

    def reset(self) -> None:
        """Forgets all that happened, but the header."""
        self.journal.forget()
        self.signals, self.requests, self.counters = Signals(), ApprovalRequests(), RunCounters()

    def _as_wished(self, spec: ToolSpec) -> ToolSpec:
        """Gives a tool with the approval that the person wants for it, whatever the framework marks."""
        if self.gated is None or spec.agent != MAIN:
            return spec
        return replace(spec, approval="always" if spec.name in self.gated else "never")

    def _is_known(self, spec: ToolSpec) -> bool:
        """Says whether the scenario declares this tool as the agent has it; a person's own agent may bring others."""
        known = self.tools.seen(spec.agent, spec.name)
        return known is not None and known.approval == spec.approval

    def blueprint(self, directory: str, run: ExecuteCall) -> Blueprint:
        """
        Gives what the agent is built from now: the tools that it has at this point of the story.

        Arguments:
            run: Runs what its MCP servers are asked to run.
        """
        tools = tuple(self._spec(tool) for tool in self.scenario.tools if tool.key not in self.held_back)
        return Blueprint(
            tools=tools,
            servers=() if self.connected is None else self.connected.addresses(tools, run),
            answer=self.scenario.answer,
            limits=self.scenario.limits,
            serialize=self.variant.serialize,
            history=self.variant.history,
            directory=directory,
            options=self.scenario.options,
        )

    def _spec(self, tool: Tool) -> ToolSpec:
        """Gives a tool as it is at this point of the story."""
        return build_tool_spec(replace(tool, parameters=self.parameters.get(tool.key, tool.parameters)))


def describe_tool_parameters(tools: Mapping[str, Mapping[str, Parameter]]) -> dict[str, Any] | None:
    """Gives the parameters of tools as they stand in a journal; None where there are none."""
    return {key: _describe_parameters(parameters) for key, parameters in tools.items()} or None


def build_tool_spec(tool: Tool) -> ToolSpec:
    """Gives a scenario's tool as adapters see it: what it is, not what it does."""
    return ToolSpec(
        name=tool.visible_name,
        parameters=tool.parameters,
        description=tool.description or f"The tool {tool.name}.",
        approval=tool.approval,
        kind=tool.kind,
        server=tool.server,
        agent=tool.agent,
        runs=tool.runs,
        hands_over_to=tool.hands_over_to,
        asks_again=any(behaviour.asks_again for behaviour in list_behaviours(tool)),
    )


def list_behaviours(tool: Tool) -> tuple[Any, ...]:
    """Gives every behaviour that the tool may show."""
    return (*tool.behaviours, *(one for several in tool.per_call.values() for one in several))


def describe_tools(tools: Iterable[Tool]) -> dict[str, Any]:
    """Gives a scenario's tools as they stand in a journal's header."""
    return {
        tool.key: _describe_tool(build_tool_spec(tool)) | ({"called": tool.called} if tool.called else {})
        for tool in tools
    }


def _tool_key(spec: ToolSpec) -> str:
    return spec.name if spec.agent == MAIN else f"{spec.agent}/{spec.name}"


def _describe_parameters(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    return {
        name: {"type": one.type, "required": one.required} | ({} if one.required else {"default": one.default})
        for name, one in parameters.items()
    }


def _describe_tool(spec: ToolSpec) -> dict[str, Any]:
    parameters = _describe_parameters(spec.parameters)
    written: dict[str, Any] = {
        "approval": describe_approval(spec.approval),
        "parameters": parameters,
        "kind": spec.kind,
    }
    if spec.agent != MAIN:
        written["agent"] = spec.agent
    written |= {
        name: value for name in ("server", "runs", "hands_over_to") if (value := getattr(spec, name)) is not None
    }
    return written


def describe_approval(approval: str | Condition) -> str | dict[str, Any]:
    """Gives an approval as it stands in a journal: a word, or the fields of a condition that are set."""
    if isinstance(approval, str):
        return approval
    fields = ((name, getattr(approval, name)) for name in Condition.__slots__)
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields if value not in (None, ())
    }


def build_header(scenario: Scenario, variant: Variant, source: AgentSource, seed: int) -> Header:
    """Gives the header of a run's journal."""
    facts = source.facts
    expect: Mapping[str, Any] = {"runs": scenario.expect.runs, "output": scenario.expect.output}
    return Header(
        scenario=scenario.id,
        agent=source.name,
        framework=facts.framework,
        version=facts.version,
        where=facts.where,
        variant={name: getattr(variant, name) for name in variant.__slots__},
        tools=describe_tools(scenario.tools),
        answer=_describe_parameters(scenario.answer) or None,
        wire_rules=facts.wire_rules if variant.protocol == "native" else variant.protocol,
        capabilities=sorted(facts.capabilities),
        reaches=dict(scenario.reaches),
        expect={
            name: list(value) if isinstance(value, tuple) else value
            for name, value in expect.items()
            if value is not None
        },
        fakes=dict(scenario.fakes),
        limits=_describe_limits(scenario),
        seed=seed,
    )


def _describe_limits(scenario: Scenario) -> dict[str, int] | None:
    given = {"model_replies": scenario.limits.model_replies, "tool_calls": scenario.limits.tool_calls}
    return {name: most for name, most in given.items() if most is not None} or None


MAX_ERROR_LENGTH = 2000
"""Messages of errors are cut to this many characters."""


def describe_error(error: BaseException) -> list[str]:
    """Gives an error's type and message; one that crossed a process boundary keeps the type that it had there."""
    name = getattr(error, "original_type", None) or type(error).__name__
    return [name, str(error)[:MAX_ERROR_LENGTH]]

"""Run context: what all sides of one run share.

One scenario in one variant on one agent, with the journal that records it. The sides of a run (world, caller, saved
states) hold the context and nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_approvals.agent_side.contract.types import (
    MAIN,
    Approval,
    Blueprint,
    Condition,
    ModelAddress,
    Parameter,
    ToolSpec,
    needs_approval,
)
from pytest_approvals.journal.events import Header
from pytest_approvals.journal.files import Journal
from pytest_approvals.runner.approval_requests import ApprovalRequests
from pytest_approvals.runner.elicitations import Elicitations
from pytest_approvals.runner.journal_values import build_tool_spec, describe_tool, tool_key
from pytest_approvals.runner.probe_tools import ProbeTools, Signals
from pytest_approvals.runner.timeouts import Deadline
from pytest_approvals.scenario.model import (
    Scenario,
    Tool,
    Variant,
    all_replies,
    decide_by,
    loses_state,
    owns_processes,
    rolls_back,
)

if TYPE_CHECKING:
    from pytest_approvals.runner.mcp.servers import ExecuteCall, RunMcpServers
    from pytest_approvals.runner.model_endpoint import ModelEndpoint

Gate: TypeAlias = Literal["always", "never"] | Condition | Callable[[Mapping[str, Any]], bool]
"""Which calls of a tool need approval, as a user's test says it."""


@dataclass(slots=True)
class RunCounters:
    """Numbers that the harness assigns in one run."""

    turn: int = 0
    model: int = 0
    execution: int = 0
    processes: list[int] = field(default_factory=list)

    def next_turn(self) -> int:
        """Return the number of the next turn."""
        self.turn += 1
        return self.turn

    def next_model(self) -> int:
        """Return the number of the next model request."""
        self.model += 1
        return self.model

    def next_execution(self) -> int:
        """Return the number of the next tool execution."""
        self.execution += 1
        return self.execution

    def process_number(self, number: int | None) -> int | None:
        """Return the number within this run of the pool's process *number*; None for this process."""
        if number is None:
            return None
        if number not in self.processes:
            self.processes.append(number)
        return self.processes.index(number) + 1


@dataclass(slots=True, kw_only=True)
class RunErrors:
    """The exceptions of a user agent's run, as objects; the journal holds their types and messages.

    Attributes:
        tools: Those that left the bodies of the agent's own tools, with the name of the tool.
        turn: What the last turn failed with; None if it did not fail.
        broken: What ended the run; None if nothing did.
    """

    tools: list[tuple[str, BaseException]] = field(default_factory=list)
    turn: Exception | None = None
    broken: Exception | None = None


@dataclass(slots=True, kw_only=True)
class RunLimits:
    """How far a run may go.

    Attributes:
        seconds: The time a run may take; past it, the run ends as `timeout`.
        model_calls: How many requests the model answers, unless its scripts are long; past it, its script counts as
            exhausted. The oracle answers no more often, either, so that requests which come back under new names end,
            too.
        rounds: How often the oracle answers the same unmoved requests.
    """

    seconds: float = 30.0
    model_calls: int = 50
    rounds: int = 3


_MANY_REPLIES = 25


@dataclass(slots=True, kw_only=True)
class RunContext:
    """One run of a scenario.

    Attributes:
        header: The first event; recorded once the agent is built, because an attached agent brings its own tools.
        held_back: Keys of the tools that the agent does not have yet, or no longer has.
        parameters: Parameters of tools that differ by now from what the scenario declares.
        annotations: The same for what servers say about tools.
        names: New names of the agents that were renamed, by the names in the scenario.
        gates: The user agent's tools that need approval, and for which calls; None if its framework says so itself.
        answers: What a user's agent takes for a decision, by its verdict, in place of the framework's own format: a
            value, or a function of the decision that returns one.
        is_attached: It is a user's agent that plays the scenario.
        lenient: Record what a real provider would refuse, but answer it.
        mcp_servers: The MCP servers that its agents connect to; None if they connect to none.
        model_endpoint: Where the model is reached over a protocol; None if agents ask the world itself.
        errors: What was raised; of a user's agent only.
        cut_off: The executions that the end of the run has cut off.
        loses_state: An agent of the story may not have stored what it has done.
        owns_processes: Each agent of the story has a process of its own.
        rolls_back: The store of the story loses a turn, or is read as it was before the last one.
    """

    scenario: Scenario
    variant: Variant
    journal: Journal
    header: Header
    limit: RunLimits = field(default_factory=RunLimits)
    is_attached: bool = False
    lenient: bool = False
    mcp_servers: RunMcpServers | None = None
    model_endpoint: ModelEndpoint | None = None
    signals: Signals = field(default_factory=Signals)
    requests: ApprovalRequests = field(default_factory=ApprovalRequests)
    counters: RunCounters = field(default_factory=RunCounters)
    elicitations: Elicitations = field(default_factory=Elicitations)
    errors: RunErrors = field(default_factory=RunErrors)
    cut_off: set[int] = field(default_factory=set)
    held_back: frozenset[str] = frozenset()
    parameters: dict[str, Mapping[str, Parameter]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, Mapping[str, bool]] = field(default_factory=dict)
    gates: Mapping[str, Gate] | None = None
    answers: Mapping[str, Any] = field(default_factory=dict)
    tools: ProbeTools = field(init=False)
    deadline: Deadline = field(init=False)
    waited_for: tuple[str, ...] = ()
    loses_state: bool = field(init=False)
    owns_processes: bool = field(init=False)
    rolls_back: bool = field(init=False)
    _specs: list[ToolSpec] = field(init=False)
    _has_reasoning: bool = field(init=False)

    def __post_init__(self) -> None:
        self.tools = ProbeTools(self.scenario.tools)
        self.deadline = Deadline(self.limit.seconds, self._note_waits)
        self.held_back = frozenset(self.scenario.held_back)
        self.loses_state = loses_state(self.scenario)
        self.owns_processes = owns_processes(self.scenario)
        self.rolls_back = rolls_back(self.scenario)
        # A story builds several agents, all from the same tools unless it changes their parameters.
        self._specs = [build_tool_spec(tool) for tool in self.scenario.tools]
        self._has_reasoning = any(reply.has_reasoning for _, reply in all_replies(self.scenario))

    @property
    def most_model_calls(self) -> int:
        """How many requests the model answers: a story whose scripts are long may ask for each reply twice."""
        replies = sum(1 for _ in all_replies(self.scenario))
        return max(self.limit.model_calls, 2 * replies) if replies > _MANY_REPLIES else self.limit.model_calls

    @property
    def wire_rules(self) -> str:
        """Provider whose rules the model inputs follow."""
        return self.header.wire_rules

    @property
    def heirs(self) -> set[str]:
        """The agents to which tools hand the conversation over."""
        targets = (declared.get("hands_over_to") for declared in self.header.tools.values())
        return {target for target in targets if target}

    def record_header(
        self,
        tools: Sequence[ToolSpec] = (),
        earlier_turns: int | None = None,
        *,
        hidden: Sequence[ToolSpec] = (),
    ) -> None:
        """Record the header, once.

        Args:
            tools: The tools that the built agent has.
            earlier_turns: The earlier messages that it keeps.
            hidden: Its tools that only the test tells of; see `list_hidden_tools`.
        """
        if not self.header.n:
            self.header.earlier_turns = earlier_turns
            self.header.attached = self.is_attached
            specs = tuple(map(self._with_wanted_approval, tools))
            self.header.tools |= {tool_key(spec): describe_tool(spec) for spec in specs if not self._is_declared(spec)}
            self.header.tools |= {tool_key(spec): {**describe_tool(spec), "unlisted": True} for spec in hidden}
            self.journal.record(self.header)

    def record_turn_error(self, error: Exception | None) -> None:
        """Keep what a turn of a user's agent failed with; the exceptions of other runs would only take memory."""
        if self.is_attached:
            self.errors.turn = error

    @property
    def fails_in_tool(self) -> bool:
        """Whether what the last turn failed with left the body of one of the agent's own tools."""
        causes = list_causes(self.errors.turn) if self.errors.turn is not None else []
        return any(cause is error for cause in causes for _, error in self.errors.tools)

    @property
    def fails_by_itself(self) -> bool:
        """Whether the last turn of a user's agent failed, and nothing that the test scripts fails on purpose."""
        return self.errors.turn is not None and not fails_on_purpose(self.scenario)

    def _note_waits(self) -> None:
        self.waited_for = self.signals.list_waited_for()

    def reset(self) -> None:
        """Start over: drop all events except the header."""
        self.journal.forget()
        counters = self.counters
        # Without a turn and an execution nothing else was counted or asked, and new objects take time.
        if counters.turn or counters.execution or counters.processes:
            self.signals, self.requests, self.counters = Signals(), ApprovalRequests(), RunCounters()
            self.elicitations = Elicitations()
        else:
            counters.model = 0

    def _with_wanted_approval(self, spec: ToolSpec) -> ToolSpec:
        """Return a tool with the approval that the user wants for it instead of the one that the framework reports."""
        if self.gates is None:
            is_open = self.is_attached and spec.approval == "never" and spec.kind != "hosted_mcp"
            return replace(spec, approval=Condition()) if is_open else spec
        if spec.agent != MAIN and spec.name not in self.gates:
            return spec
        return replace(spec, approval=_describe_gate(self.gates.get(spec.name, "never")))

    def ask_gate(self, tool: str, arguments: Any) -> bool | None:
        """Return whether the test says that a call needs approval; None if it does not say so by a function."""
        gate = (self.gates or {}).get(tool)
        return bool(gate(arguments)) if callable(gate) and isinstance(arguments, Mapping) else None

    def needs_approval(self, tool: str, arguments: Any) -> bool:
        """Return whether a call of a user's agent needs approval by what the test says; True if it says nothing."""
        gate = (self.gates or {}).get(tool, "always")
        if isinstance(gate, (str, Condition)):
            return needs_approval(gate, arguments, 0)
        return not isinstance(arguments, Mapping) or bool(gate(arguments))

    def list_hidden_tools(self, specs: Sequence[ToolSpec]) -> list[ToolSpec]:
        """Return the gated tools of a user's agent that are not among *specs*, and that only the script tells of.

        Those of agents inside it are known when these run, and those of servers and of functions that give tools when
        the model is asked.
        """
        if not self.is_attached:
            return []
        gates = self.gates or {}
        known = {spec.name for spec in specs}
        called = {(agent, call.tool): None for agent, reply in all_replies(self.scenario) for call in reply.calls}
        return [
            ToolSpec(name=name, agent=agent, approval=_describe_gate(gates[name]))
            for agent, name in called
            if name in gates and name not in known
        ]

    def _is_declared(self, spec: ToolSpec) -> bool:
        """Return whether the scenario declares this tool as the agent has it; a user agent may bring others."""
        visible = [tool for tool in self.scenario.tools if tool.visible_name == spec.name]
        # Several servers may offer a tool of that name.
        own = [tool for tool in visible if tool.agent == spec.agent] or visible[:1]
        return any(tool.kind == spec.kind and (tool.approval == spec.approval or tool.by_annotations) for tool in own)

    def build_blueprint(self, directory: str, execute: ExecuteCall, *, model: ModelAddress | None = None) -> Blueprint:
        """Return what the agent is built from now, with the tools that it has at this point of the story.

        Args:
            directory: Folder of durable stores; empty if the variant has none.
            execute: Executes what its MCP servers are asked to execute.
            model: Where the model is reached over a protocol.
        """
        tools = tuple(
            self._describe_now(tool, spec)
            for tool, spec in zip(self.scenario.tools, self._specs, strict=True)
            if tool.key not in self.held_back
        )
        return Blueprint(
            tools=tools,
            servers=() if self.mcp_servers is None else self.mcp_servers.open_servers(tools, execute),
            answer=self.scenario.answer,
            limits=self.scenario.limits,
            serialize=self.variant.serialize,
            history=self.variant.history,
            directory=directory,
            model=model,
            options=self.scenario.options,
            names=dict(self.names),
            reasoning=self._has_reasoning,
        )

    def _describe_now(self, tool: Tool, spec: ToolSpec) -> ToolSpec:
        """Return a tool as an agent has it that is built now; what comes of its annotations is not told."""
        if tool.key in self.parameters:
            spec = replace(spec, parameters=self.parameters[tool.key])
        if not tool.by_annotations:
            return spec
        # Who connects to the server reads them there.
        annotations = None if self.mcp_servers is not None else self.annotations.get(tool.key, tool.annotations)
        return replace(spec, approval="always", by_annotations=True, annotations=annotations)

    def annotate(self, annotations: Mapping[str, Mapping[str, bool]]) -> None:
        """Let servers say this about tools from now on, by the keys of the tools."""
        self.annotations |= annotations
        if self.mcp_servers is not None:
            for tool in self.scenario.tools:
                if tool.key in annotations:
                    self.mcp_servers.annotate((tool.agent, tool.server, tool.visible_name), annotations[tool.key])

    def list_changed_approvals(self) -> dict[str, str] | None:
        """Return what the application decides by annotations that have changed, by tool; None if none have."""
        tools = [tool for tool in self.scenario.tools if tool.by_annotations and tool.key in self.annotations]
        return {tool.key: decide_by(self.annotations[tool.key]) for tool in tools} or None


def fails_on_purpose(scenario: Scenario) -> bool:
    """Return whether the script lets the model or a tool fail."""
    replies = [reply for _, reply in all_replies(scenario)]
    behaviours = [behaviour for tool in scenario.tools for behaviour in tool.behaviours]
    return any(reply.failure for reply in replies) or any(behaviour.raises for behaviour in behaviours)


def _describe_gate(gate: Gate) -> Approval:
    # The answers of a function are recorded per call.
    return Condition() if callable(gate) else gate


def list_causes(error: BaseException) -> list[BaseException]:
    """Return an error and what led to it, as a traceback shows them, from the last to the first."""
    causes: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in causes:
        causes.append(following)
        hidden = following.__suppress_context__
        following = following.__cause__ or (None if hidden else following.__context__)
    return causes

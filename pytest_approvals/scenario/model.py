"""Scenario data model: tools, model scripts, caller steps, scenarios and variants.

Plain frozen values. The loader builds them from YAML and the builders from Python; the runner plays them. Nothing here
knows a framework.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal

from pytest_approvals.agent_side.contract import ElicitationAnswer, Kind, Parameter, Verdict
from pytest_approvals.agent_side.contract.types import Approval, Limits, needs_approval_by_annotations
from pytest_approvals.scenario.vocabulary import AT_MODEL, AT_WRITE, STOPS_IN_CALLS, TURN_KEYS


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedElicitation:
    """A question that an MCP server asks the caller in the middle of an execution.

    Attributes:
        message: The question; `{parameter}` is replaced by that argument of the call.
        form: The fields that the caller fills in; they replace `{field}` in what the execution returns.
        url: The address to open, in place of a form.
    """

    message: str
    form: Mapping[str, Parameter] = field(default_factory=dict)
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBehaviour:
    """Effect of one execution of a tool: the first attribute that is set, in this order.

    Attributes:
        waits_for: Signal to wait for first: the name of a `signal` step, or `started LABEL` or `ended LABEL` of
            another call.
        asks_again: The tool asks for a second approval with this question; the execution ends there.
        elicits: The server asks the caller in the middle of the execution; what follows happens if that is accepted,
            and otherwise nothing but a result that says so.
        raises: The tool fails with this text.
        returns: Any JSON value; in text, `{parameter}` is replaced by that argument.
    """

    waits_for: str | None = None
    asks_again: str | None = None
    elicits: ScriptedElicitation | None = None
    raises: str | None = None
    returns: Any = "ok"


def build_behaviours(
    *,
    waits_for: str | None = None,
    asks_again: str | None = None,
    elicits: ScriptedElicitation | None = None,
    raises: str | None = None,
    returns: Any = "ok",
) -> tuple[ToolBehaviour, ...]:
    """Return the behaviours of a call that raises or returns.

    A call that asks again first has two: the question, and what follows the second approval.
    """
    waits = None if asks_again else waits_for
    then = ToolBehaviour(raises=raises, returns=returns, elicits=elicits, waits_for=waits)
    return (ToolBehaviour(waits_for=waits_for, asks_again=asks_again), then) if asks_again else (then,)


def parse_parameter(text: str) -> Parameter:
    """Return the parameter of a shorthand: the name of a type, with `?` if the model may omit it."""
    return Parameter(type=text.removesuffix("?"), required=not text.endswith("?"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool and its behaviour.

    Attributes:
        called: Name for model and agent if it differs from *name*: two servers may offer tools of the same name.
        runs: Agent that a call runs; that agent's script then says what the tool does.
        hands_over_to: Agent that a call hands the conversation over to; its replies follow in the same script and call
            its tools `AGENT/TOOL`.
        behaviours: The k-th execution of a call does the k-th; further executions repeat the last.
        per_call: Behaviours of single calls, by label, in place of *behaviours*.
        by_annotations: The application decides by its annotations whether a call needs approval; *approval* is what
            comes of that before the first restart.
        structured_only: Its MCP server sends an object as structured content, and not as text beside it.
        misfits_are_errors: Its MCP server answers arguments that do not fit with an error of the protocol.
        annotations: What its MCP server says about it, in the words of MCP: `readOnlyHint`, `destructiveHint`, ...
    """

    name: str
    called: str | None = None
    description: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    approval: Approval = "never"
    by_annotations: bool = False
    kind: Kind = "function"
    server: str | None = None
    agent: str = "main"
    runs: str | None = None
    hands_over_to: str | None = None
    behaviours: tuple[ToolBehaviour, ...] = (ToolBehaviour(),)
    per_call: Mapping[str, tuple[ToolBehaviour, ...]] = field(default_factory=dict)
    annotations: Mapping[str, bool] = field(default_factory=dict)
    structured_only: bool = False
    misfits_are_errors: bool = False

    @property
    def visible_name(self) -> str:
        """Name that model and agent know."""
        return self.called or self.name

    @property
    def all_behaviours(self) -> tuple[ToolBehaviour, ...]:
        """The behaviours of all calls."""
        return tuple(chain(self.behaviours, *self.per_call.values()))

    @property
    def key(self) -> str:
        """Name that is unique in the scenario: tools of other agents are prefixed with the agent."""
        return self.name if self.agent == "main" else f"{self.agent}/{self.name}"

    def behaviour_at(self, label: str | None, executed_before: int) -> ToolBehaviour:
        """Return what an execution of the call *label* does, after so many earlier executions of it."""
        behaviours = self.per_call.get(label or "") or self.behaviours
        return behaviours[min(executed_before, len(behaviours) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call in the model's script.

    Attributes:
        label: Name in scenario and reports: the id, or `c1#2` for the second use of an id; unique in the agent's
            script.
        id: Call id that the model gives; None for a call without an id.
        arguments: An object, or raw text that the model sends instead.
        thinks: The reasoning between the call before it and this one.
        repeats: The id was used before, on purpose.
        unknown_tool: The tool does not exist, on purpose.
        invalid: The arguments do not fit the declared parameters, on purpose.
    """

    label: str
    id: str | None
    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    thinks: str | None = None
    repeats: bool = False
    unknown_tool: bool = False
    invalid: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedFailure:
    """A failure of the model.

    With *after_chunks*, a streamed reply breaks after that many pieces; a reply that is not streamed fails as a whole.

    Attributes:
        status: 429, 500, 503, 529, or 0 for a failure without a status.
        how: A name in `BREAKS`: what happens without a status, or how the stream breaks.
        retry_after: Seconds until the provider asks to be called again.
    """

    status: int = 500
    after_chunks: int | None = None
    how: str = "disconnect"
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """One reply in the model's script: text, calls, a structured answer, or a failure.

    A failure may also break a reply in the middle of its text and calls.

    Attributes:
        thinks: The reasoning before the text and the calls.
        redacted: The provider shows nothing of the reply's reasoning but its encrypted form.
        invalid: The answer does not fit the requested fields, on purpose.
        takes: Seconds until the first piece.
    """

    thinks: str | None = None
    redacted: bool = False
    say: str | None = None
    calls: tuple[Call, ...] = ()
    answer: Mapping[str, Any] | None = None
    invalid: bool = False
    failure: ScriptedFailure | None = None
    takes: float = 0.0

    @property
    def has_reasoning(self) -> bool:
        """Whether the model reasons in this reply."""
        return self.thinks is not None or any(call.thinks is not None for call in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Replies of one agent's model.

    Every conversation plays its script from the start: the replies under its first user message in *by_prompt*, else
    *replies*.
    """

    replies: tuple[ScriptedReply, ...] = ()
    by_prompt: Mapping[str, tuple[ScriptedReply, ...]] = field(default_factory=dict)

    @property
    def all_replies(self) -> tuple[ScriptedReply, ...]:
        """The replies to all first messages."""
        return (*self.replies, *chain.from_iterable(self.by_prompt.values()))


AnswerSource = Literal["held", "restored", "rebuilt"]
"""Copy of a request that a decision is made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedDecision:
    """One decision in the caller's script.

    Attributes:
        label: The call; None for a decision about nothing that was asked.
        unknown_id: In place of a label: a request id that the framework never gave.
        malformed_address: *address* is submitted in place of label and request id.
        address: The value to submit verbatim as the request.
        shows: Arguments in the submitted request that replace the real ones: a tampered copy. With *unknown_id*, the
            arguments of a forged request.
        shows_tool: The tool in the submitted request, like *shows*.
        source: Copy of the request that the decision is made from; None leaves it to the variant.
        unknown_tool: The tool of an edit does not exist, on purpose.
        invalid: The arguments of an edit do not fit the declared parameters, on purpose.
    """

    label: str | None = None
    verdict: Verdict = "approve"
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None
    tool: str | None = None
    raw: Any = None
    unknown_id: str | None = None
    malformed_address: bool = False
    address: Any = None
    shows: Mapping[str, Any] | None = None
    shows_tool: str | None = None
    source: AnswerSource | None = None
    unknown_tool: bool = False
    invalid: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStep:
    """The caller submits text, decisions, both, or neither: then the agent resumes without either.

    Attributes:
        hangs_up: Point at which the caller disconnects, so that the turn is cancelled while it runs: `started LABEL`
            of a call, or `model` for the first model request of the turn.
        crashes: Point at which the process of the agent is killed while the turn runs: `before LABEL`, `started LABEL`,
            `ended LABEL` or `write LABEL` of a call, `model`, `shown`, `write` or `outcome`.
        stops: Point at which the process of the agent is stopped while the turn runs, over the turns that follow in a
            `TogetherStep`: `before LABEL`, `started LABEL` or `ended LABEL` of a call, or `model`.
        disk_full: Point from which on nothing can be stored until the turn has ended: `write`, or `write LABEL` of a
            call.
        elicitations: What the caller answers, from this turn on, to what servers ask in the middle of calls, by label.
        fails_once: Point from which on nothing can be stored until the turn comes to its next call or model request:
            `write`, or `write LABEL` of a call.
        loses: What is lost when the turn has ended: `write`, all that it has stored.
        reads: What the turn begins with: `stale`, the state as it was stored before the last turn.
    """

    text: str | None = None
    answers: tuple[ScriptedDecision, ...] = ()
    session: str = ""
    hangs_up: str | None = None
    crashes: str | None = None
    stops: str | None = None
    disk_full: str | None = None
    elicitations: Mapping[str, ElicitationAnswer] = field(default_factory=dict)
    fails_once: str | None = None
    loses: Literal["write"] | None = None
    reads: Literal["stale"] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing happens to the turn, its agent or its store besides."""
        return all(getattr(self, key) is None for key in TURN_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetOracleStep:
    """The oracle answers pending requests until none is left, or for *rounds* rounds."""

    rounds: int | None = None
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStep:
    """Decisions are put into the state; nothing runs yet."""

    answers: tuple[ScriptedDecision, ...]
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveStep:
    """The state is saved under a name for a later rewind."""

    name: str
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreStep:
    """The state that was saved under the name is restored."""

    name: str
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartStep:
    """The agent is rebuilt from the saved state.

    Attributes:
        fresh: In a fresh process.
        without: Tools that are missing from now on.
        with_tools: Tools that were held back and are present from now on.
        parameters: New parameters of some tools.
        renamed: New names of some agents, by the names that they have here.
        annotations: What servers say about some tools from now on.
    """

    fresh: bool = False
    without: tuple[str, ...] = ()
    with_tools: tuple[str, ...] = ()
    parameters: Mapping[str, Mapping[str, Parameter]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    session: str = ""
    annotations: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelStep:
    """Pending requests are cancelled."""

    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimStep:
    """The framework's own history trimming keeps the last *keep* messages."""

    keep: int
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteStep:
    """Somebody tampers with the saved text: it says *new* in place of *old*.

    Attributes:
        where: In every place, only in those that say what a person is shown, or in all others.
    """

    old: str
    new: str
    where: Literal["every", "shown", "hidden"] = "every"
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalStep:
    """A signal for the tools and conditions that wait for it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherStep:
    """Turns that run at the same time.

    Each turn begins when the previous one waits in a tool or has ended, so the order is the same in every run. Turns
    of one session run on two copies of its state if the state is saved between turns, else on one live object. A turn
    whose process is stopped goes on when all others have ended, or wait for it.
    """

    steps: tuple[TurnStep | SignalStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveStep:
    """The caller leaves with requests unanswered; without this step the oracle answers until the end."""


Step = (
    TurnStep
    | LetOracleStep
    | StageStep
    | SaveStep
    | RestoreStep
    | RestartStep
    | CancelStep
    | TrimStep
    | RewriteStep
    | SignalStep
    | TogetherStep
    | LeaveStep
)


BY_ANNOTATIONS = "by_annotations"
"""The approval of a tool for which the application reads what its server says about it."""


def decide_by(annotations: Mapping[str, bool]) -> Literal["always", "never"]:
    """Return what the application decides by the annotations of a tool."""
    return "always" if needs_approval_by_annotations(annotations) else "never"


DEFAULT_PROMPT = "Go ahead."
"""First message of a scenario without a caller and without a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """Expected outcome of a scenario, judged in addition to the checks.

    Attributes:
        runs: Labels of the executed calls, in any order; None leaves it open.
        output: The last output; None leaves it open.
    """

    runs: tuple[str, ...] | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario: agents, their tools and model scripts, and what the caller does.

    Attributes:
        id: `FAMILY/NAME` in kebab-case, from the path.
        about: Prose that a maintainer can quote in a bug report.
        sources: Public issues that the scenario models, `OWNER/REPO#NUMBER` or a URL.
        requires: Capabilities that the content does not imply; `required_capabilities` adds the implied ones.
        answer: Fields of the structured answer that the main agent ends with; empty if it ends with text.
        agents: Scripts by agent name; `main` is always present.
        caller: None: send the prompt and let the oracle answer until the end.
        prompt: First message if *caller* is None.
        reaches: Minimum counts of what must happen on the reference agent in every variant: `paused`, `approved`,
            `rejected`, `edited`, `refused`, `failed`, `finished`, `saved`, `asked_again`, ...
        only: Dimensions of the variants that are pinned to these values.
        vary: Dimensions to vary that are fixed by default: `resume`, `history`, `source`, `chunking`, `protocol`.
        oracles: Values of the oracle dimension; empty if the scenario decides itself.
        held_back: Tools that the agent gets only after a restart.
        servers: Transport of each MCP server, `http` (the default) or `stdio`.
        options: Options of the adapter's flavour.
        equal_arguments: Two calls of a tool may have equal arguments.
        fakes: Values from Faker, with their placeholders in snapshots.
        path, lines: File that the scenario was loaded from; lines of its keys (`tools.delete_file`), from 1.
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
    prompt: str = DEFAULT_PROMPT
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
        """Folder part of the id."""
        return self.id.rpartition("/")[0]

    @property
    def has_decisions(self) -> bool:
        """Whether the caller's script holds decisions, so no oracle is varied."""
        return any(_has_decisions(step) for step in self.caller or ())


def _has_decisions(step: Step) -> bool:
    if isinstance(step, TogetherStep):
        return any(_has_decisions(part) for part in step.steps)
    return isinstance(step, (TurnStep, StageStep)) and bool(step.answers)


def all_steps(scenario: Scenario) -> list[Step]:
    """Return all steps of the caller; simultaneous ones follow the step that holds them."""
    return [
        inner
        for step in scenario.caller or ()
        for inner in ([step, *step.steps] if isinstance(step, TogetherStep) else [step])
    ]


def all_decisions(scenario: Scenario) -> Iterator[ScriptedDecision]:
    """Yield the decisions in the caller's script."""
    for step in all_steps(scenario):
        if isinstance(step, (TurnStep, StageStep)):
            yield from step.answers


def session_names(scenario: Scenario) -> frozenset[str]:
    """Return the names of the sessions in the caller's steps; an empty name for steps that name none."""
    return frozenset(getattr(step, "session", "") for step in all_steps(scenario) if hasattr(step, "session"))


def crash_places(scenario: Scenario) -> list[str]:
    """Return the points at which the caller's steps kill the agent's process."""
    return [step.crashes for step in all_steps(scenario) if isinstance(step, TurnStep) and step.crashes is not None]


def owns_processes(scenario: Scenario) -> bool:
    """Return whether each agent of a scenario has a process of its own: one is killed, stopped, or its store fails."""
    turns = [step for step in all_steps(scenario) if isinstance(step, TurnStep)]
    return any(not replace(turn, hangs_up=None).is_plain for turn in turns)


def fails_to_store(scenario: Scenario) -> bool:
    """Return whether a write to a store of the agent fails, or is cut off."""
    turns = [step for step in all_steps(scenario) if isinstance(step, TurnStep)]
    return any(turn.disk_full or turn.fails_once or is_cut_write(turn.crashes or "") for turn in turns)


def plain_turn(turn: TurnStep) -> TurnStep:
    """Return a turn to which nothing happens besides, with the same text and answers."""
    return TurnStep(text=turn.text, answers=turn.answers, session=turn.session)


def rolls_back(scenario: Scenario) -> bool:
    """Return whether the store of a scenario's agent loses a turn, or is read as it was before the last one."""
    turns = [step for step in all_steps(scenario) if isinstance(step, TurnStep)]
    return any(turn.loses or turn.reads for turn in turns)


def loses_state(scenario: Scenario) -> bool:
    """Return whether an agent of a scenario may not have stored what it has done, or may have lost it since."""
    return bool(crash_places(scenario)) or fails_to_store(scenario) or rolls_back(scenario)


def can_stop_at(place: str) -> bool:
    """Return whether a process can be stopped at a point at which it can be killed."""
    return place == AT_MODEL or place.partition(" ")[0] in STOPS_IN_CALLS


def is_cut_write(place: str) -> bool:
    """Return whether a point of a crash is in the middle of a write to a store."""
    return place.partition(" ")[0] == AT_WRITE


def all_replies(scenario: Scenario) -> list[tuple[str, ScriptedReply]]:
    """Return all replies of all scripts, each with its agent."""
    return [(agent, reply) for agent, script in scenario.agents.items() for reply in script.all_replies]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One point of a scenario's matrix.

    Attributes:
        serialize: `none`, `copy`, `json` or `native.NAME`.
        resume: `same` process, a `fresh` one forked from a preloaded interpreter, or a `cold` one.
        history: `whole` or `append`.
        source: Copy of a request that decisions are made from.
        oracle: Oracle for requests that the scenario leaves open; `script` if the scenario decides itself (what
            remains is then approved).
        chunking: How a streamed reply is split: `whole`, `tokens`, `ids_first`, `split`, `interleaved`, `empty`,
            `repeated_ids`, `late_ids`, `blank_ids`, `changing_ids`.
        protocol: How the model is reached: `native`, the agent's usual way, or over the protocol `chat`, `responses`
            or `messages` with the framework's own client.
        saved_by: Older release whose saved state is restored after the first turn; see `stored_states`.
    """

    serialize: str = "none"
    resume: Literal["same", "fresh", "cold"] = "same"
    history: Literal["whole", "append"] = "whole"
    stream: bool = False
    source: AnswerSource = "held"
    oracle: str = "script"
    chunking: str = "whole"
    protocol: str = "native"
    saved_by: str = ""

    @property
    def id(self) -> str:
        """Name in the brackets of a test id.

        Serialize mode and answer source always, other dimensions if they differ from the base variant.

        >>> Variant(serialize="json", stream=True, source="restored").id
        'json-stream-restored'
        """
        resumed = [word for word, base in ((self.resume, "same"), (self.history, "whole")) if word != base]
        streamed = (["stream"] if self.stream else []) + ([self.chunking] if self.chunking != "whole" else [])
        rest = [word for word, base in ((self.oracle, "script"), (self.protocol, "native")) if word != base]
        words = [self.serialize, *resumed, *streamed, self.source, *rest]
        upgraded = [f"from-{self.saved_by}"] if self.saved_by else []
        return "-".join([*(word.replace("_", "-") for word in words), *upgraded])

"""The tools of a scenario and what they do.

The model's script.

The steps of the caller's script.

The scenario itself: its parts together, and what guards its story.

One point of a scenario's matrix.

The parts of a scenario.

Plain frozen values. The loader makes them from YAML, the builders from Python; the harness plays them. Nothing here
knows a framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from pytest_approvals.agent_side.contract import Kind, Parameter, Verdict
from pytest_approvals.agent_side.contract.types import Approval, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBehaviour:
    """
    What one execution of a tool does; the first of these that is set happens, in this order.

    Attributes:
        waits_for: A signal that must be given first: a name that a `signal` step gives, `started LABEL` or `ended
            LABEL` of another call.
        asks_again: The tool asks for a second approval with this question; the execution ends there.
        raises: The tool fails with this text.
        returns: Any JSON value; in text, `{parameter}` stands for that argument.
    """

    waits_for: str | None = None
    asks_again: str | None = None
    raises: str | None = None
    returns: Any = "ok"


def build_behaviours(
    *, waits_for: str | None = None, asks_again: str | None = None, raises: str | None = None, returns: Any = "ok"
) -> tuple[ToolBehaviour, ...]:
    """
    Gives what one call does that raises or returns: one behaviour, or two where it asks again before that, the question
    and what follows.
    """
    then = ToolBehaviour(raises=raises, returns=returns, waits_for=None if asks_again else waits_for)
    return (ToolBehaviour(waits_for=waits_for, asks_again=asks_again), then) if asks_again else (then,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """
    One tool and what it does.

    Attributes:
        behaviours: What its executions do: the k-th execution of one call does the k-th, the last one for ever.
        per_call: Behaviours of single calls, by label, instead.
        runs: The agent that a call runs; its behaviour is then that agent's.
        hands_over_to: The agent that a call hands the conversation over to; what that agent's model replies stands in
            the same script, and calls its tools `AGENT/TOOL`.
        called: What model and agent call the tool, where that differs from its name here: two servers may offer tools
            of one name.
    """

    name: str
    called: str | None = None
    description: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    approval: Approval = "never"
    kind: Kind = "function"
    server: str | None = None
    agent: str = "main"
    runs: str | None = None
    hands_over_to: str | None = None
    behaviours: tuple[ToolBehaviour, ...] = (ToolBehaviour(),)
    per_call: Mapping[str, tuple[ToolBehaviour, ...]] = field(default_factory=dict)

    @property
    def visible_name(self) -> str:
        """The name that model and agent know."""
        return self.called or self.name

    @property
    def key(self) -> str:
        """The name that is unique in the scenario: that of another agent's tool begins with the agent."""
        return self.name if self.agent == "main" else f"{self.agent}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    One call in the model's script.

    Attributes:
        label: What scenario and reports call it: its id, `c1#2` for the second use of an id; unique in its agent's
            script.
        id: The call id that the model gives; None where it gives none.
        arguments: An object, or raw text where the model sends something else.
        repeats: The id was used before, on purpose.
        unknown_tool: The tool does not exist, on purpose.
        invalid: The arguments do not fit the declared parameters, on purpose.
    """

    label: str
    id: str | None
    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    repeats: bool = False
    unknown_tool: bool = False
    invalid: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedFailure:
    """
    The model fails instead of answering.

    With *after_chunks*, a streamed reply breaks after so many pieces; a reply that is not streamed fails as a whole.

    Attributes:
        status: 429, 500, 503, 529, or 0 where there is no status.
        how: A name in `failures.BREAKS`: what happens, where there is no status or a stream breaks.
        retry_after: The seconds after which the provider wants to be asked again.
    """

    status: int = 500
    after_chunks: int | None = None
    how: str = "disconnect"
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """
    One reply in the model's script: text, calls, a structured answer, or a failure (which may come in the middle of
    text and calls).

    Attributes:
        invalid: The answer does not fit what is asked for, on purpose.
        takes: The seconds that pass before its first piece comes.
    """

    say: str | None = None
    calls: tuple[Call, ...] = ()
    answer: Mapping[str, Any] | None = None
    invalid: bool = False
    failure: ScriptedFailure | None = None
    takes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """
    What one agent's model replies.

    Every conversation plays its own script from the start. *by_prompt* holds the replies of conversations that begin
    with that user message; all others play *replies*.
    """

    replies: tuple[ScriptedReply, ...] = ()
    by_prompt: Mapping[str, tuple[ScriptedReply, ...]] = field(default_factory=dict)

    @property
    def all_replies(self) -> tuple[ScriptedReply, ...]:
        """The replies to whatever a conversation begins with."""
        return (*self.replies, *chain.from_iterable(self.by_prompt.values()))


AnswerSource = Literal["held", "restored", "rebuilt"]
"""Which copy of a request a decision is made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedDecision:
    """
    One decision in the caller's script.

    Attributes:
        label: The call that it is about; None for a decision about nothing that was asked.
        unknown_id: In place of a label: a request id that the framework never gave.
        address: In place of both, where *malformed_address*: this value, verbatim.
        shows: The request that is handed over says these arguments in place of the real ones: a tampered copy. With
            *unknown_id*, the arguments of a request that is forged from nothing.
        shows_tool: Likewise, the tool.
        source: Which copy of the request the answer is made from; None leaves it to the variant.
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
    """
    The caller hands in text and answers, either or none of them: with none, it goes on without an answer.

    Attributes:
        hangs_up: Where the caller hangs up, so that the turn is cancelled while it runs: `started LABEL` of a call, or
            `model` for the first question to a model in the turn.
    """

    text: str | None = None
    answers: tuple[ScriptedDecision, ...] = ()
    session: str = ""
    hangs_up: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetOracleStep:
    """The oracle answers what is pending, until nothing is or *rounds* are over."""

    rounds: int | None = None
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStep:
    """Decisions go into the state, nothing runs yet."""

    answers: tuple[ScriptedDecision, ...]
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveStep:
    """The state is saved under a name, to be rewound to."""

    name: str
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreStep:
    """The state saved under that name is taken up again."""

    name: str
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartStep:
    """
    The agent is built anew from the saved state; in a *fresh* process, or with some tools missing (*without*), more of
    them (*with_tools*, held back so far), or other *parameters* of some.
    """

    fresh: bool = False
    without: tuple[str, ...] = ()
    with_tools: tuple[str, ...] = ()
    parameters: Mapping[str, Mapping[str, Parameter]] = field(default_factory=dict)
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelStep:
    """What is pending is given up."""

    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimStep:
    """The framework's own history trimming keeps the last *keep* messages."""

    keep: int
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteStep:
    """
    Somebody changes the text of what was saved: it says *new* where it said *old*, in every place, in those alone that
    say what a person is shown, or in all others.
    """

    old: str
    new: str
    where: Literal["every", "shown", "hidden"] = "every"
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalStep:
    """A signal is given, for the tools and conditions that wait for it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherStep:
    """
    These turns run at the same time.

    Each turn after the first begins when the one before it waits in a tool or has ended, so that the order is the same
    in every run. Turns of one session run on two copies of its state where the state is saved between turns, on one
    live object where it is not.
    """

    steps: tuple[TurnStep | SignalStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveStep:
    """The caller leaves: nobody answers what is pending now. Without it, the oracle answers until the end."""


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


DEFAULT_PROMPT = "Go ahead."
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
        """The folder part of the id."""
        return self.id.rpartition("/")[0]

    @property
    def decides_itself(self) -> bool:
        """Whether the caller's script holds decisions, so that no oracle is varied."""
        return any(_has_decisions(step) for step in self.caller or ())


def _has_decisions(step: Step) -> bool:
    if isinstance(step, TogetherStep):
        return any(_has_decisions(part) for part in step.steps)
    return isinstance(step, (TurnStep, StageStep)) and bool(step.answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """
    One point of a scenario's matrix.

    Attributes:
        serialize: `none`, `copy`, `json` or `native.NAME`.
        resume: `same` process, a `fresh` one forked from a warm interpreter, or a `cold` one.
        history: `whole` or `append`.
        source: Which copy of a request decisions are made from.
        oracle: Who decides what the story leaves open; `script` where the story decides itself (what remains is then
            approved).
        chunking: How a streamed reply is cut: `whole`, `tokens`, `ids_first`, `split`, `interleaved`, `empty`.
        protocol: How the model is reached: `native`, in the agent's usual way, or over the protocol `chat`, `responses`
            or `messages` by the framework's own client.
        saved_by: The older release that saved the state which is taken up after the first turn; see `states.py`.
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
        """
        Its name inside brackets: serialize mode and answer source always, the rest where it differs from the base
            variant.

        >>> Variant(serialize="json", stream=True, source="restored").id
        'json-stream-restored'
        """
        differs = [word for word, base in ((self.resume, "same"), (self.history, "whole")) if word != base]
        streamed = (["stream"] if self.stream else []) + ([self.chunking] if self.chunking != "whole" else [])
        rest = [word for word, base in ((self.oracle, "script"), (self.protocol, "native")) if word != base]
        words = [self.serialize, *differs, *streamed, self.source, *rest]
        taken_over = [f"from-{self.saved_by}"] if self.saved_by else []
        return "-".join([*(word.replace("_", "-") for word in words), *taken_over])


__all__ = [
    "DEFAULT_PROMPT",
    "AnswerSource",
    "Call",
    "CancelStep",
    "Expect",
    "LeaveStep",
    "LetOracleStep",
    "RestartStep",
    "RestoreStep",
    "RewriteStep",
    "SaveStep",
    "Scenario",
    "Script",
    "ScriptedDecision",
    "ScriptedFailure",
    "ScriptedReply",
    "SignalStep",
    "StageStep",
    "Step",
    "TogetherStep",
    "Tool",
    "ToolBehaviour",
    "TrimStep",
    "TurnStep",
    "Variant",
    "build_behaviours",
]

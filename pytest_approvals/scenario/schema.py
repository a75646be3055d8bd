"""Border models of a scenario file, and the JSON Schema that editors read.

Class names and docstrings are part of the JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator
from pydantic.json_schema import GenerateJsonSchema

from pytest_approvals.scenario.schema_base import (
    Count,
    FilePart,
    Json,
    Name,
    discriminate_by_shape,
    key_error,
    shape_error,
)
from pytest_approvals.scenario.vocabulary import DIMENSIONS, REACHES, TURN_KEYS, VARIED_ON_REQUEST

TypeName = Literal["string", "integer", "number", "boolean", "array", "object"]
ShortTypeName = Literal[
    "string", "integer", "number", "boolean", "array", "object",
    "string?", "integer?", "number?", "boolean?", "array?", "object?",
]  # fmt: skip


class ParameterFile(FilePart):
    """A parameter of a tool, written out."""

    noun: ClassVar[str] = "a parameter"
    nullable: ClassVar = ("default",)

    type: TypeName = "string"
    """The JSON Schema type of its values."""
    required: bool | None = None
    """Whether the model must give it; by default it must where there is no default."""
    default: Json = None
    """What the framework fills in where the model gives none."""


class ConditionFile(FilePart):
    """When a call needs approval: if the `argument` passes the one comparison that is given; or as `answers` say, or
    never an answer because it `raises`.
    """

    noun: ClassVar[str] = "an approval condition"
    one_of: ClassVar = (("greater_than", "less_than", "equals", "starts_with", "one_of", "answers", "raises"),)
    nullable: ClassVar = ("equals",)

    argument: Name | None = None
    """The argument that is compared."""
    greater_than: float | None = None
    less_than: float | None = None
    equals: Json = None
    starts_with: str | None = None
    one_of_values: list[Json] = Field(default_factory=list, alias="one_of")
    """The argument is one of these."""
    answers: list[bool] = Field(default_factory=list)
    """The k-th time that one call is asked about, the k-th answer is given, the last one for ever."""
    raises: str | None = None
    """The condition fails with this text."""
    waits_for: Name | None = None
    """A signal that comes before the answer."""


ParameterKind = Annotated[
    Annotated[ShortTypeName, Tag("=text")] | Annotated[ParameterFile, Tag("=mapping")],
    discriminate_by_shape("the name of a type, or a mapping with type, default, required"),
]

Parameters = dict[str, ParameterKind]


class ElicitationFile(FilePart):
    """A question that an MCP server asks the caller in the middle of a call."""

    noun: ClassVar[str] = "an elicitation"
    one_of: ClassVar = (("form", "url"),)

    message: Name
    """The question; `{parameter}` stands for that argument."""
    form: Annotated[Parameters, Field(examples=[{"account": "string"}])] = Field(default_factory=dict)
    """The fields to fill in; in what the call returns then, `{field}` stands for that field."""
    url: Name | None = None
    """The address to open, in place of a form."""


class BehaviourFile(FilePart):
    """What one execution does: it raises or returns, after what it `waits_for`; it may ask again before that."""

    noun: ClassVar[str] = "a behaviour"
    nullable: ClassVar = ("returns",)

    waits_for: Name | None = None
    """A signal that must be given first: one that a `signal` step gives, `started LABEL` or `ended LABEL`."""
    asks_again: str | None = None
    """
    The tool asks for a second approval with this question. What it does afterwards stands beside it or, in a list, in
    the next entry.
    """
    elicits: ElicitationFile | None = None
    """
    The server asks the caller in the middle of the call, for the kind mcp. If that is accepted, the call goes on; else
    it does nothing, and returns that.
    """
    raises: str | None = None
    """The tool fails with this text."""
    returns: Annotated[Json, Field(examples=["deleted {path}"])] = "ok"
    """Any JSON value; in text, `{parameter}` stands for that argument."""

    def behaviour_keys(self) -> dict[str, Any]:
        """Return what is written, and nothing that is there by default."""
        keys = ("waits_for", "asks_again", "elicits", "raises", "returns")
        return {key: getattr(self, key) for key in keys if self.has_key(key)}

    @classmethod
    def _check_groups(cls, mapping: Mapping[str, Any]) -> None:
        if "raises" in mapping and "returns" in mapping:
            raise key_error("returns", f"{cls.noun} raises or returns, not both; `does` lists successive executions")
        super()._check_groups(mapping)


Behaviours = Annotated[
    Annotated[BehaviourFile, Tag("=mapping")] | Annotated[list[BehaviourFile], Tag("=list")],
    discriminate_by_shape("a behaviour, or a list of them for successive executions"),
]

ApprovalFile = Annotated[
    Annotated[Literal["always", "never", "by_annotations"], Tag("=text")] | Annotated[ConditionFile, Tag("=mapping")],
    discriminate_by_shape("always, never, by_annotations, or a condition on the arguments"),
]

Annotation = Literal["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]


class ToolFile(BehaviourFile):
    """One tool: when its calls are gated, and what they do."""

    noun: ClassVar[str] = "a tool"

    approval: ApprovalFile = "never"
    """
    Whether calls need approval: always, never, or a condition on the arguments; or `by_annotations`, what the
    application decides from what the server says about the tool.
    """
    parameters: Annotated[Parameters, Field(examples=[{"path": "string", "note": "string?"}])] = Field(
        default_factory=dict
    )
    """Its parameters: the name of a type, with `?` where the model may leave it out, or a mapping."""
    description: str = ""
    """What the model is told about it."""
    called: Name | None = None
    """What model and agent call it, where that is not its name here: two servers may offer tools of one name."""
    kind: Literal["function", "mcp", "hosted_mcp"] = "function"
    """Who runs it: the framework, a server that the framework connects to, or the model's provider."""
    server: Name | None = None
    """The MCP server that offers it, for the kinds mcp and hosted_mcp."""
    annotations: Annotated[dict[Annotation, bool], Field(examples=[{"readOnlyHint": True}])] = Field(
        default_factory=dict
    )
    """What the server says about it in the words of MCP, for the kind mcp. Whoever trusts the server may go by it."""
    structured_only: bool = False
    """An object that it returns is sent as structured content, and not as text beside it, for the kind mcp."""
    misfits_are_errors: bool = False
    """
    Arguments that do not fit are answered with the error -32602 of the protocol, and not with a result that says so,
    for the kind mcp.
    """
    agent: Name | None = None
    """The agent that has it, `main` by default; the same as `AGENT/TOOL` for its name."""
    runs: Name | None = None
    """The agent that a call runs; the tool then has the one parameter `input`."""
    hands_over_to: Name | None = None
    """The agent that a call hands the conversation over to; it goes on in the same script."""
    does: list[BehaviourFile] = Field(default_factory=list)
    """What successive executions of one call do; the last one for ever."""
    calls: dict[str, Behaviours] = Field(default_factory=dict)
    """What single calls do instead, by label."""

    @classmethod
    def _check_groups(cls, mapping: Mapping[str, Any]) -> None:
        for key in ("waits_for", "asks_again", "elicits", "raises", "returns"):
            if key in mapping and "does" in mapping:
                raise key_error(key, f"{cls.noun} has {key!r} and 'does'; write it into the list")
        super()._check_groups(mapping)


class CallFile(FilePart):
    """One tool call of the model."""

    noun: ClassVar[str] = "a call"
    nullable: ClassVar = ("id",)

    id: Annotated[
        Annotated[Name, Tag("=text")] | Annotated[None, Tag("=null")],
        discriminate_by_shape("text, or null for a call without an id"),
    ]
    """The call id that the model gives; null where it gives none, which needs a label."""
    tool: Name
    """The tool that the model calls; after a hand-over, `AGENT/TOOL`."""
    arguments: Annotated[
        Annotated[dict[str, Any], Tag("=mapping")] | Annotated[str, Tag("=text")],
        discriminate_by_shape("a mapping, or text that the model sends in place of a JSON object"),
        Field(examples=[{"path": "a.txt"}]),
    ] = Field(default_factory=dict)
    """An object, or text that is sent verbatim in place of one."""
    thinks: Name | None = None
    """The model's reasoning between the call before it and this one."""
    label: Name | None = None
    """What the scenario calls this call; its id by default, `c1#2` for the second use of an id."""
    repeats: bool = False
    """The id was used before, on purpose."""
    unknown_tool: bool = False
    """The tool does not exist, on purpose."""
    invalid: bool = False
    """The arguments do not fit the declared parameters, on purpose."""


class ReplyFile(FilePart):
    """One reply of the model: text, calls, or a failure."""

    noun: ClassVar[str] = "a reply"

    thinks: Name | None = None
    """The model's reasoning, which comes before its text and calls."""
    redacted: bool = False
    """The provider shows nothing of the reasoning but its encrypted form."""
    say: str | None = None
    """What the model says; may stand beside calls."""
    calls: list[CallFile] = Field(default_factory=list)
    """The tool calls of this reply."""
    answer: Annotated[dict[str, Any], Field(examples=[{"amount": 5}])] | None = None
    """The structured answer that the model gives; the fields stand under `answer` at the top."""
    invalid: bool = False
    """The answer does not fit these fields, on purpose."""
    fails: Literal[429, 500, 503, 529, "disconnect", "timeout", "truncated", "garbled"] | None = None
    """
    The model fails instead of answering: with a status; because the connection breaks; because no answer comes in
    time; with an answer that ends in its middle, or that is none. Beside `breaks_after`: how the stream breaks.
    """
    retry_after: Annotated[float, Field(ge=0, strict=False)] | None = None
    """The seconds after which the provider wants to be asked again; beside `fails` with a status."""
    breaks_after: Annotated[int, Field(ge=0)] | None = None
    """The stream of this reply breaks after so many pieces; not streamed, the reply fails as a whole."""
    takes: Annotated[float, Field(ge=0, le=10, strict=False)] = 0
    """The seconds that pass before the first piece of this reply comes."""


Replies = Annotated[list[ReplyFile], Field(min_length=1)]

ModelFile = Annotated[
    Annotated[Replies, Tag("=list")] | Annotated[dict[str, Replies], Tag("=mapping")],
    discriminate_by_shape("a list of replies, or a mapping from first user message to such a list"),
]
"""
The replies of a model. As a mapping, each conversation plays the list under its first user message, and every other
conversation the one under `otherwise`.
"""


class AgentFile(FilePart):
    """An agent that a tool of another one runs."""

    noun: ClassVar[str] = "an agent"

    model: ModelFile
    """What its model replies; every conversation plays its script from the start."""


DECISION_KEYS = ("verdict", "reject", "never", "edit", "raw")


class AnswerFile(FilePart):
    """A decision, written out."""

    noun: ClassVar[str] = "an answer"
    one_of: ClassVar[tuple[tuple[str, ...], ...]] = (DECISION_KEYS,)
    nullable: ClassVar[tuple[str, ...]] = ("raw",)

    verdict: Literal["approve", "reject", "always", "never"] | None = None
    """The decision without more to say about it."""
    reject: str | None = None
    """Rejected, for this reason."""
    never: str | None = None
    """This call and all further calls of its tool are rejected, for this reason."""
    edit: dict[str, Any] | None = None
    """Approved with these arguments, all of them, in place of the model's."""
    tool: Name | None = None
    """For `edit`: another tool that shall run instead."""
    raw: Json = None
    """Put verbatim where the framework takes a decision."""
    shows: dict[str, Any] | None = None
    """The request that is handed over says these arguments in place of the real ones."""
    shows_tool: Name | None = None
    """The request that is handed over says this tool in place of the real one."""
    source: Literal["held", "restored", "rebuilt"] | None = None
    """Which copy of the request the answer is made from; by default the variant says."""
    invalid: bool = False
    """The edited arguments do not fit the declared parameters, on purpose."""
    unknown_tool: bool = False
    """The tool in place of the model's does not exist, on purpose."""


class StrayAnswerFile(AnswerFile):
    """A decision about nothing that was asked."""

    noun: ClassVar[str] = "an answer about no call"
    one_of: ClassVar[tuple[tuple[str, ...], ...]] = (DECISION_KEYS, ("unknown", "malformed"))
    nullable: ClassVar[tuple[str, ...]] = ("raw", "malformed")

    unknown: Name | None = None
    """A request id that was never given."""
    malformed: Json = None
    """Put verbatim where the framework takes a request."""


AnswerWord = Annotated[
    Annotated[Literal["approve", "reject", "always", "never"], Tag("=text")] | Annotated[AnswerFile, Tag("=mapping")],
    discriminate_by_shape("approve, reject, always, never, or a mapping such as {reject: a reason}"),
]


def _is_stray(entry: Any) -> str:
    return "=stray" if isinstance(entry, Mapping) and {"unknown", "malformed"} & set(entry) else "=labels"


Entry = Annotated[
    Annotated[dict[str, AnswerWord], Tag("=labels"), Field(min_length=1)] | Annotated[StrayAnswerFile, Tag("=stray")],
    Discriminator(_is_stray),
]

Decisions = Annotated[
    Annotated[dict[str, AnswerWord], Tag("=mapping"), Field(min_length=1)]
    | Annotated[list[Entry], Tag("=list"), Field(min_length=1)],
    discriminate_by_shape("a mapping from label to answer, or a list of such mappings"),
]
"""Answers by label. In a list one label may come twice, and answers about nothing that was asked may stand."""


class ElicitationAnswerFile(FilePart):
    """An accepted elicitation, with the fields of its form."""

    noun: ClassVar[str] = "an answer to an elicitation"

    accept: Annotated[dict[str, Any], Field(examples=[{"account": "checking"}])]
    """The fields that the caller fills in."""


ElicitationWord = Annotated[
    Annotated[Literal["accept", "decline", "cancel"], Tag("=text")] | Annotated[ElicitationAnswerFile, Tag("=mapping")],
    discriminate_by_shape("accept, decline, cancel, or a mapping such as {accept: {account: checking}}"),
]


class RestartFile(FilePart):
    """The agent is built anew from the saved state."""

    noun: ClassVar[str] = "a restart"

    fresh: bool = False
    """In another process."""
    without: list[Name] = Field(default_factory=list)
    """Tools that are missing from now on."""
    with_tools: list[Name] = Field(default_factory=list, alias="with")
    """Tools of `held_back` that are there from now on."""
    parameters: dict[Name, Parameters] = Field(default_factory=dict)
    """Tools that take other parameters from now on: all of them, by tool."""
    renamed: dict[Name, Name] = Field(default_factory=dict, examples=[{"helper": "assistant"}])
    """Agents that have another name from now on: the new name, by the one that they have here."""
    annotations: dict[Name, dict[Annotation, bool]] = Field(default_factory=dict)
    """Tools about which their servers say something else from now on: all of it, by tool."""


class RewriteFile(FilePart):
    """Somebody changes the text of what was saved."""

    noun: ClassVar[str] = "a rewriting"

    old: Name
    """The text that stands there."""
    new: Name
    """The text in its place."""
    where: Literal["every", "shown", "hidden"] = "every"
    """In every place that says it, in those that say what a person is shown, or in all others."""


STEP_KEYS = (
    "send", "decide", "go_on", "oracle", "stage", "save", "restore", "restart", "cancel", "trim", "rewrite", "signal",
    "together", "leave",
)  # fmt: skip


class SimultaneousStepFile(FilePart):
    """A step among those that run at the same time: a turn or a signal."""

    noun: ClassVar[str] = "a simultaneous step"
    steps: ClassVar[tuple[str, ...]] = ("send", "decide", "go_on", "signal")

    send: str | None = None
    """A message; with `decide` beside it, both are handed in together."""
    decide: Decisions | None = None
    """Answers to pending requests."""
    go_on: Literal[True] | None = None
    """The agent is resumed without text and without answers."""
    signal: Name | None = None
    """A signal is given, for the tools and conditions that wait for it."""
    session: Name | None = None
    """The session that the step belongs to, where a scenario has several."""
    elicitations: dict[str, ElicitationWord] = Field(default_factory=dict)
    """Beside `send`, `decide` or `go_on`: what the caller answers, from this turn on, to what servers ask in the middle
    of calls, by label. Without an answer here, the caller cancels."""
    stops: Name | None = None
    """Where the agent's process is stopped over the turns that follow in `together`; `before`, `started` or
    `ended LABEL` of a call, or `model`."""

    @model_validator(mode="before")
    @classmethod
    def _check_steps(cls, mapping: Any) -> Any:
        if not isinstance(mapping, Mapping):
            return mapping
        present = [key for key in mapping if key in cls.steps]
        if not present and set(mapping) <= {"session", "elicitations", *TURN_KEYS}:
            raise shape_error(f"{cls.noun} needs one of: {', '.join(cls.steps)}")
        if len(present) > 1 and set(present) != {"send", "decide"}:
            both = " and ".join(map(repr, present))
            raise key_error(present[1], f"{cls.noun} does one thing, not {both}; only send and decide go together")
        if "session" in mapping and {"signal", "together", "leave"} & set(present):
            raise key_error("session", f"the step {present[0]!r} cannot have 'session'")
        # Without a known step some key is misspelled, which `_check_keys` says better.
        for key in (*TURN_KEYS, "elicitations") if present and not {"send", "decide", "go_on"} & set(present) else ():
            if key in mapping:
                raise key_error(key, f"the step {present[0]!r} is not a turn; only a turn can have {key!r}")
        cuts = [key for key in TURN_KEYS if key in mapping]
        if len(cuts) > 1:
            raise key_error(cuts[1], f"one thing happens to a turn: {cuts[0]!r} or {cuts[1]!r}")
        return mapping


class StepFile(SimultaneousStepFile):
    """One step of the caller: one thing it does, or `send` and `decide` together."""

    noun: ClassVar[str] = "a step"
    steps: ClassVar[tuple[str, ...]] = STEP_KEYS

    oracle: Annotated[
        Annotated[Literal[True], Tag("=bool")] | Annotated[Count, Tag("=number")],
        discriminate_by_shape("true, or a number of rounds"),
    ] = True
    """The oracle answers what is pending, until nothing is or so many rounds are over."""
    stage: Decisions | None = None
    """Answers go into the state, nothing runs yet."""
    save: Name | None = None
    """The state is saved under a name, to be rewound to."""
    restore: Name | None = None
    """The state that was saved under that name is taken up again."""
    restart: Annotated[
        Annotated[Literal[True], Tag("=bool")] | Annotated[RestartFile, Tag("=mapping")],
        discriminate_by_shape("true, or a mapping with fresh, without, with, parameters, renamed, annotations"),
    ] = True
    """The agent is built anew from the saved state."""
    cancel: Literal[True] | None = None
    """What is pending is given up."""
    trim: Count | None = None
    """The framework's own trimming keeps that many last messages."""
    rewrite: RewriteFile | None = None
    """What was saved says something else when it is taken up."""
    hangs_up: Name | None = None
    """Beside `send`, `decide` or `go_on`: where the turn is cancelled; `started LABEL` of a call, or `model`."""
    crashes: Name | None = None
    """Beside `send`, `decide` or `go_on`: where the agent's process is killed; `before`, `started`, `ended` or
    `write LABEL` of a call, `model`, `shown` in a stream, `write` to a store, or `outcome`."""
    disk_full: Name | None = None
    """Beside `send`, `decide` or `go_on`: from where on nothing can be stored until the turn has ended; `write`, or
    `write LABEL` of a call."""
    fails_once: Name | None = None
    """Beside `send`, `decide` or `go_on`: from where on nothing can be stored until the turn comes to its next call or
    question to a model; `write`, or `write LABEL` of a call."""
    loses: Literal["write"] | None = None
    """Beside `send`, `decide` or `go_on`: `write`, all that the turn has stored is lost when it has ended."""
    reads: Literal["stale"] | None = None
    """Beside `send`, `decide` or `go_on`: `stale`, the turn begins with what was stored before the last one."""
    together: Annotated[list[SimultaneousStepFile], Field(min_length=2)] | None = None
    """Turns that run at the same time; each begins when the one before it waits in a tool or has ended."""
    leave: Literal[True] | None = None
    """The caller leaves: nobody answers what is pending now."""


Source = Annotated[str, StringConstraints(pattern=r"^([\w.-]+/[\w.-]+#[0-9]+|https?://\S+)$")]


class ExpectFile(FilePart):
    """Guards of the story, judged besides the checks."""

    noun: ClassVar[str] = "expect"

    runs: list[Name] | None = None
    """The labels of the calls that ran, in any order."""
    output: str | None = None
    """The last output."""


class LimitsFile(FilePart):
    """Where the framework itself must stop a turn."""

    noun: ClassVar[str] = "limits"

    model_replies: Count | None = None
    """The number of model replies in a turn."""
    tool_calls: Count | None = None
    """The number of tool calls."""


Pinned = Annotated[
    Annotated[str, Tag("=text")]
    | Annotated[bool, Tag("=bool")]
    | Annotated[list[str | bool], Tag("=list"), Field(min_length=1)],
    discriminate_by_shape("a value of the dimension, or a list of them"),
]


class ScenarioFile(FilePart):
    """One story about an agent whose tool calls need approval."""

    noun: ClassVar[str] = "a scenario"

    title: Annotated[Name, Field(examples=["Two gated calls in one reply; one is approved, one rejected"])]
    """What happens, in one sentence that can be quoted in a bug report."""
    about: str = ""
    """Prose around it: why it matters, and what goes wrong in practice."""
    sources: list[Source] = Field(default_factory=list, examples=[["owner/repository#123"]])
    """Public issues that it stands for: OWNER/REPO#NUMBER or an address."""
    requires: list[Name] = Field(default_factory=list, examples=[["parallel"]])
    """Capabilities that an agent needs for it, besides those that the content shows."""
    tools: dict[str, ToolFile] = Field(default_factory=dict)
    """The tools by name; a tool of another agent is called AGENT/TOOL, or has the key `agent`."""
    answer: Annotated[Parameters, Field(examples=[{"amount": "integer"}])] = Field(default_factory=dict)
    """The fields of the answer that the main agent has to end with, as parameters are written; without them, text."""
    agents: dict[str, AgentFile] = Field(default_factory=dict)
    """The agents that tools run, by name."""
    model: ModelFile
    """What the model of the main agent replies."""
    caller: Annotated[list[StepFile], Field(min_length=1)] | None = None
    """What the caller does; without it, it sends the prompt and lets the oracle answer until the end."""
    prompt: Name | None = None
    """The first message, for a scenario without a caller."""
    reaches: dict[str, Count] = Field(default_factory=dict, examples=[{"paused": 1, "rejected": 1}])
    """What must happen at least so often on the reference agent in every variant."""
    expect: ExpectFile = ExpectFile()
    """Guards of the story."""
    limits: LimitsFile = LimitsFile()
    """Limits that the framework itself keeps, to be reached just where the run pauses."""
    only: Annotated[dict[str, Pinned], Field(examples=[{"serialize": "json", "stream": True}])] = Field(
        default_factory=dict
    )
    """Dimensions of the variants that are pinned to one value or to a few."""
    vary: list[Literal["resume", "history", "source", "chunking", "protocol"]] = Field(default_factory=list)
    """Dimensions that are varied though they are not by default."""
    oracles: list[Name] = Field(default_factory=list, examples=[["approve_all", "random:7"]])
    """Who decides what the story leaves open, each in variants of its own."""
    held_back: list[Name] = Field(default_factory=list)
    """Tools that the agent gets only from a restart with them on."""
    servers: dict[str, Literal["http", "stdio"]] = Field(default_factory=dict)
    """How the agent connects to an MCP server of tools of kind mcp: http (streamable HTTP, the default) or stdio."""
    options: dict[str, Json] = Field(default_factory=dict)
    """Options for the adapter's flavour."""
    equal_arguments: bool = False
    """Two calls of one tool have equal arguments, on purpose."""


class _SchemaGenerator(GenerateJsonSchema):
    """Leaves out what tells an editor nothing: titles made of field names, null for a key left out, defaults."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        written = super().default_schema(schema)
        return {key: value for key, value in written.items() if key != "default"}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file."""
    schema = ScenarioFile.model_json_schema(schema_generator=_SchemaGenerator)
    for part in (schema, *schema["$defs"].values()):
        part.pop("title", None)
    properties = schema["properties"]
    properties["reaches"]["propertyNames"] = {"enum": list(REACHES)}
    properties["only"]["propertyNames"] = {"enum": list(DIMENSIONS)}
    properties["vary"]["items"] = {"enum": list(VARIED_ON_REQUEST)}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "pytest-approvals scenario"}
    return {**head, **schema}

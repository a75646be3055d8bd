"""Border models: the caller's script in a scenario file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from pytest_approvals.scenario.schema_base import Count, FilePart, Json, Name, by_shape, wrong_key, wrong_shape
from pytest_approvals.scenario.schema_tools import Parameters

VERDICTS = ("verdict", "reject", "never", "edit", "raw")


class AnswerFile(FilePart):
    """A decision, written out."""

    what: ClassVar[str] = "an answer"
    one_of: ClassVar[tuple[tuple[str, ...], ...]] = (VERDICTS,)
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

    what: ClassVar[str] = "an answer about no call"
    one_of: ClassVar[tuple[tuple[str, ...], ...]] = (VERDICTS, ("unknown", "malformed"))
    nullable: ClassVar[tuple[str, ...]] = ("raw", "malformed")

    unknown: Name | None = None
    """A request id that was never given."""
    malformed: Json = None
    """Put verbatim where the framework takes a request."""


AnswerWord = Annotated[
    Annotated[Literal["approve", "reject", "always", "never"], Tag("=text")] | Annotated[AnswerFile, Tag("=mapping")],
    by_shape("approve, reject, always, never, or a mapping such as {reject: a reason}"),
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
    by_shape("a mapping from label to answer, or a list of such mappings"),
]
"""Answers by label. In a list one label may come twice, and answers about nothing that was asked may stand."""


class RestartFile(FilePart):
    """The agent is built anew from the saved state."""

    what: ClassVar[str] = "a restart"

    fresh: bool = False
    """In another process."""
    without: list[Name] = Field(default_factory=list)
    """Tools that are missing from now on."""
    with_tools: list[Name] = Field(default_factory=list, alias="with")
    """Tools of `held_back` that are there from now on."""
    parameters: dict[Name, Parameters] = Field(default_factory=dict)
    """Tools that take other parameters from now on: all of them, by tool."""


class RewriteFile(FilePart):
    """Somebody changes the text of what was saved."""

    what: ClassVar[str] = "a rewriting"

    old: Name
    """The text that stands there."""
    new: Name
    """The text in its place."""
    where: Literal["every", "shown", "hidden"] = "every"
    """In every place that says it, in those that say what a person is shown, or in all others."""


STEPS = (
    "send", "decide", "go_on", "oracle", "stage", "save", "restore", "restart", "cancel", "trim", "rewrite", "signal",
    "together", "leave",
)  # fmt: skip


class SimultaneousStepFile(FilePart):
    """A step among those that run at the same time: a turn or a signal."""

    what: ClassVar[str] = "a simultaneous step"
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

    @model_validator(mode="before")
    @classmethod
    def _check_steps(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        found = [key for key in given if key in cls.steps]
        if not found and set(given) <= {"session", "hangs_up"}:
            raise wrong_shape(f"{cls.what} needs one of: {', '.join(cls.steps)}")
        if len(found) > 1 and set(found) != {"send", "decide"}:
            both = " and ".join(map(repr, found))
            raise wrong_key(found[1], f"{cls.what} does one thing, not {both}; only send and decide go together")
        if "session" in given and {"signal", "together", "leave"} & set(found):
            raise wrong_key("session", f"the step {found[0]!r} belongs to no session")
        if "hangs_up" in given and not {"send", "decide", "go_on"} & set(found):
            raise wrong_key("hangs_up", f"the step {found[0]!r} is no turn in which somebody could hang up")
        return given


class StepFile(SimultaneousStepFile):
    """One step of the caller: one thing it does, or `send` and `decide` together."""

    what: ClassVar[str] = "a step"
    steps: ClassVar[tuple[str, ...]] = STEPS

    oracle: Annotated[
        Annotated[Literal[True], Tag("=bool")] | Annotated[Count, Tag("=number")],
        by_shape("true, or a number of rounds"),
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
        by_shape("true, or a mapping with fresh, without, with, parameters"),
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
    together: Annotated[list[SimultaneousStepFile], Field(min_length=2)] | None = None
    """Turns that run at the same time; each begins when the one before it waits in a tool or has ended."""
    leave: Literal[True] | None = None
    """The caller leaves: nobody answers what is pending now."""

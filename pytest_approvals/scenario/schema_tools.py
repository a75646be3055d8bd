"""Border models: the tools of a scenario file, when their calls are gated, and what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag

from pytest_approvals.scenario.schema_base import FilePart, Json, Name, by_shape, wrong_key

TypeName = Literal["string", "integer", "number", "boolean", "array", "object"]
ShortTypeName = Literal[
    "string", "integer", "number", "boolean", "array", "object",
    "string?", "integer?", "number?", "boolean?", "array?", "object?",
]  # fmt: skip


class ParameterFile(FilePart):
    """A parameter of a tool, written out."""

    what: ClassVar[str] = "a parameter"
    nullable: ClassVar = ("default",)

    type: TypeName = "string"
    """The JSON Schema type of its values."""
    required: bool | None = None
    """Whether the model must give it; by default it must where there is no default."""
    default: Json = None
    """What the framework fills in where the model gives none."""


class ConditionFile(FilePart):
    """
    When a call needs approval: if the `argument` passes the one comparison that is given; or as `answers` say, or
    never an answer because it `raises`.
    """

    what: ClassVar[str] = "an approval condition"
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


class BehaviourFile(FilePart):
    """What one execution does: it raises or returns, after what it `waits_for`; it may ask again before that."""

    what: ClassVar[str] = "a behaviour"
    nullable: ClassVar = ("returns",)

    waits_for: Name | None = None
    """A signal that must be given first: one that a `signal` step gives, `started LABEL` or `ended LABEL`."""
    asks_again: str | None = None
    """
    The tool asks for a second approval with this question. What it does afterwards stands beside it or, in a list, in
    the next entry.
    """
    raises: str | None = None
    """The tool fails with this text."""
    returns: Annotated[Json, Field(examples=["deleted {path}"])] = "ok"
    """Any JSON value; in text, `{parameter}` stands for that argument."""

    def behaviour_keys(self) -> dict[str, Any]:
        """Gives what is written, and nothing that is there by default."""
        keys = ("waits_for", "asks_again", "raises", "returns")
        return {key: getattr(self, key) for key in keys if self.given(key)}

    @classmethod
    def _check_groups(cls, given: Mapping[str, Any]) -> None:
        if "raises" in given and "returns" in given:
            raise wrong_key("returns", f"{cls.what} raises or returns, not both; `does` lists successive executions")
        super()._check_groups(given)


Behaviours = Annotated[
    Annotated[BehaviourFile, Tag("=mapping")] | Annotated[list[BehaviourFile], Tag("=list")],
    by_shape("a behaviour, or a list of them for successive executions"),
]

ApprovalFile = Annotated[
    Annotated[Literal["always", "never"], Tag("=text")] | Annotated[ConditionFile, Tag("=mapping")],
    by_shape("always, never, or a condition on the arguments"),
]

Parameters = dict[
    str,
    Annotated[
        Annotated[ShortTypeName, Tag("=text")] | Annotated[ParameterFile, Tag("=mapping")],
        by_shape("the name of a type, or a mapping with type, default, required"),
    ],
]


class ToolFile(BehaviourFile):
    """One tool: when its calls are gated, and what they do."""

    what: ClassVar[str] = "a tool"

    approval: ApprovalFile = "never"
    """Whether calls need approval: always, never, or a condition on the arguments."""
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
    def _check_groups(cls, given: Mapping[str, Any]) -> None:
        for key in ("waits_for", "asks_again", "raises", "returns"):
            if key in given and "does" in given:
                raise wrong_key(key, f"{cls.what} has {key!r} and 'does'; write it into the list")
        super()._check_groups(given)

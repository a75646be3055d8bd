"""Border models: the model's script in a scenario file."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag

from pytest_approvals.scenario.schema_base import FilePart, Name, by_shape


class CallFile(FilePart):
    """One tool call of the model."""

    what: ClassVar[str] = "a call"
    nullable: ClassVar = ("id",)

    id: Annotated[
        Annotated[Name, Tag("=text")] | Annotated[None, Tag("=null")],
        by_shape("text, or null for a call without an id"),
    ]
    """The call id that the model gives; null where it gives none, which needs a label."""
    tool: Name
    """The tool that the model calls; after a hand-over, `AGENT/TOOL`."""
    arguments: Annotated[
        Annotated[dict[str, Any], Tag("=mapping")] | Annotated[str, Tag("=text")],
        by_shape("a mapping, or text that the model sends in place of a JSON object"),
        Field(examples=[{"path": "a.txt"}]),
    ] = Field(default_factory=dict)
    """An object, or text that is sent verbatim in place of one."""
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

    what: ClassVar[str] = "a reply"

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
    by_shape("a list of replies, or a mapping from first user message to such a list"),
]
"""
The replies of a model. As a mapping, each conversation plays the list under its first user message, and every other
conversation the one under `otherwise`.
"""


class AgentFile(FilePart):
    """An agent that a tool of another one runs."""

    what: ClassVar[str] = "an agent"

    model: ModelFile
    """What its model replies; every conversation plays its script from the start."""

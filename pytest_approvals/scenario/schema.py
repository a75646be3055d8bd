"""The border model of a scenario file, and the JSON Schema that editors read."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints, Tag
from pydantic.json_schema import GenerateJsonSchema

from pytest_approvals.scenario.schema_base import Count, FilePart, Json, Name, by_shape
from pytest_approvals.scenario.schema_caller import StepFile
from pytest_approvals.scenario.schema_model import AgentFile, ModelFile
from pytest_approvals.scenario.schema_tools import Parameters, ToolFile
from pytest_approvals.scenario.words import DIMENSIONS, REACHES, VARIED_ON_REQUEST

Source = Annotated[str, StringConstraints(pattern=r"^([\w.-]+/[\w.-]+#[0-9]+|https?://\S+)$")]


class ExpectFile(FilePart):
    """Guards of the story, judged besides the checks."""

    what: ClassVar[str] = "expect"

    runs: list[Name] | None = None
    """The labels of the calls that ran, in any order."""
    output: str | None = None
    """The last output."""


class LimitsFile(FilePart):
    """Where the framework itself must stop a turn."""

    what: ClassVar[str] = "limits"

    model_replies: Count | None = None
    """The number of model replies in a turn."""
    tool_calls: Count | None = None
    """The number of tool calls."""


Pinned = Annotated[
    Annotated[str, Tag("=text")]
    | Annotated[bool, Tag("=bool")]
    | Annotated[list[str | bool], Tag("=list"), Field(min_length=1)],
    by_shape("a value of the dimension, or a list of them"),
]


class ScenarioFile(FilePart):
    """One story about an agent whose tool calls need approval."""

    what: ClassVar[str] = "a scenario"

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


class _Schema(GenerateJsonSchema):
    """Leaves out what tells an editor nothing: titles made of field names, null for a key left out, defaults."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        written = super().default_schema(schema)
        return {key: value for key, value in written.items() if key != "default"}


def json_schema() -> dict[str, Any]:
    """Gives the JSON Schema of a scenario file."""
    schema = ScenarioFile.model_json_schema(schema_generator=_Schema)
    for part in (schema, *schema["$defs"].values()):
        part.pop("title", None)
    properties = schema["properties"]
    properties["reaches"]["propertyNames"] = {"enum": list(REACHES)}
    properties["only"]["propertyNames"] = {"enum": list(DIMENSIONS)}
    properties["vary"]["items"] = {"enum": list(VARIED_ON_REQUEST)}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "pytest-approvals scenario"}
    return {**head, **schema}

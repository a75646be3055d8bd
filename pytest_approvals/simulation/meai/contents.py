"""Content model of Microsoft.Extensions.AI: messages and their contents.

Everything is frozen except one thing: the flag `informational_only` of a function call, which the framework sets on
the object itself once it has settled the call. It is visible to everybody who holds the same object, but not in a copy,
as after a round trip through JSON.

    Content
    ├── Text                    merged with adjacent texts when updates become a message
    ├── OpaqueContent           reasoning, data, uri, error, usage, hosted files: kept as read
    ├── UnknownContent          an unknown `$type`: kept, and reported by the reader
    ├── ToolCall                FunctionCall, McpServerToolCall, CodeInterpreterToolCall, ImageGenerationToolCall,
    │                           WebSearchToolCall
    ├── ToolResult              FunctionResult, McpServerToolResult, CodeInterpreterToolResult, ...
    ├── InputRequest            ToolApprovalRequest
    └── InputResponse           ToolApprovalResponse

Sources: dotnet/extensions#7299.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_approvals.errors import ContentError

JsonNotation = Literal["current", "earlier"]
"""Generation of discriminators: from 10.4.0 on, or from 9.9 to 10.3.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One part of a message.

    Attributes:
        source: JSON object that it was read from; its order of names, and what is not modelled, is written again.
        notation: Generation of discriminators to write it with.
    """

    source: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    notation: JsonNotation = field(default="current", compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Content):
    """Text of a message."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueContent(Content):
    """A known kind of content without a role in approvals; None for a wrapper of a provider's object."""

    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownContent(Content):
    """A content with an unknown `$type`."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(Content):
    """A call of any tool."""

    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall(ToolCall):
    """A call of a function.

    Attributes:
        informational_only: The call is settled; nobody else has to handle it.
    """

    name: str
    arguments: Mapping[str, Any] | None = None
    informational_only: bool = False

    def settle(self) -> None:
        """Flag this very object as settled."""
        # The one change of a frozen object: everybody who holds it must see the flag.
        object.__setattr__(self, "informational_only", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerToolCall(ToolCall):
    """A call of a tool of an MCP server that the provider is connected to."""

    name: str
    server_name: str | None = None
    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _refuse_blank(self.call_id, "callId")
        _refuse_blank(self.name, "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeInterpreterToolCall(ToolCall):
    """Code that the provider executes."""

    inputs: tuple[Content, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageGenerationToolCall(ToolCall):
    """An image that the provider generates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchToolCall(ToolCall):
    """A search by the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Content):
    """Result of a call of any tool."""

    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionResult(ToolResult):
    """Result of a function, or the text that the model gets in its place."""

    result: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerToolResult(ToolResult):
    """Result of a tool of an MCP server."""

    outputs: tuple[Content, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeInterpreterToolResult(ToolResult):
    """Result of code."""

    outputs: tuple[Content, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageGenerationToolResult(ToolResult):
    """A generated image."""

    outputs: tuple[Content, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchToolResult(ToolResult):
    """Results of a search."""

    outputs: tuple[Content, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequest(Content):
    """A request to the caller."""

    request_id: str

    def __post_init__(self) -> None:
        _refuse_blank(self.request_id, "requestId")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputResponse(Content):
    """The caller's response to a request."""

    request_id: str

    def __post_init__(self) -> None:
        _refuse_blank(self.request_id, "requestId")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApprovalResponse(InputResponse):
    """A decision about a call.

    Attributes:
        tool_call: The call; None only if an earlier generation did not write it and no request has it.
    """

    approved: bool
    tool_call: Content | None = None
    reason: str | None = None

    @property
    def function(self) -> FunctionCall | None:
        """The call, if it is a function call."""
        return self.tool_call if isinstance(self.tool_call, FunctionCall) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApprovalRequest(InputRequest):
    """A request for a decision about a call.

    Attributes:
        requires_confirmation: The call's own tool is gated; otherwise it only waits for another one.
    """

    tool_call: Content
    requires_confirmation: bool = True

    @property
    def function(self) -> FunctionCall | None:
        """The call, if it is a function call."""
        return self.tool_call if isinstance(self.tool_call, FunctionCall) else None

    def response(self, approved: bool, reason: str | None = None) -> ToolApprovalResponse:
        """Build a decision that holds this request's own call object, not a copy."""
        return ToolApprovalResponse(
            request_id=self.request_id,
            approved=approved,
            tool_call=self.tool_call,
            reason=reason,
            notation=self.notation,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message, or a streamed update, which is a piece of a message.

    Attributes:
        source: JSON object that it was read from.
    """

    role: str = "user"
    contents: tuple[Content, ...] = ()
    message_id: str | None = None
    author_name: str | None = None
    created_at: str | None = None
    source: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


def function_calls(message: Message) -> list[FunctionCall]:
    """Return all function calls in the message, settled or not."""
    return [content for content in message.contents if isinstance(content, FunctionCall)]


def live_calls(message: Message) -> list[FunctionCall]:
    """Return the function calls that are not settled."""
    return [call for call in function_calls(message) if not call.informational_only]


def _refuse_blank(value: str, name: str) -> None:
    if not value.strip():
        raise ContentError(name, "is blank; Microsoft.Extensions.AI refuses a content without it")

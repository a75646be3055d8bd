"""
The content model of Microsoft.Extensions.AI: messages, and what they hold.

Everything is frozen but one thing: a function call's flag `informational_only`, which the framework sets on the object
itself once it has dealt with the call. Whoever holds the same object sees it; whoever holds a copy, as everybody does
after a round trip through JSON, does not.

    Content
    ├── Text                    merged with its neighbours when updates become a message
    ├── Opaque                  reasoning, data, uri, error, usage, hosted files: kept as they came
    ├── Unknown                 a `$type` that nobody here knows: kept, and reported by the reader
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
"""The two generations of discriminators: from 10.4.0 on, and from 9.9 to 10.3.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """
    One part of a message.

    Attributes:
        source: The JSON object that it was read from; its order of names, and what is not modelled, are written again.
        notation: The generation of discriminators that it is written with.
    """

    source: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    notation: JsonNotation = field(default="current", compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Content):
    """What somebody says."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueContent(Content):
    """A known kind of content without a part in approvals; None is a content that only wrapped a provider's object."""

    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownContent(Content):
    """A content whose `$type` is not known."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(Content):
    """A call of any tool."""

    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall(ToolCall):
    """
    A call of a function.

    Attributes:
        informational_only: Somebody has dealt with this call; nobody else needs to.
    """

    name: str
    arguments: Mapping[str, Any] | None = None
    informational_only: bool = False

    def settle(self) -> None:
        """Sets the flag, on this very object."""
        object.__setattr__(self, "informational_only", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerToolCall(ToolCall):
    """A call of a tool of an MCP server that the provider talks to."""

    name: str
    server_name: str | None = None
    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _refuse_blank(self.call_id, "callId")
        _refuse_blank(self.name, "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeInterpreterToolCall(ToolCall):
    """Code that the provider runs."""

    inputs: tuple[Content, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageGenerationToolCall(ToolCall):
    """An image that the provider makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchToolCall(ToolCall):
    """A search that the provider makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Content):
    """What a call of any tool gave."""

    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionResult(ToolResult):
    """What a function gave, or what the model is told in place of that."""

    result: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerToolResult(ToolResult):
    """What a tool of an MCP server gave."""

    outputs: tuple[Content, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeInterpreterToolResult(ToolResult):
    """What code gave."""

    outputs: tuple[Content, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageGenerationToolResult(ToolResult):
    """The image that was made."""

    outputs: tuple[Content, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchToolResult(ToolResult):
    """What a search found."""

    outputs: tuple[Content, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequest(Content):
    """Something that the caller is asked."""

    request_id: str

    def __post_init__(self) -> None:
        _refuse_blank(self.request_id, "requestId")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputResponse(Content):
    """What the caller says to a request."""

    request_id: str

    def __post_init__(self) -> None:
        _refuse_blank(self.request_id, "requestId")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApprovalResponse(InputResponse):
    """
    A decision about a call.

    Attributes:
        tool_call: The call; None only where an earlier generation did not write it and no request tells.
    """

    approved: bool
    tool_call: Content | None = None
    reason: str | None = None

    @property
    def function(self) -> FunctionCall | None:
        """The call, if it is one of a function."""
        return self.tool_call if isinstance(self.tool_call, FunctionCall) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApprovalRequest(InputRequest):
    """
    A request for a decision about a call.

    Attributes:
        requires_confirmation: The call's own tool is gated; otherwise it only waits for one that is.
    """

    tool_call: Content
    requires_confirmation: bool = True

    @property
    def function(self) -> FunctionCall | None:
        """The call, if it is one of a function."""
        return self.tool_call if isinstance(self.tool_call, FunctionCall) else None

    def response(self, approved: bool, reason: str | None = None) -> ToolApprovalResponse:
        """Gives a decision that holds this request's own call object, not a copy."""
        return ToolApprovalResponse(
            request_id=self.request_id,
            approved=approved,
            tool_call=self.tool_call,
            reason=reason,
            notation=self.notation,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """
    One message; also one streamed update, which is a piece of a message.

    Attributes:
        source: The JSON object that it was read from.
    """

    role: str = "user"
    contents: tuple[Content, ...] = ()
    message_id: str | None = None
    author_name: str | None = None
    created_at: str | None = None
    source: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


def function_calls(message: Message) -> list[FunctionCall]:
    """Gives the function calls that stand in the message themselves, whatever their flags say."""
    return [content for content in message.contents if isinstance(content, FunctionCall)]


def live_calls(message: Message) -> list[FunctionCall]:
    """Gives the function calls that nobody has dealt with."""
    return [call for call in function_calls(message) if not call.informational_only]


def _refuse_blank(value: str, name: str) -> None:
    if not value.strip():
        raise ContentError(name, "is blank; Microsoft.Extensions.AI refuses a content without it")

"""
How each content is written, in both generations of discriminators, as tables that reader and writer share.

Sources: dotnet/extensions#7299, dotnet/extensions#7164.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .contents import (
    CodeInterpreterToolCall,
    CodeInterpreterToolResult,
    Content,
    FunctionCall,
    FunctionResult,
    ImageGenerationToolCall,
    ImageGenerationToolResult,
    InputRequest,
    InputResponse,
    McpServerToolCall,
    McpServerToolResult,
    Notation,
    Text,
    ToolApprovalRequest,
    ToolApprovalResponse,
    ToolCall,
    ToolResult,
    WebSearchToolCall,
    WebSearchToolResult,
)

Kind = Literal["text", "flag", "arguments", "value", "contents", "call", "function", "server"]
"""What stands in a field: `call` names its own type, `function` and `server` are calls that do not."""

REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class Field:
    """
    One property of a content.

    Attributes:
        name: In JSON.
        attribute: In the content.
        default: What a missing one means; REQUIRED where it must be there.
    """

    name: str
    attribute: str
    kind: Kind = "text"
    default: Any = None


@dataclass(frozen=True, slots=True)
class Spec:
    """
    The way one type is written in one generation.

    Attributes:
        telling: Names that only this generation has, where both generations share a discriminator.
    """

    discriminator: str
    content: type[Content]
    fields: tuple[Field, ...]
    telling: frozenset[str] = frozenset()


_CALL_ID = Field("callId", "call_id", "text", REQUIRED)
_REQUEST_ID = Field("requestId", "request_id", "text", REQUIRED)
_OLD_ID = Field("id", "request_id", "text", REQUIRED)
_APPROVED = Field("approved", "approved", "flag", REQUIRED)
_NAME = Field("name", "name", "text", REQUIRED)
_SERVER = Field("serverName", "server_name")
_ARGUMENTS = Field("arguments", "arguments", "arguments")
_REASON = Field("reason", "reason")
_OUTPUTS = Field("outputs", "outputs", "contents")
_FLAG = Field("informationalOnly", "informational_only", "flag", False)

CURRENT = (
    Spec("text", Text, (Field("text", "text", "text", ""),)),
    Spec("functionCall", FunctionCall, (_NAME, _ARGUMENTS, _FLAG, _CALL_ID)),
    Spec("functionResult", FunctionResult, (Field("result", "result", "value"), _CALL_ID)),
    Spec(
        "toolApprovalRequest",
        ToolApprovalRequest,
        (
            Field("toolCall", "tool_call", "call", REQUIRED),
            Field("requiresConfirmation", "requires_confirmation", "flag", True),
            _REQUEST_ID,
        ),
    ),
    Spec(
        "toolApprovalResponse",
        ToolApprovalResponse,
        (_APPROVED, Field("toolCall", "tool_call", "call", REQUIRED), _REASON, _REQUEST_ID),
    ),
    Spec("mcpServerToolCall", McpServerToolCall, (_NAME, _SERVER, _ARGUMENTS, _CALL_ID)),
    Spec("mcpServerToolResult", McpServerToolResult, (_OUTPUTS, _CALL_ID)),
    Spec("codeInterpreterToolCall", CodeInterpreterToolCall, (Field("inputs", "inputs", "contents"), _CALL_ID)),
    Spec("codeInterpreterToolResult", CodeInterpreterToolResult, (_OUTPUTS, _CALL_ID)),
    Spec("imageGenerationToolCall", ImageGenerationToolCall, (_CALL_ID,)),
    Spec("imageGenerationToolResult", ImageGenerationToolResult, (_OUTPUTS, _CALL_ID)),
    Spec("webSearchToolCall", WebSearchToolCall, (_CALL_ID,)),
    Spec("webSearchToolResult", WebSearchToolResult, (_OUTPUTS, _CALL_ID)),
    Spec("toolCall", ToolCall, (_CALL_ID,)),
    Spec("toolResult", ToolResult, (_CALL_ID,)),
    Spec("inputRequest", InputRequest, (_REQUEST_ID,)),
    Spec("inputResponse", InputResponse, (_REQUEST_ID,)),
)
"""From 10.4.0 on."""

_OLD_FUNCTION = Field("functionCall", "tool_call", "function", REQUIRED)
_OLD_SERVER_CALL = Field("toolCall", "tool_call", "server", REQUIRED)

MCP_CALL = Spec(
    "mcpServerToolCall",
    McpServerToolCall,
    (Field("toolName", "name", "text", REQUIRED), _SERVER, _ARGUMENTS, _CALL_ID),
    telling=frozenset({"toolName"}),
)
MCP_RESULT = Spec(
    "mcpServerToolResult",
    McpServerToolResult,
    (Field("output", "outputs", "contents"), _CALL_ID),
    telling=frozenset({"output"}),
)
FUNCTION_REQUEST = Spec("functionApprovalRequest", ToolApprovalRequest, (_OLD_FUNCTION, _OLD_ID))
FUNCTION_RESPONSE = Spec("functionApprovalResponse", ToolApprovalResponse, (_APPROVED, _OLD_FUNCTION, _REASON, _OLD_ID))
MCP_REQUEST = Spec("mcpServerToolApprovalRequest", ToolApprovalRequest, (_OLD_SERVER_CALL, _OLD_ID))
MCP_RESPONSE = Spec("mcpServerToolApprovalResponse", ToolApprovalResponse, (_APPROVED, _OLD_ID))

EARLIER = (MCP_CALL, MCP_RESULT, FUNCTION_REQUEST, FUNCTION_RESPONSE, MCP_REQUEST, MCP_RESPONSE)
"""From 9.9 to 10.3.0: what was written in another way than later."""

OPAQUE = frozenset({"reasoning", "data", "uri", "error", "usage", "hostedFile", "hostedVectorStore"})
"""Known types that have no part in approvals."""

PLAIN_FUNCTION = next(spec for spec in CURRENT if spec.content is FunctionCall)
"""How a function call is written wherever it stands."""

_BY_CONTENT = {spec.content: spec for spec in CURRENT}
_BY_TYPE = {spec.discriminator: spec for spec in CURRENT}
_OLD_BY_TYPE = {spec.discriminator: spec for spec in EARLIER}


def known_types() -> list[str]:
    """Gives every `$type` of either generation."""
    return sorted({*_BY_TYPE, *_OLD_BY_TYPE, *OPAQUE})


def spec_to_read(kind: str, names: frozenset[str]) -> tuple[Spec, Notation] | None:
    """Gives how an object with that `$type` and these *names* was written; None for a type without a table."""
    old = _OLD_BY_TYPE.get(kind)
    if old is not None and (kind not in _BY_TYPE or names & old.telling):
        return old, "earlier"
    current = _BY_TYPE.get(kind)
    return (current, "current") if current is not None else None


def spec_to_write(content: Content, notation: Notation) -> tuple[Spec, Notation]:
    """Gives how a content is written; what the earlier generation had no type for is written in the current one."""
    if notation == "earlier":
        old = _earlier_spec(content)
        if old is not None:
            return old, "earlier"
    return _BY_CONTENT[type(content)], "current"


def _earlier_spec(content: Content) -> Spec | None:
    match content:
        case McpServerToolCall():
            return MCP_CALL
        case McpServerToolResult():
            return MCP_RESULT
        case ToolApprovalRequest(tool_call=FunctionCall()):
            return FUNCTION_REQUEST
        case ToolApprovalRequest(tool_call=McpServerToolCall()):
            return MCP_REQUEST
        case ToolApprovalResponse(tool_call=FunctionCall()):
            return FUNCTION_RESPONSE
        case ToolApprovalResponse(tool_call=McpServerToolCall() | None):
            return MCP_RESPONSE
        case _:
            return None

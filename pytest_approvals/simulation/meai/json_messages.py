"""Messages from and to JSON text, in both generations of discriminators.

The text is read strictly and written as .NET does: compact, relaxed escaping, numbers digit by digit.

Reader and writer share tables. No two contents that are read share anything. What was read is written in its order and
with its names, new contents as .NET writes them.

Sources: dotnet/extensions#7299, dotnet/extensions#7164.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from pytest_approvals.errors import ContentError, suggest_name
from pytest_approvals.simulation.meai.contents import (
    CodeInterpreterToolCall,
    CodeInterpreterToolResult,
    Content,
    FunctionCall,
    FunctionResult,
    ImageGenerationToolCall,
    ImageGenerationToolResult,
    InputRequest,
    InputResponse,
    JsonNotation,
    McpServerToolCall,
    McpServerToolResult,
    Message,
    OpaqueContent,
    Text,
    ToolApprovalRequest,
    ToolApprovalResponse,
    ToolCall,
    ToolResult,
    UnknownContent,
    WebSearchToolCall,
    WebSearchToolResult,
)

MAX_DEPTH = 64
"""Maximum depth of Microsoft.Extensions.AI, the default of its serializer."""

_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class ExactNumber(float):
    """A number that keeps its digits, which Python would write differently: `1.0`, `1e5`, `-0`, a thousand digits."""

    __slots__ = ("digits",)

    digits: str

    def __new__(cls, digits: str) -> Self:
        """Keep the digits."""
        number = super().__new__(cls, digits)
        number.digits = digits
        return number


def read_json(text: str | bytes) -> Any:
    """Return the document.

    Raises:
        ContentError: Invalid UTF-8 or JSON, a repeated name in an object, or too deep nesting.
    """
    decoded = text if isinstance(text, str) else _decode(text)
    try:
        document = json.loads(
            # Python's parser refuses a byte order mark.
            decoded.removeprefix("\ufeff"),
            object_pairs_hook=_build_object,
            parse_int=_parse_integer,
            parse_float=ExactNumber,
            parse_constant=_reject_constant,
        )
    except json.JSONDecodeError as error:
        raise ContentError("", f"invalid JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _depth_error("") from None
    _check_depth(document)
    return document


def write_json(value: Any) -> str:
    """Return the document in one line."""
    return "".join(_format_value(value))


def _decode(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ContentError("", f"invalid UTF-8 at byte {error.start}") from None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise ContentError("", f"duplicate name {duplicate!r} in an object")
    return document


def _parse_integer(digits: str) -> int | ExactNumber:
    # Python would lose the sign of `-0`, and limits the digits that it converts.
    return int(digits) if len(digits) < 20 and digits != "-0" else ExactNumber(digits)


def _reject_constant(word: str) -> Any:
    raise ContentError("", f"invalid JSON number {word}")


def _depth_error(where: str) -> ContentError:
    return ContentError(where, f"nested deeper than {MAX_DEPTH} levels, which Microsoft.Extensions.AI does not read")


def _check_depth(document: Any) -> None:
    """Check the depth without recursion."""
    waiting = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, Mapping | list):
            if depth >= MAX_DEPTH:
                raise _depth_error("")
            inner = value.values() if isinstance(value, Mapping) else value
            waiting.extend((part, depth + 1) for part in inner)


def _format_value(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _format_parts("{", "}", [(_format_text(str(name)) + ":", part) for name, part in value.items()])
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from _format_parts("[", "]", [("", part) for part in value])
    else:
        yield _format_scalar(value)


def _format_parts(opening: str, closing: str, parts: list[tuple[str, Any]]) -> Iterator[str]:
    yield opening
    for place, (label, part) in enumerate(parts):
        yield f",{label}" if place else label
        yield from _format_value(part)
    yield closing


def _format_scalar(value: Any) -> str:
    if isinstance(value, str):
        return _format_text(value)
    return value.digits if isinstance(value, ExactNumber) else json.dumps(value)


def _format_text(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda match: _SHORT.get(match[0]) or f"\\u{ord(match[0]):04X}", text) + '"'


FieldKind = Literal["text", "flag", "arguments", "value", "contents", "call", "function", "server"]
"""Kind of a field's value: `call` names its own type, `function` and `server` are calls without a type."""

REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class JsonField:
    """One property of a content.

    Attributes:
        name: Name in JSON.
        attribute: Name in the content.
        default: Value of a missing property; REQUIRED if it must be present.
    """

    name: str
    attribute: str
    kind: FieldKind = "text"
    default: Any = None


@dataclass(frozen=True, slots=True)
class ContentSpec:
    """JSON format of one type in one generation.

    Attributes:
        telling: Names that only this generation has, if both generations share a discriminator.
    """

    discriminator: str
    content: type[Content]
    fields: tuple[JsonField, ...]
    telling: frozenset[str] = frozenset()


_CALL_ID = JsonField("callId", "call_id", "text", REQUIRED)
_REQUEST_ID = JsonField("requestId", "request_id", "text", REQUIRED)
_OLD_ID = JsonField("id", "request_id", "text", REQUIRED)
_APPROVED = JsonField("approved", "approved", "flag", REQUIRED)
_NAME = JsonField("name", "name", "text", REQUIRED)
_SERVER = JsonField("serverName", "server_name")
_ARGUMENTS = JsonField("arguments", "arguments", "arguments")
_REASON = JsonField("reason", "reason")
_OUTPUTS = JsonField("outputs", "outputs", "contents")
_FLAG = JsonField("informationalOnly", "informational_only", "flag", False)

CURRENT_SPECS = (
    ContentSpec("text", Text, (JsonField("text", "text", "text", ""),)),
    ContentSpec("functionCall", FunctionCall, (_NAME, _ARGUMENTS, _FLAG, _CALL_ID)),
    ContentSpec("functionResult", FunctionResult, (JsonField("result", "result", "value"), _CALL_ID)),
    ContentSpec(
        "toolApprovalRequest",
        ToolApprovalRequest,
        (
            JsonField("toolCall", "tool_call", "call", REQUIRED),
            JsonField("requiresConfirmation", "requires_confirmation", "flag", True),
            _REQUEST_ID,
        ),
    ),
    ContentSpec(
        "toolApprovalResponse",
        ToolApprovalResponse,
        (_APPROVED, JsonField("toolCall", "tool_call", "call", REQUIRED), _REASON, _REQUEST_ID),
    ),
    ContentSpec("mcpServerToolCall", McpServerToolCall, (_NAME, _SERVER, _ARGUMENTS, _CALL_ID)),
    ContentSpec("mcpServerToolResult", McpServerToolResult, (_OUTPUTS, _CALL_ID)),
    ContentSpec(
        "codeInterpreterToolCall", CodeInterpreterToolCall, (JsonField("inputs", "inputs", "contents"), _CALL_ID)
    ),
    ContentSpec("codeInterpreterToolResult", CodeInterpreterToolResult, (_OUTPUTS, _CALL_ID)),
    ContentSpec("imageGenerationToolCall", ImageGenerationToolCall, (_CALL_ID,)),
    ContentSpec("imageGenerationToolResult", ImageGenerationToolResult, (_OUTPUTS, _CALL_ID)),
    ContentSpec("webSearchToolCall", WebSearchToolCall, (_CALL_ID,)),
    ContentSpec("webSearchToolResult", WebSearchToolResult, (_OUTPUTS, _CALL_ID)),
    ContentSpec("toolCall", ToolCall, (_CALL_ID,)),
    ContentSpec("toolResult", ToolResult, (_CALL_ID,)),
    ContentSpec("inputRequest", InputRequest, (_REQUEST_ID,)),
    ContentSpec("inputResponse", InputResponse, (_REQUEST_ID,)),
)
"""From 10.4.0 on."""

_OLD_FUNCTION = JsonField("functionCall", "tool_call", "function", REQUIRED)
_OLD_SERVER_CALL = JsonField("toolCall", "tool_call", "server", REQUIRED)

MCP_CALL = ContentSpec(
    "mcpServerToolCall",
    McpServerToolCall,
    (JsonField("toolName", "name", "text", REQUIRED), _SERVER, _ARGUMENTS, _CALL_ID),
    telling=frozenset({"toolName"}),
)
MCP_RESULT = ContentSpec(
    "mcpServerToolResult",
    McpServerToolResult,
    (JsonField("output", "outputs", "contents"), _CALL_ID),
    telling=frozenset({"output"}),
)
FUNCTION_REQUEST = ContentSpec("functionApprovalRequest", ToolApprovalRequest, (_OLD_FUNCTION, _OLD_ID))
FUNCTION_RESPONSE = ContentSpec(
    "functionApprovalResponse", ToolApprovalResponse, (_APPROVED, _OLD_FUNCTION, _REASON, _OLD_ID)
)
MCP_REQUEST = ContentSpec("mcpServerToolApprovalRequest", ToolApprovalRequest, (_OLD_SERVER_CALL, _OLD_ID))
MCP_RESPONSE = ContentSpec("mcpServerToolApprovalResponse", ToolApprovalResponse, (_APPROVED, _OLD_ID))

EARLIER_SPECS = (MCP_CALL, MCP_RESULT, FUNCTION_REQUEST, FUNCTION_RESPONSE, MCP_REQUEST, MCP_RESPONSE)
"""From 9.9 to 10.3.0, if different from later."""

OPAQUE_TYPES = frozenset({"reasoning", "data", "uri", "error", "usage", "hostedFile", "hostedVectorStore"})
"""Known types without a role in approvals."""

PLAIN_FUNCTION = next(spec for spec in CURRENT_SPECS if spec.content is FunctionCall)
"""Format of a function call anywhere."""

_BY_CONTENT = {spec.content: spec for spec in CURRENT_SPECS}
_BY_TYPE = {spec.discriminator: spec for spec in CURRENT_SPECS}
_OLD_BY_TYPE = {spec.discriminator: spec for spec in EARLIER_SPECS}


def known_types() -> list[str]:
    """Return every `$type` of either generation."""
    return sorted({*_BY_TYPE, *_OLD_BY_TYPE, *OPAQUE_TYPES})


def find_read_spec(kind: str, names: frozenset[str]) -> tuple[ContentSpec, JsonNotation] | None:
    """Return the format of an object with that `$type` and these *names*; None for a type without a table."""
    old = _OLD_BY_TYPE.get(kind)
    if old is not None and (kind not in _BY_TYPE or names & old.telling):
        return old, "earlier"
    current = _BY_TYPE.get(kind)
    return (current, "current") if current is not None else None


def find_write_spec(content: Content, notation: JsonNotation) -> tuple[ContentSpec, JsonNotation]:
    """Return the format to write a content in; types unknown to the earlier generation use the current one."""
    if notation == "earlier":
        old = _earlier_spec(content)
        if old is not None:
            return old, "earlier"
    return _BY_CONTENT[type(content)], "current"


def _earlier_spec(content: Content) -> ContentSpec | None:
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


_SHAPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "text": (str, "a text"),
    "flag": (bool, "true or false"),
    "arguments": (Mapping, "an object"),
    "contents": (list, "a list"),
    "call": (Mapping, "an object"),
    "function": (Mapping, "an object"),
    "server": (Mapping, "an object"),
    "value": (object, "anything"),
}
_SHAPE_NAMES = {bool: "true or false", str: "a text", dict: "an object", list: "a list", type(None): "null"}


@dataclass(frozen=True, slots=True)
class ReadNote:
    """An oddity of a document that is not an error."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(slots=True)
class MessageReader:
    """Reader of messages.

    Attributes:
        notes: Oddities: a `$type` that is unknown, missing or not first; a decision without a call.
    """

    notes: list[ReadNote] = field(default_factory=list)

    def messages(self, value: Any, where: str = "messages") -> list[Message]:
        """Return the messages of a JSON list.

        A decision of the earlier generation that does not contain its call gets that of the request before it.

        Raises:
            ContentError: A value has the wrong shape.
        """
        items = require_shape(value, list, where)
        return self._join_requests([self.message(item, f"{where}[{place}]") for place, item in enumerate(items)], where)

    def message(self, value: Any, where: str) -> Message:
        """Read one message."""
        item = require_shape(value, Mapping, where)
        optional = {
            attribute: _optional_text(item, name, where)
            for name, attribute in (
                ("messageId", "message_id"),
                ("authorName", "author_name"),
                ("createdAt", "created_at"),
            )
        }
        role = _optional_text(item, "role", where)
        contents = item.get("contents")
        return Message(
            role="user" if role is None else role,
            contents=self.contents([] if contents is None else contents, f"{where}.contents"),
            source=item,
            **optional,
        )

    def contents(self, value: Any, where: str) -> tuple[Content, ...]:
        """Return the contents of a JSON list."""
        items = require_shape(value, list, where)
        return tuple(self.content(item, f"{where}[{place}]") for place, item in enumerate(items))

    def content(self, value: Any, where: str) -> Content:
        """Read one content; its `$type` names the type."""
        item = require_shape(value, Mapping, where)
        if "$type" not in item:
            if item:
                self._note(where, "has no $type; kept as it is")
            return OpaqueContent(source=item)
        kind = require_shape(item["$type"], str, f"{where}.$type")
        if next(iter(item)) != "$type":
            self._note(where, "$type is not the first name, which .NET refuses by default")
        known = find_read_spec(kind, frozenset(item))
        if known is None:
            return self._read_unmodelled(kind, item, where)
        spec, notation = known
        return replace(self._build(spec, item, where), notation=notation)

    def _read_unmodelled(self, kind: str, item: Mapping[str, Any], where: str) -> Content:
        if kind in OPAQUE_TYPES:
            return OpaqueContent(kind=kind, source=item)
        self._note(where, f"unknown $type {kind!r}, kept as it is{suggest_name(kind, known_types())}")
        return UnknownContent(kind=kind, source=item)

    def _build(self, spec: ContentSpec, item: Mapping[str, Any], where: str) -> Content:
        values = {field.attribute: self._value(field, item, where) for field in spec.fields}
        try:
            return spec.content(source=item, **values)
        except ContentError as error:
            raise ContentError(f"{where}.{error.where}", error.what) from None

    def _value(self, field: JsonField, item: Mapping[str, Any], where: str) -> Any:
        place = f"{where}.{field.name}"
        value = item.get(field.name)
        if value is None:
            if field.default is REQUIRED:
                raise ContentError(place, "is missing" if field.name not in item else "is null, and must not be")
            return field.default
        shape, words = _SHAPES[field.kind]
        if not isinstance(value, shape):
            raise _shape_error(place, words, value)
        return self._read_value(field, value, place)

    def _read_value(self, field: JsonField, value: Any, place: str) -> Any:
        match field.kind:
            case "arguments":
                return deepcopy(value)
            case "contents":
                return self.contents(value, place)
            case "call":
                return self.content(value, place)
            case "function":
                return self._build(PLAIN_FUNCTION, value, place)
            case "server":
                return replace(self._build(MCP_CALL, value, place), notation="earlier")
            case _:
                return value

    def _join_requests(self, messages: list[Message], where: str) -> list[Message]:
        asked: dict[str, Content] = {}
        for place, message in enumerate(messages):
            contents: list[Content] = []
            for index, content in enumerate(message.contents):
                if isinstance(content, ToolApprovalRequest):
                    asked[content.request_id] = content.tool_call
                contents.append(self._with_call(content, asked, f"{where}[{place}].contents[{index}]"))
            if any(new is not old for new, old in zip(contents, message.contents, strict=True)):
                messages[place] = replace(message, contents=tuple(contents))
        return messages

    def _with_call(self, content: Content, asked: Mapping[str, Content], where: str) -> Content:
        if not isinstance(content, ToolApprovalResponse) or content.tool_call is not None:
            return content
        if content.request_id not in asked:
            self._note(where, f"no earlier request has the id {content.request_id!r}, so its call is unknown")
            return content
        return replace(content, tool_call=asked[content.request_id])

    def _note(self, where: str, text: str) -> None:
        self.notes.append(ReadNote(where, text))


def require_shape(value: Any, shape: type, where: str) -> Any:
    """Return the value if it has the shape.

    Raises:
        ContentError: It has another one.
    """
    if not isinstance(value, shape):
        words = {list: "a list", Mapping: "an object", str: "a text", bool: "true or false"}[shape]
        raise _shape_error(where, words, value)
    return value


def read_messages(value: Sequence[Any]) -> list[Message]:
    """Return the messages of a JSON list, without the notes."""
    return MessageReader().messages(value)


def _optional_text(item: Mapping[str, Any], name: str, where: str) -> str | None:
    value = item.get(name)
    return None if value is None else str(require_shape(value, str, f"{where}.{name}"))


def _shape_error(where: str, words: str, value: Any) -> ContentError:
    return ContentError(where, f"must be {words}, and is {_SHAPE_NAMES.get(type(value), 'a number')}")


_MESSAGE_FIELDS = (
    JsonField("role", "role", "text", "user"),
    JsonField("contents", "contents", "contents", ()),
    JsonField("messageId", "message_id"),
    JsonField("authorName", "author_name"),
    JsonField("createdAt", "created_at"),
)


def write_messages(messages: Iterable[Message], notation: JsonNotation | None = None) -> list[dict[str, Any]]:
    """Return the messages as JSON values.

    Args:
        messages: The messages.
        notation: Generation of discriminators to write; None for that of each content.
    """
    return [write_message(message, notation) for message in messages]


def write_message(message: Message, notation: JsonNotation | None = None) -> dict[str, Any]:
    """Return one message as a JSON value."""
    return _lay_out(message.source, _MESSAGE_FIELDS, message, notation)


def write_content(content: Content, notation: JsonNotation | None = None) -> dict[str, Any]:
    """Return one content as a JSON value, with its `$type`."""
    if isinstance(content, OpaqueContent | UnknownContent):
        return dict(content.source) if content.source is not None else {"$type": content.kind} if content.kind else {}
    spec, used = find_write_spec(content, notation or content.notation)
    inside = _write_fields(spec, content, used, notation)
    return inside if "$type" in inside else {"$type": spec.discriminator, **inside}


def _without_type(spec: ContentSpec, call: Content, notation: JsonNotation | None) -> dict[str, Any]:
    """Return a call as the earlier generation nested it: its field implies its type."""
    inside = _write_fields(spec, call, "earlier", notation)
    inside.pop("$type", None)
    if isinstance(call, FunctionCall) and not call.informational_only:
        inside.pop("informationalOnly", None)
    return inside


def _write_fields(
    spec: ContentSpec, content: Content, used: JsonNotation, notation: JsonNotation | None
) -> dict[str, Any]:
    """Return the fields in the order in which they were read; from another generation, keep what is not modelled."""
    source = content.source
    # Both generations write a function call in the same way.
    if source is None or isinstance(content, FunctionCall) or content.notation == used:
        return _lay_out(source, spec.fields, content, notation)
    modelled = {field.name for field in _source_fields(content, source)}
    extra = {name: value for name, value in source.items() if name not in modelled and name != "$type"}
    return {**_lay_out(None, spec.fields, content, notation), **extra}


def _source_fields(content: Content, source: Mapping[str, Any]) -> tuple[JsonField, ...]:
    # Apart from function calls, only a server's call is nested without a type.
    known = find_read_spec(source.get("$type", MCP_CALL.discriminator), frozenset(source))
    return known[0].fields if known is not None else ()


def _lay_out(
    source: Mapping[str, Any] | None, fields: tuple[JsonField, ...], value: Any, notation: JsonNotation | None
) -> dict[str, Any]:
    written = {field.name: (field, _write_value(field, getattr(value, field.attribute), notation)) for field in fields}
    if source is None:
        return {name: inside for name, (_, inside) in written.items() if inside is not None}
    kept = {name: written[name][1] if name in written else inside for name, inside in source.items()}
    added = {
        name: inside
        for name, (field, inside) in written.items()
        if name not in source and (field.default is REQUIRED or getattr(value, field.attribute) != field.default)
    }
    return {**kept, **added}


def _write_value(field: JsonField, value: Any, notation: JsonNotation | None) -> Any:
    if value is None:
        return None
    match field.kind:
        case "contents":
            return [write_content(content, notation) for content in value]
        case "call":
            return write_content(value, notation)
        case "function":
            return _without_type(PLAIN_FUNCTION, value, notation)
        case "server":
            return _without_type(MCP_CALL, value, notation)
        case _:
            return value

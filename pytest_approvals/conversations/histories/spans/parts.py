"""Messages in spans: the shapes of all providers and instrumentations, read as parts.

{"role", "parts": [{"type": "tool_call", ...}]}     semantic conventions since 1.37
{"role", "content", "tool_calls": [...]}            chat completions, events of older conventions, OpenInference
{"role", "content": [{"toolUse": {...}}]}           Bedrock, as Strands traces it
{"role", "content": [{"type": "tool_use", ...}]}    Anthropic
{"role", "parts": [{"function_call": {...}}]}       Gemini, as Google ADK traced it
{"type": "ai", "data" or "kwargs": {...}}           LangChain
{"type": "function_call", "call_id", ...}           items of Responses
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from pytest_approvals.conversations.histories.conversation import ResultOutcome
from pytest_approvals.conversations.histories.spans.span import parse_json
from pytest_approvals.protocols.text import text_of


class TextPart(Struct, tag="text"):
    """A text; None if content is not captured."""

    role: str
    text: str | None


class CallPart(Struct, tag="call"):
    """A call; its arguments are None if content is not captured."""

    id: str | None
    tool: str
    arguments: Any


class ResultPart(Struct, tag="result"):
    """A result of a call."""

    id: str | None
    tool: str | None
    value: Any
    outcome: ResultOutcome = "unknown"


class RequestPart(Struct, tag="request"):
    """An approval request about a call, which may be named by what it shows only."""

    id: str
    call_id: str | None
    tool: str | None = None
    arguments: Any = None


class DecisionPart(Struct, tag="decision"):
    """A decision, with its own copy of the call."""

    id: str
    approved: bool
    call_id: str | None = None
    tool: str | None = None
    arguments: Any = None


Part = TextPart | CallPart | ResultPart | RequestPart | DecisionPart

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "HumanMessage": "user", "AIMessage": "assistant"}
_CALLS = ("tool_call", "tool_use", "function_call", "toolUse", "functionCall")
_RESULTS = ("tool_call_response", "tool_result", "function_response", "toolResult", "functionResponse")


def read_parts(messages: Any, role: str = "user") -> list[Part]:
    """Return the parts of messages: a list of them, a list of such a list, one message, JSON text of it, or a text."""
    parsed = parse_json(messages) if type(messages) is str and messages[:1] in ("[", "{") else messages
    match parsed:
        case [list() as inner, *_]:
            return read_parts(inner, role)
        case list():
            return [part for message in parsed for part in _read_message(message, role)]
        case {"messages": inner} | {"contents": inner}:
            return read_parts(inner, role)
        case dict():
            return list(_read_message(parsed, role))
        case str() if parsed:
            return [TextPart(role, parsed)]
    return []


def _read_message(message: Any, role: str) -> Iterator[Part]:
    if type(message) is not dict:
        return
    for wrapper in ("data", "kwargs", "message"):
        if type(message.get(wrapper)) is dict and ("role" not in message or wrapper == "message"):
            yield from _read_message({"type": message.get("type"), **message[wrapper]}, role)
            return
    kind = message.get("type")
    if "role" not in message and (kind in _CALLS or kind == "function_call_output"):
        yield from _read_part(message, role)
        return
    role = str(message.get("role") or _ROLES.get(str(kind), kind or role))
    role = _ROLES.get(role, role)
    answered = message.get("tool_call_id") or (message.get("id") if role == "tool" else None)
    if answered is not None and "parts" not in message:
        tool = message.get("name")
        status = message.get("status")
        outcome: ResultOutcome = "returned" if status == "success" else "unknown"
        yield ResultPart(str(answered), tool if type(tool) is str else None, message.get("content"), outcome)
        return
    content = message["parts"] if "parts" in message else message.get("content")
    yield from _read_content(content, role)
    for call in message.get("tool_calls") or () if type(message.get("tool_calls")) is list else ():
        yield from _read_call(call)


def _read_content(content: Any, role: str) -> Iterator[Part]:
    if type(content) is str and content[:2] in ("[{", "[]") and type(parse_json(content)) is list:
        content = parse_json(content)
    if type(content) is str:
        if content:
            yield TextPart(role, content)
        return
    for part in content if type(content) is list else ():
        yield from _read_part(part, role)


def _read_part(part: Any, role: str) -> Iterator[Part]:
    if type(part) is str:
        yield TextPart(role, part)
        return
    if type(part) is not dict:
        return
    kind = part.get("type")
    nested = next((name for name in (*_CALLS, *_RESULTS) if type(part.get(name)) is dict), None)
    if kind in ("function_approval_request", "function_approval_response"):
        yield from _read_approval(part, str(kind))
    elif nested in _CALLS or kind in _CALLS:
        yield from _read_call(part[nested] if nested in _CALLS else part)
    elif nested in _RESULTS or kind in (*_RESULTS, "function_call_output"):
        held = part[nested] if nested in _RESULTS else part
        call_id = _first(held, "toolUseId", "tool_use_id", "call_id", "id", "tool_call_id")
        value = _first(held, "response", "result", "output", "content")
        tool = held.get("name")
        yield ResultPart(_text_or_none(call_id), tool if type(tool) is str else None, value)
    elif kind in (None, "text", "input_text", "output_text") and not part.get("thought"):
        text = _first(part, "text", "content")
        if type(text) is str or kind == "text":
            yield TextPart(role, text if type(text) is str else None)


def _read_call(call: Any) -> Iterator[Part]:
    if type(call) is not dict:
        return
    held = call["function"] if type(call.get("function")) is dict else call
    tool = held.get("name")
    if type(tool) is str:
        arguments = _first(held, "arguments", "args", "input")
        yield CallPart(_text_or_none(_first(call, "toolUseId", "call_id", "id")), tool, arguments)


def _read_approval(part: Mapping[str, Any], kind: str) -> Iterator[Part]:
    call = part.get("function_call")
    call = call if type(call) is dict else {}
    call_id, tool = _text_or_none(call.get("call_id")), _text_or_none(call.get("name"))
    request_id = _text_or_none(part.get("id")) or call_id
    if request_id is None:
        return
    if kind.endswith("request"):
        yield RequestPart(request_id, call_id, tool, call.get("arguments"))
    elif type(part.get("approved")) is bool:
        yield DecisionPart(request_id, part["approved"], call_id, tool, call.get("arguments"))


def _first(held: Mapping[str, Any], *names: str) -> Any:
    return next((held[name] for name in names if held.get(name) is not None), None)


def _text_or_none(value: Any) -> str | None:
    return value if type(value) is str and value else None


def plain_result(value: Any) -> Any:
    """Return a result without the wrappers that frameworks put around it.

    >>> [plain_result(value) for value in ([{"text": "a"}], {"result": 5}, "b")]
    ['a', 5, 'b']
    """
    if type(value) is str and value[:1] in ("[", "{"):
        parsed = parse_json(value)
        value = value if parsed is None else parsed
    match value:
        case {"content": inner, "type": "tool"} | {"data": {"content": inner}}:
            return plain_result(inner)
        case {"result": inner} if len(value) == 1:
            return inner
        case [{"text": _}, *_] | [{"type": "text"}, *_]:
            return text_of([{"type": "text", **each} for each in value if type(each) is dict])
    return value


_OPENINFERENCE = re.compile(r"(\d+)\.message\.(.+)")
_CALL_FIELD = re.compile(r"tool_calls\.(\d+)\.tool_call\.(?:function\.)?(\w+)")
_CONTENT_FIELD = re.compile(r"contents\.(\d+)\.message_content\.(\w+)")


def unflatten_messages(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the messages that OpenInference writes as one attribute for each field."""
    messages: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        found = _OPENINFERENCE.fullmatch(name[len(prefix) :]) if name.startswith(prefix) else None
        if found is None:
            continue
        message = messages.setdefault(int(found[1]), {"calls": {}, "texts": {}})
        if (call := _CALL_FIELD.fullmatch(found[2])) is not None:
            message["calls"].setdefault(int(call[1]), {})[call[2]] = value
        elif (content := _CONTENT_FIELD.fullmatch(found[2])) is not None:
            message["texts"].setdefault(int(content[1]), {})[content[2]] = value
        else:
            message[found[2]] = value
    return [_to_message(messages[place]) for place in sorted(messages)]


def _to_message(fields: dict[str, Any]) -> dict[str, Any]:
    calls, texts = fields.pop("calls"), fields.pop("texts")
    if texts and "content" not in fields:
        fields["content"] = [texts[place] for place in sorted(texts)]
    return {**fields, "tool_calls": [calls[place] for place in sorted(calls)]}


def has_content(parts: Sequence[Part]) -> bool:
    """Return whether content was captured, as far as the parts show."""
    return any(
        (isinstance(part, TextPart) and part.text is not None)
        or (isinstance(part, CallPart) and part.arguments is not None)
        or (isinstance(part, ResultPart) and part.value is not None)
        for part in parts
    )

"""Contents of messages in the neutral form, replies as contents, and stream updates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

from agent_framework import Content

from ...contract import HostedResult, Item, ModelCall, Reply, Thought
from ...kit.tool_schema import parse_arguments, write_arguments

APPROVAL_REQUEST, APPROVAL_RESPONSE = "function_approval_request", "function_approval_response"

CALL_PARAMETERS = frozenset(signature(Content.from_function_call).parameters)
"""Fields that a call has in this release."""

HAS_OCCURRENCES = "merge_mode" in CALL_PARAMETERS
"""Whether a call has an identity other than the model's id; not in older releases."""

_THOUGHTS_ARE_MERGED = "merge_mode" in signature(Content.from_text_reasoning).parameters

# --- what the model is sent -------------------------------------------------------------------------------------------


def to_items(messages: Iterable[Any], answer: Iterable[str] = ()) -> list[Item]:
    """Return the model input as a provider would get it.

    Args:
        messages: The framework's messages.
        answer: The fields of a structured answer, which identify a text that contains one.
    """
    fields = frozenset(answer)
    return [item for number, message in enumerate(messages) for item in _message_items(message, number, fields)]


def _message_items(message: Any, number: int, fields: frozenset[str]) -> Iterator[Item]:
    role = str(getattr(message.role, "value", message.role))
    for content in message.contents:
        if _is_sent(content):
            yield _content_item(role, content, number, fields)


def _is_sent(content: Any) -> bool:
    """Return whether a client sends *content*.

    It does not send empty text, and sends approvals only of calls that the provider runs.
    """
    if content.type == "text":
        return bool(content.text)
    return (
        content.type not in (APPROVAL_REQUEST, APPROVAL_RESPONSE) or hosted_server_of(content.function_call) is not None
    )


def _content_item(role: str, content: Any, number: int, fields: frozenset[str]) -> Item:
    if content.type == "text":
        return _text_item(role, content.text or "", number, fields)
    if content.type == "function_call":
        arguments = read_arguments(content.arguments)
        return Item(kind="call", id=content.call_id, tool=content.name, arguments=arguments, message=number)
    if content.type == "function_result":
        return Item(kind="result", id=content.call_id, text=result_text(content), message=number)
    if content.type in (APPROVAL_REQUEST, APPROVAL_RESPONSE):
        return _approval_item(content, number)
    if content.type == "text_reasoning":
        text, signed = content.text or None, content.protected_data
        return Item(kind="reasoning", text=text, signature=signed, message=number)
    if content.type == "mcp_server_tool_result":
        return Item(kind="hosted_result", id=content.call_id, text=_output_text(content.output), message=number)
    return Item(kind="other", message=number)


def _text_item(role: str, text: str, number: int, fields: frozenset[str]) -> Item:
    if role == "user":
        return Item(kind="user", text=text, message=number)
    if role == "assistant" and not carries_answer(text, fields):
        return Item(kind="say", text=text, message=number)
    return Item(kind="other", text=text, message=number)


def carries_answer(text: str, fields: frozenset[str]) -> bool:
    """Return whether a text is a structured answer with some of these fields."""
    value = parse_arguments(text) if fields else None
    return isinstance(value, Mapping) and not fields.isdisjoint(value)


def _approval_item(content: Any, number: int) -> Item:
    call = content.function_call
    answers = content.type == APPROVAL_RESPONSE
    return Item(
        kind="approval_response" if answers else "approval_request",
        id=content.id,
        tool=call.name,
        arguments=read_arguments(call.arguments),
        approved=content.approved if answers else None,
        message=number,
    )


def result_text(content: Any) -> str:
    """Return the result of a call as the model reads it."""
    result = content.result
    return result if isinstance(result, str) else json.dumps(result, default=str)


def _output_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "".join(str(getattr(part, "text", None) or "") for part in output or ())


def read_arguments(arguments: Any) -> Any:
    """Return arguments as an object if they are one; missing ones are an empty object."""
    if not arguments:
        return {}
    return parse_arguments(arguments) if isinstance(arguments, str) else dict(arguments)


# --- what the model answers -------------------------------------------------------------------------------------------


def to_contents(reply: Reply) -> list[Any]:
    """Return a reply as the contents of one message, in a provider's order."""
    text_contents = [Content.from_text(reply.say)] if reply.say is not None else []
    called = [
        content
        for position, call in enumerate(reply.calls)
        for content in (*_to_thought_contents(reply, position), to_call_content(call))
    ]
    return [
        *to_hosted_results(reply.hosted),
        *_to_thought_contents(reply, None),
        *text_contents,
        *called,
        *to_answer_contents(reply),
    ]


def _to_thought_contents(reply: Reply, before: int | None) -> list[Any]:
    """Return the reasoning before a call; None for that before the text and all calls."""
    return [
        Content.from_text_reasoning(id=thought.id, text=thought.text or "", protected_data=thought.signature)
        for thought in reply.thoughts
        if thought.before == before
    ]


def to_thought_piece(thought: Thought, text: str, *, signed: bool) -> Any:
    """Return one piece of reasoning; the signature comes with the last."""
    signed_by = thought.signature if signed else None
    merged: Any = {"merge_mode": "append"} if _THOUGHTS_ARE_MERGED else {}
    return Content.from_text_reasoning(id=thought.id, text=text, protected_data=signed_by, **merged)


def to_call_content(call: ModelCall) -> Any:
    """Return a model's call; one of a hosted server is a request for approval."""
    if call.kind == "hosted_mcp":
        return _to_hosted_request(call)
    return Content.from_function_call(call_id=call.id or "", name=call.tool, arguments=write_arguments(call.arguments))


def _to_hosted_request(call: ModelCall) -> Any:
    """Return a provider's approval request as the framework's Responses client does."""
    fields = {"call_id": call.id or "", "name": call.tool, "arguments": write_arguments(call.arguments)}
    hosted_call = Content.from_function_call(**fields, **hosted_fields(call.server))
    return Content.from_function_approval_request(id=call.id or "", function_call=hosted_call)


def to_hosted_results(results: Sequence[HostedResult]) -> list[Any]:
    """Return what the provider reports of the hosted calls that it ran."""
    return [content for result in results for content in _hosted_result_contents(result)]


def _hosted_result_contents(result: HostedResult) -> Iterator[Any]:
    yield Content.from_mcp_server_tool_call(
        call_id=result.call_id,
        tool_name=result.tool,
        server_name=result.server,
        arguments=write_arguments(result.arguments),
    )
    text = result.output if result.error is None else result.error
    yield Content.from_mcp_server_tool_result(call_id=result.call_id, output=[Content.from_text(text or "")])


def to_answer_contents(reply: Reply) -> list[Any]:
    """Return the structured answer, which is the text of a JSON object."""
    return [] if reply.answer is None else [Content.from_text(json.dumps(dict(reply.answer)))]


class StreamReader:
    """Reader of one stream, update by update.

    Args:
        answer: The fields of a structured answer, which streams like text but is not text.
    """

    def __init__(self, answer: Iterable[str] = ()) -> None:
        self._answer = frozenset(answer)
        self._calls: set[str] = set()

    def read_update(self, update: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what one update shows, as arguments for `World.shown`."""
        for content in update.contents:
            if content.type == "text":
                # Some clients repeat the whole text at its end.
                again = getattr(content, "merge_mode", None) == "replace"
                if content.text and not again and not carries_answer(content.text, self._answer):
                    yield "text", {"text": content.text}
            elif content.type == "function_call":
                yield from self._call(content)
            elif content.type == "function_result":
                yield "result", {"id": content.call_id, "text": result_text(content)}
            elif content.type == APPROVAL_REQUEST:
                yield "request", {"id": content.id}

    def _call(self, content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        # Only the first of a call's pieces has the name.
        key = getattr(content, "id", None) or content.call_id
        if content.name and key not in self._calls:
            self._calls.add(key)
            yield "call", {"id": content.call_id, "tool": content.name}


def hosted_server_of(call: Any) -> str | None:
    """Return the server of a call that the provider runs; early releases have a label for it."""
    if call is None:
        return None
    server: str | None
    if hasattr(call, "hosted"):
        server = call.server_name if call.hosted else None
    else:
        server = (call.additional_properties or {}).get("server_label")
    return server


def hosted_fields(server: str | None) -> dict[str, Any]:
    """Return the fields of a call that name the provider's server."""
    if "hosted" in CALL_PARAMETERS:
        return {"hosted": True, "server_name": server}
    return {"additional_properties": {"server_label": server}}

"""Contents of the framework's messages in the neutral form, and replies of the model as contents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

from agent_framework import Content

from ...contract import HostedResult, Item, ModelCall, Reply
from .requests import REQUEST, RESPONSE, hosted_by, server_of

CALL_TAKES = frozenset(signature(Content.from_function_call).parameters)
"""What this release can say of a call."""

OCCURRENCES = "merge_mode" in CALL_TAKES
"""Whether a call has an identity of its own beside the id that the model gave it; older releases have none."""

# --- what the model is sent -------------------------------------------------------------------------------------------


def items(messages: Iterable[Any], answer: Iterable[str] = ()) -> list[Item]:
    """
    Gives the input of the model as a provider would get it.

    Arguments:
        answer: The fields of a structured answer, by which a text that carries one is known.
    """
    fields = frozenset(answer)
    return [item for number, message in enumerate(messages) for item in _items(message, number, fields)]


def _items(message: Any, number: int, fields: frozenset[str]) -> Iterator[Item]:
    role = str(getattr(message.role, "value", message.role))
    for content in message.contents:
        if _is_sent(content):
            yield _item(role, content, number, fields)


def _is_sent(content: Any) -> bool:
    """Says whether a client sends *content*: no empty text, and approvals only of what the provider runs."""
    if content.type == "text":
        return bool(content.text)
    return content.type not in (REQUEST, RESPONSE) or server_of(content.function_call) is not None


def _item(role: str, content: Any, number: int, fields: frozenset[str]) -> Item:
    if content.type == "text":
        return _text(role, content.text or "", number, fields)
    if content.type == "function_call":
        arguments = parsed(content.arguments)
        return Item(kind="call", id=content.call_id, tool=content.name, arguments=arguments, message=number)
    if content.type == "function_result":
        return Item(kind="result", id=content.call_id, text=result_text(content), message=number)
    if content.type in (REQUEST, RESPONSE):
        return _approval(content, number)
    if content.type == "mcp_server_tool_result":
        return Item(kind="hosted_result", id=content.call_id, text=_output(content.output), message=number)
    return Item(kind="other", message=number)


def _text(role: str, text: str, number: int, fields: frozenset[str]) -> Item:
    if role == "user":
        return Item(kind="user", text=text, message=number)
    if role == "assistant" and not carries(text, fields):
        return Item(kind="say", text=text, message=number)
    return Item(kind="other", text=text, message=number)


def carries(text: str, fields: frozenset[str]) -> bool:
    """Says whether a text is a structured answer with some of these fields."""
    value = parsed(text) if fields else None
    return isinstance(value, Mapping) and not fields.isdisjoint(value)


def _approval(content: Any, number: int) -> Item:
    call = content.function_call
    answers = content.type == RESPONSE
    return Item(
        kind="approval_response" if answers else "approval_request",
        id=content.id,
        tool=call.name,
        arguments=parsed(call.arguments),
        approved=content.approved if answers else None,
        message=number,
    )


def result_text(content: Any) -> str:
    """Gives what the model reads of the result of a call."""
    result = content.result
    return result if isinstance(result, str) else json.dumps(result, default=str)


def _output(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "".join(str(getattr(one, "text", None) or "") for one in output or ())


def parsed(arguments: Any) -> Any:
    """Gives arguments as an object where they are one, else as they are; none at all are an empty object."""
    if not arguments:
        return {}
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    return value if isinstance(value, dict) else arguments


# --- what the model answers -------------------------------------------------------------------------------------------


def contents(reply: Reply) -> list[Any]:
    """Gives a reply as the contents of one message, in the order in which a provider gives them."""
    said = [Content.from_text(reply.say)] if reply.say is not None else []
    return [*ran(reply.hosted), *said, *(call(one) for one in reply.calls), *answered(reply)]


def call(one: ModelCall) -> Any:
    """Gives a call that the model makes; one of a hosted server is a request for approval."""
    if one.kind == "hosted_mcp":
        return _asked(one)
    return Content.from_function_call(call_id=one.id or "", name=one.tool, arguments=written(one.arguments))


def _asked(one: ModelCall) -> Any:
    """Gives what the framework's client for Responses makes of a provider's approval request."""
    told = {"call_id": one.id or "", "name": one.tool, "arguments": written(one.arguments)}
    wanted = Content.from_function_call(**told, **hosted_by(one.server))
    return Content.from_function_approval_request(id=one.id or "", function_call=wanted)


def ran(results: Sequence[HostedResult]) -> list[Any]:
    """Gives what the provider reports of the hosted calls that it ran."""
    return [content for result in results for content in _reported(result)]


def _reported(result: HostedResult) -> Iterator[Any]:
    yield Content.from_mcp_server_tool_call(
        call_id=result.call_id,
        tool_name=result.tool,
        server_name=result.server,
        arguments=written(result.arguments),
    )
    told = result.output if result.error is None else result.error
    yield Content.from_mcp_server_tool_result(call_id=result.call_id, output=[Content.from_text(told or "")])


def answered(reply: Reply) -> list[Any]:
    """Gives the structured answer, which is the text of a JSON object."""
    return [] if reply.answer is None else [Content.from_text(json.dumps(dict(reply.answer)))]


def written(arguments: Mapping[str, Any] | str) -> str:
    """Gives arguments as the model writes them."""
    return arguments if isinstance(arguments, str) else json.dumps(dict(arguments))

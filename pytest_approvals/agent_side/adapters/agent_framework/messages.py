"""Contents of the framework's messages in the neutral form, and replies of the model as contents.

What the framework's stream shows to its consumer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

from agent_framework import Content

from ...contract import HostedResult, Item, ModelCall, Reply

APPROVAL_REQUEST, APPROVAL_RESPONSE = "function_approval_request", "function_approval_response"

CALL_PARAMETERS = frozenset(signature(Content.from_function_call).parameters)
"""What this release can say of a call."""

HAS_OCCURRENCES = "merge_mode" in CALL_PARAMETERS
"""Whether a call has an identity of its own beside the id that the model gave it; older releases have none."""

# --- what the model is sent -------------------------------------------------------------------------------------------


def to_items(messages: Iterable[Any], answer: Iterable[str] = ()) -> list[Item]:
    """
    Gives the input of the model as a provider would get it.

    Arguments:
        answer: The fields of a structured answer, by which a text that carries one is known.
    """
    fields = frozenset(answer)
    return [item for number, message in enumerate(messages) for item in _message_items(message, number, fields)]


def _message_items(message: Any, number: int, fields: frozenset[str]) -> Iterator[Item]:
    role = str(getattr(message.role, "value", message.role))
    for content in message.contents:
        if _is_sent(content):
            yield _content_item(role, content, number, fields)


def _is_sent(content: Any) -> bool:
    """Says whether a client sends *content*: no empty text, and approvals only of what the provider runs."""
    if content.type == "text":
        return bool(content.text)
    return (
        content.type not in (APPROVAL_REQUEST, APPROVAL_RESPONSE) or hosted_server_of(content.function_call) is not None
    )


def _content_item(role: str, content: Any, number: int, fields: frozenset[str]) -> Item:
    if content.type == "text":
        return _text_item(role, content.text or "", number, fields)
    if content.type == "function_call":
        arguments = parse_arguments(content.arguments)
        return Item(kind="call", id=content.call_id, tool=content.name, arguments=arguments, message=number)
    if content.type == "function_result":
        return Item(kind="result", id=content.call_id, text=result_text(content), message=number)
    if content.type in (APPROVAL_REQUEST, APPROVAL_RESPONSE):
        return _approval_item(content, number)
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
    """Says whether a text is a structured answer with some of these fields."""
    value = parse_arguments(text) if fields else None
    return isinstance(value, Mapping) and not fields.isdisjoint(value)


def _approval_item(content: Any, number: int) -> Item:
    call = content.function_call
    answers = content.type == APPROVAL_RESPONSE
    return Item(
        kind="approval_response" if answers else "approval_request",
        id=content.id,
        tool=call.name,
        arguments=parse_arguments(call.arguments),
        approved=content.approved if answers else None,
        message=number,
    )


def result_text(content: Any) -> str:
    """Gives what the model reads of the result of a call."""
    result = content.result
    return result if isinstance(result, str) else json.dumps(result, default=str)


def _output_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "".join(str(getattr(one, "text", None) or "") for one in output or ())


def parse_arguments(arguments: Any) -> Any:
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


def to_contents(reply: Reply) -> list[Any]:
    """Gives a reply as the contents of one message, in the order in which a provider gives them."""
    said = [Content.from_text(reply.say)] if reply.say is not None else []
    return [
        *to_hosted_results(reply.hosted),
        *said,
        *(to_call_content(one) for one in reply.calls),
        *to_answer_contents(reply),
    ]


def to_call_content(one: ModelCall) -> Any:
    """Gives a call that the model makes; one of a hosted server is a request for approval."""
    if one.kind == "hosted_mcp":
        return _to_hosted_request(one)
    return Content.from_function_call(call_id=one.id or "", name=one.tool, arguments=arguments_text(one.arguments))


def _to_hosted_request(one: ModelCall) -> Any:
    """Gives what the framework's client for Responses makes of a provider's approval request."""
    told = {"call_id": one.id or "", "name": one.tool, "arguments": arguments_text(one.arguments)}
    wanted = Content.from_function_call(**told, **hosted_fields(one.server))
    return Content.from_function_approval_request(id=one.id or "", function_call=wanted)


def to_hosted_results(results: Sequence[HostedResult]) -> list[Any]:
    """Gives what the provider reports of the hosted calls that it ran."""
    return [content for result in results for content in _hosted_result_contents(result)]


def _hosted_result_contents(result: HostedResult) -> Iterator[Any]:
    yield Content.from_mcp_server_tool_call(
        call_id=result.call_id,
        tool_name=result.tool,
        server_name=result.server,
        arguments=arguments_text(result.arguments),
    )
    told = result.output if result.error is None else result.error
    yield Content.from_mcp_server_tool_result(call_id=result.call_id, output=[Content.from_text(told or "")])


def to_answer_contents(reply: Reply) -> list[Any]:
    """Gives the structured answer, which is the text of a JSON object."""
    return [] if reply.answer is None else [Content.from_text(json.dumps(dict(reply.answer)))]


def arguments_text(arguments: Mapping[str, Any] | str) -> str:
    """Gives arguments as the model writes them."""
    return arguments if isinstance(arguments, str) else json.dumps(dict(arguments))


class StreamReader:
    """
    What one stream shows, piece by piece.

    Arguments:
        answer: The fields of a structured answer, which is streamed as text and is none.
    """

    def __init__(self, answer: Iterable[str] = ()) -> None:
        self._answer = frozenset(answer)
        self._calls: set[str] = set()

    def seen(self, update: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Gives what one update shows, as arguments for `World.shown`."""

        for content in update.contents:
            if content.type == "text":
                # At its end some clients give a text once more as a whole.
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
        # A call comes in several pieces, of which the first has the name.
        key = getattr(content, "id", None) or content.call_id
        if content.name and key not in self._calls:
            self._calls.add(key)
            yield "call", {"id": content.call_id, "tool": content.name}


def hosted_server_of(call: Any) -> str | None:
    """Gives the server that a call is for, where the provider runs it; early releases have a label for that."""
    if call is None:
        return None
    server: str | None
    if hasattr(call, "hosted"):
        server = call.server_name if call.hosted else None
    else:
        server = (call.additional_properties or {}).get("server_label")
    return server


def hosted_fields(server: str | None) -> dict[str, Any]:
    """Gives the fields of a call that say which server of the provider runs it."""

    if "hosted" in CALL_PARAMETERS:
        return {"hosted": True, "server_name": server}
    return {"additional_properties": {"server_label": server}}

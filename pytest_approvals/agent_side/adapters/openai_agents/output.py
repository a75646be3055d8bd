"""A reply of the script as output items of the Responses API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

from openai.types.responses import (
    Response,
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
)
from openai.types.responses.response_output_item import McpApprovalRequest, McpCall

from ...contract import HostedResult, ModelCall, Reply


def output_items(reply: Reply, key: str) -> list[ResponseOutputItem]:
    """
    Gives the items of *reply*: what the provider ran, then the text, then the structured answer, then the calls.

    Arguments:
        key: Makes the ids of the items.
    """
    items: list[ResponseOutputItem] = [_ran(result) for result in reply.hosted]
    if reply.say is not None:
        items.append(message(reply.say, f"msg_{key}"))
    if reply.answer is not None:
        items.append(message(arguments_text(reply.answer), f"msg_{key}_answer"))
    items += [_call(call, f"fc_{key}_{index}") for index, call in enumerate(reply.calls)]
    return items


def message(text: str | None, item_id: str) -> ResponseOutputMessage:
    """Gives a message of the model; None is one that has not begun to speak."""
    parts = [] if text is None else [text_part(text)]
    return ResponseOutputMessage(
        id=item_id,
        type="message",
        role="assistant",
        status="in_progress" if text is None else "completed",
        content=[*parts],
    )


def text_part(text: str) -> ResponseOutputText:
    """Gives the part of a message that holds its text."""
    return ResponseOutputText(type="output_text", text=text, annotations=[])


def response(key: str, items: list[ResponseOutputItem], status: str = "completed") -> Response:
    """Gives the response that holds *items*."""
    return Response.model_validate(
        {
            "id": f"resp_{key}",
            "created_at": 0,
            "model": "scripted",
            "object": "response",
            "output": [],
            "status": status,
            "tool_choice": "auto",
            "tools": [],
            "parallel_tool_calls": True,
        }
    ).model_copy(update={"output": items})


def arguments_text(arguments: Mapping[str, object] | str) -> str:
    """Gives arguments as the model writes them."""
    return arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)


def _call(call: ModelCall, item_id: str) -> ResponseOutputItem:
    arguments = arguments_text(call.arguments)
    if call.kind == "hosted_mcp":
        return McpApprovalRequest(
            type="mcp_approval_request",
            id=call.id or item_id,
            name=call.tool,
            server_label=call.server or "",
            arguments=arguments,
        )
    return ResponseFunctionToolCall(
        type="function_call",
        id=item_id,
        call_id=call.id,  # type: ignore[arg-type]  # a call without an id fails here, as the type of the SDK says
        name=call.tool,
        arguments=arguments,
        status="completed",
    )


def _ran(result: HostedResult) -> McpCall:
    return McpCall.model_validate(
        {
            "type": "mcp_call",
            "id": f"mcp_{result.call_id}",
            "approval_request_id": result.call_id,
            "name": result.tool,
            "server_label": result.server or "",
            "arguments": arguments_text(result.arguments),
            "output": result.output,
            "error": None if result.error is None else _failure(result.error),
            "status": "completed" if result.error is None else "failed",
        }
    )


def _failure(text: str) -> Any:
    # In early releases of the client an error is its text.
    if str in get_args(McpCall.model_fields["error"].annotation):
        return text
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}

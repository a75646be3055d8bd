"""Approval requests of the framework, which are contents of messages, in the neutral form and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ...contract import MAIN, Request

REQUEST = "function_approval_request"


def requests_of(contents: Iterable[Any]) -> tuple[Request, ...]:
    """Gives what a person is shown of the contents that ask for approval."""
    return tuple(request_of(content) for content in contents if content.type == REQUEST)


def request_of(content: Any, *, agent: str = MAIN) -> Request:
    """Gives what a person is shown of one request."""
    from .contents import parsed

    call = content.function_call
    server = server_of(call)
    return Request(
        id=content.id,
        call_id=call.call_id,
        tool=call.name,
        arguments=parsed(call.arguments),
        kind="hosted_mcp" if server is not None else "function",
        server=server,
        agent=agent,
        handle=content,
    )


def server_of(call: Any) -> str | None:
    """Gives the server that a call is for, where the provider runs it."""
    labelled: str | None = (call.additional_properties or {}).get("server_label")
    if hasattr(call, "hosted"):
        named: str | None = call.server_name if call.hosted else None
        return named
    return labelled


def content_of(request: Request) -> Any:
    """
    Gives the request as the framework has it: the object that it showed, or one rebuilt out of JSON.

    The JSON of a request holds its call, with the identity that the framework gave it.
    """
    if request.handle is not None:
        return request.handle
    return rebuilt(request)


def rebuilt(request: Request) -> Any:
    """Gives a request of the framework that says what *request* says."""
    from agent_framework import Content

    call: dict[str, Any] = {
        "type": "function_call",
        "call_id": request.call_id or "",
        "name": request.tool,
        "arguments": request.arguments if isinstance(request.arguments, str) else json.dumps(dict(request.arguments)),
    }
    if request.kind == "hosted_mcp":
        call |= {"additional_properties": {"server_label": request.server}}
    elif request.id != request.call_id:
        call |= {"id": request.id}
    return Content.from_dict({"type": REQUEST, "id": request.id, "function_call": call, "user_input_request": True})

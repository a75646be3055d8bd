"""Approval requests of the framework, which are contents of messages, in the neutral form and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...contract import MAIN, Request, ToolSpec

REQUEST, RESPONSE = "function_approval_request", "function_approval_response"


def requests_of(contents: Iterable[Any], specs: Iterable[ToolSpec] = ()) -> tuple[Request, ...]:
    """Gives what a person is shown of the contents that ask for approval; *specs* are the tools of the agent."""
    return with_servers((request_of(content) for content in contents if content.type == REQUEST), specs)


def with_servers(requests: Iterable[Request], specs: Iterable[ToolSpec]) -> tuple[Request, ...]:
    """Gives the requests with the servers that the agent connects to, of which they say only the name of the tool."""
    connected = {spec.name: spec.server for spec in specs if spec.kind == "mcp"}
    return tuple(
        replace(one, kind="mcp", server=connected[one.tool])
        if one.kind == "function" and one.tool in connected
        else one
        for one in requests
    )


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
    """Gives the server that a call is for, where the provider runs it; early releases have a label for that."""
    if call is None:
        return None
    server: str | None
    if hasattr(call, "hosted"):
        server = call.server_name if call.hosted else None
    else:
        server = (call.additional_properties or {}).get("server_label")
    return server


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

    from .contents import OCCURRENCES, written

    call = {
        "type": "function_call",
        "call_id": request.call_id or "",
        "name": request.tool,
        "arguments": written(request.arguments),
    }
    if request.kind == "hosted_mcp":
        call |= hosted_by(request.server)
    elif OCCURRENCES:
        call |= {"id": request.id}
    return Content.from_dict({"type": REQUEST, "id": request.id, "function_call": call, "user_input_request": True})


def hosted_by(server: str | None) -> dict[str, Any]:
    """Gives the fields of a call that say which server of the provider runs it."""
    from .contents import CALL_TAKES

    if "hosted" in CALL_TAKES:
        return {"hosted": True, "server_name": server}
    return {"additional_properties": {"server_label": server}}

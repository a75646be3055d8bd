"""Approval requests and decisions, which are contents of the framework's messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ...contract import MAIN, Decision, Request, ToolSpec, Unsupported
from ...kit.tool_schema import write_arguments
from .messages import (
    APPROVAL_REQUEST,
    HAS_OCCURRENCES,
    hosted_fields,
    hosted_server_of,
    read_arguments,
)


def read_requests(contents: Iterable[Any], specs: Iterable[ToolSpec] = ()) -> tuple[Request, ...]:
    """Return the requests among *contents*; *specs* are the tools of the agent."""
    return add_servers((read_request(content) for content in contents if content.type == APPROVAL_REQUEST), specs)


def add_servers(requests: Iterable[Request], specs: Iterable[ToolSpec]) -> tuple[Request, ...]:
    """Return the requests with the servers of MCP tools, of which they only have the name."""
    servers = {spec.name: spec.server for spec in specs if spec.kind == "mcp"}
    return tuple(
        replace(request, kind="mcp", server=servers[request.tool])
        if request.kind == "function" and request.tool in servers
        else request
        for request in requests
    )


def read_request(content: Any, *, agent: str = MAIN) -> Request:
    """Return the approval request of one content."""
    call = content.function_call
    server = hosted_server_of(call)
    return Request(
        id=content.id,
        call_id=call.call_id,
        tool=call.name,
        arguments=read_arguments(call.arguments),
        kind="hosted_mcp" if server is not None else "function",
        server=server,
        agent=agent,
        handle=content,
    )


def request_content(request: Request) -> Any:
    """Return the framework's request: the object that it showed, or one rebuilt from JSON.

    The JSON of a request has its call, with the identity that the framework gave it.
    """
    if request.handle is not None:
        return request.handle
    return rebuild_request(request)


def rebuild_request(request: Request) -> Any:
    """Build a request of the framework from *request*."""
    from agent_framework import Content

    call = {
        "type": "function_call",
        "call_id": request.call_id or "",
        "name": request.tool,
        "arguments": write_arguments(request.arguments),
    }
    if request.kind == "hosted_mcp":
        call |= hosted_fields(request.server)
    elif HAS_OCCURRENCES:
        call |= {"id": request.id}
    return Content.from_dict(
        {"type": APPROVAL_REQUEST, "id": request.id, "function_call": call, "user_input_request": True}
    )


DecisionWriter = Callable[[Decision], Any]
"""Returns the content of a decision."""


def write_decisions(text: str | None, decisions: Sequence[Decision], answer: DecisionWriter) -> Any:
    """Return the caller's message; None if it is empty."""
    from agent_framework import Content, Message

    contents = [answer(decision) for decision in decisions]
    if text is not None:
        contents.append(Content.from_text(text))
    return Message("user", contents) if contents else None


def write_plain(decision: Decision) -> Any:
    """Return the answer to one request, which is yes or no.

    A reason goes into the additional properties of the content, where the framework itself puts the reason of a
    standing approval.
    """
    if decision.verdict not in ("approve", "reject", "raw"):
        raise Unsupported(decision.verdict, "a response says whether a call is approved, and nothing else")
    approved = decision.raw if decision.verdict == "raw" else decision.verdict == "approve"
    answer = _write_response(decision, approved)
    if decision.reason is not None:
        answer.additional_properties["reason"] = decision.reason
    return answer


def write_standing(decision: Decision) -> Any:
    """Return the answer to one request, which may be a standing approval of its tool."""
    if decision.verdict != "always":
        return write_plain(decision)
    if decision.request is None:
        raise Unsupported("malformed_address", "a standing approval is made from a request")
    from agent_framework import create_always_approve_tool_response

    return create_always_approve_tool_response(request_content(decision.request))


def _write_response(decision: Decision, approved: Any) -> Any:
    if decision.request is not None:
        return request_content(decision.request).to_function_approval_response(approved)
    from agent_framework import Content

    # The address is answered as if it were a request; the framework checks the type there.
    return Content.to_function_approval_response(decision.address, approved)

"""Approval requests of the framework, which are contents of messages, in the neutral form and back.

Decisions as the framework takes them: contents of a message of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ...contract import MAIN, Decision, Request, ToolSpec, Unsupported
from .messages import (
    APPROVAL_REQUEST,
    HAS_OCCURRENCES,
    arguments_text,
    hosted_fields,
    hosted_server_of,
    parse_arguments,
)


def read_requests(contents: Iterable[Any], specs: Iterable[ToolSpec] = ()) -> tuple[Request, ...]:
    """Gives what a person is shown of the contents that ask for approval; *specs* are the tools of the agent."""
    return add_servers((read_request(content) for content in contents if content.type == APPROVAL_REQUEST), specs)


def add_servers(requests: Iterable[Request], specs: Iterable[ToolSpec]) -> tuple[Request, ...]:
    """Gives the requests with the servers that the agent connects to, of which they say only the name of the tool."""
    connected = {spec.name: spec.server for spec in specs if spec.kind == "mcp"}
    return tuple(
        replace(one, kind="mcp", server=connected[one.tool])
        if one.kind == "function" and one.tool in connected
        else one
        for one in requests
    )


def read_request(content: Any, *, agent: str = MAIN) -> Request:
    """Gives what a person is shown of one request."""
    call = content.function_call
    server = hosted_server_of(call)
    return Request(
        id=content.id,
        call_id=call.call_id,
        tool=call.name,
        arguments=parse_arguments(call.arguments),
        kind="hosted_mcp" if server is not None else "function",
        server=server,
        agent=agent,
        handle=content,
    )


def request_content(request: Request) -> Any:
    """
    Gives the request as the framework has it: the object that it showed, or one rebuilt out of JSON.

    The JSON of a request holds its call, with the identity that the framework gave it.
    """
    if request.handle is not None:
        return request.handle
    return rebuild_request(request)


def rebuild_request(request: Request) -> Any:
    """Gives a request of the framework that says what *request* says."""
    from agent_framework import Content

    call = {
        "type": "function_call",
        "call_id": request.call_id or "",
        "name": request.tool,
        "arguments": arguments_text(request.arguments),
    }
    if request.kind == "hosted_mcp":
        call |= hosted_fields(request.server)
    elif HAS_OCCURRENCES:
        call |= {"id": request.id}
    return Content.from_dict(
        {"type": APPROVAL_REQUEST, "id": request.id, "function_call": call, "user_input_request": True}
    )


DecisionWriter = Callable[[Decision], Any]
"""Gives the content that says a decision."""


def write_decisions(text: str | None, decisions: Sequence[Decision], answer: DecisionWriter) -> Any:
    """Gives the caller's message; None where there is nothing to say."""
    from agent_framework import Content, Message

    contents = [answer(decision) for decision in decisions]
    if text is not None:
        contents.append(Content.from_text(text))
    return Message("user", contents) if contents else None


def write_plain(decision: Decision) -> Any:
    """
    Gives the answer to one request, which is yes or no.

    A reason goes where a content keeps what it has no field for, as the framework itself does it with the reason of a
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
    """Gives the answer to one request, which may be meant for all further calls of its tool."""
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

    # What stands in the place of a request is answered as one; the framework guards its own type there.
    return Content.to_function_approval_response(decision.address, approved)

"""Decisions as the framework takes them: contents of a message of the caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...contract import Decision, Unsupported
from .requests import content_of

Answer = Callable[[Decision], Any]
"""Gives the content that says a decision."""


def message(text: str | None, decisions: Sequence[Decision], answer: Answer) -> Any:
    """Gives the caller's message; None where there is nothing to say."""
    from agent_framework import Content, Message

    contents = [answer(decision) for decision in decisions]
    if text is not None:
        contents.append(Content.from_text(text))
    return Message("user", contents) if contents else None


def plain(decision: Decision) -> Any:
    """
    Gives the answer to one request, which is yes or no.

    A reason goes where a content keeps what it has no field for, as the framework itself does it with the reason of a
    standing approval.
    """
    if decision.verdict not in ("approve", "reject", "raw"):
        raise Unsupported(decision.verdict, "a response says whether a call is approved, and nothing else")
    approved = decision.raw if decision.verdict == "raw" else decision.verdict == "approve"
    answer = _addressed(decision, approved)
    if decision.reason is not None:
        answer.additional_properties["reason"] = decision.reason
    return answer


def standing(decision: Decision) -> Any:
    """Gives the answer to one request, which may be meant for all further calls of its tool."""
    if decision.verdict != "always":
        return plain(decision)
    if decision.request is None:
        raise Unsupported("malformed_address", "a standing approval is made from a request")
    from agent_framework import create_always_approve_tool_response

    return create_always_approve_tool_response(content_of(decision.request))


def _addressed(decision: Decision, approved: Any) -> Any:
    if decision.request is not None:
        return content_of(decision.request).to_function_approval_response(approved)
    from agent_framework import Content

    # What stands in the place of a request is answered as one; the framework guards its own type there.
    return Content.to_function_approval_response(decision.address, approved)

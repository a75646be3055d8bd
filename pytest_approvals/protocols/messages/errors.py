"""
The errors of Messages: their body, and broken neutral rules in Anthropic's words.

The body is the one of Anthropic's API reference ("errors"); the sentences are those of real answers, as people quote
them: anthropics/claude-code#7929 (a call without a result), anthropics/claude-code#18947 (a result without its call),
sipeed/picoclaw#1793 (a second result), trycua/cua#524 (an id that comes again).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.complaints import Complaint
from pytest_approvals.protocols.rules import BrokenRule

from .rules import blocks_of

_FAILURES = {
    401: ("authentication_error", "invalid x-api-key"),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed the rate limit. Please try again later."),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}


def error_body(complaint: Complaint) -> dict[str, Any]:
    """Gives the body of an answer that refuses or fails."""
    return {"type": "error", "error": {"type": complaint.kind, "message": complaint.text}}


def failure(status: int) -> Complaint:
    """Gives what Anthropic says when it fails with that status."""
    other = ("api_error" if status >= 500 else "invalid_request_error", f"The request failed with status {status}.")
    kind, text = _FAILURES.get(status, other)
    return Complaint(text=text, status=status, kind=kind)


def not_json() -> Complaint:
    """Gives what Anthropic says to a body that is not JSON."""
    return Complaint(rule="not-json", text="The request body is not valid JSON: expected value at line 1 column 1")


def worded(broken: BrokenRule, asked: Asked) -> Complaint:
    """Gives a broken rule in the provider's words; a complaint of the protocol's own is in them already."""
    if isinstance(broken, Complaint):
        return broken
    text = _WORDS.get(broken.rule, _plain)(broken, asked)
    return Complaint(rule=broken.rule, ids=broken.ids, text=text)


def _unanswered(broken: BrokenRule, asked: Asked) -> str:
    place = asked.place("call", broken.ids[0]) if broken.ids else 0
    return (
        f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(broken.ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def _orphan(broken: BrokenRule, asked: Asked) -> str:
    return (
        f"{_block(broken, asked, 'tool_result', 'tool_use_id')}: unexpected `tool_use_id` found in `tool_result` "
        f"blocks: {', '.join(broken.ids)}. Each `tool_result` block must have a corresponding `tool_use` block in the "
        "previous message."
    )


def _second(broken: BrokenRule, asked: Asked) -> str:
    place = _block(broken, asked, "tool_result", "tool_use_id")
    return (
        f"{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
        f"{', '.join(broken.ids)}"
    )


def _repeated(broken: BrokenRule, asked: Asked) -> str:
    return f"{_block(broken, asked, 'tool_use', 'id')}: `tool_use` ids must be unique"


def _no_object(broken: BrokenRule, asked: Asked) -> str:
    return f"{_block(broken, asked, 'tool_use', 'id')}.tool_use.input: Input should be a valid dictionary"


def _nameless(broken: BrokenRule, asked: Asked) -> str:
    return "messages.tool_use.id: Field required"


def _block(broken: BrokenRule, asked: Asked, kind: str, name: str) -> str:
    """Gives the place of the last block of that kind with the rule's id."""
    found = "messages"
    for number, message in enumerate(asked.body.get("messages") or ()):
        for index, block in enumerate(blocks_of(message)):
            if block.get("type") == kind and block.get(name) in broken.ids:
                found = f"messages.{number}.content.{index}"
    return found


def _plain(broken: BrokenRule, asked: Asked) -> str:
    return f"messages: {broken.text}"


_WORDS: dict[str, Callable[[BrokenRule, Asked], str]] = {
    "empty-input": lambda broken, asked: "messages: at least one message is required",
    "first-not-user": lambda broken, asked: 'messages: first message must use the "user" role',
    "empty-text": lambda broken, asked: "messages: text content blocks must contain non-whitespace text",
    "call-without-result": _unanswered,
    "result-not-adjacent": _unanswered,
    "result-without-call": _orphan,
    "second-result": _second,
    "duplicate-call-id": _repeated,
    "repeated-call-id": _repeated,
    "arguments-not-an-object": _no_object,
    "call-without-id": _nameless,
}

"""
The errors of Messages: their body, and broken neutral rules in Anthropic's words.

The body is the one of Anthropic's API reference ("errors"); the sentences are those of real answers, as people quote
them: anthropics/claude-code#7929 (a call without a result), anthropics/claude-code#18947 (a result without its call),
sipeed/picoclaw#1793 (a second result), trycua/cua#524 (an id that comes again).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.messages.requests import blocks_of
from pytest_approvals.protocols.provider_errors import ProviderError

_FAILURES = {
    401: ("authentication_error", "invalid x-api-key"),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed the rate limit. Please try again later."),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}


def anthropic_error_body(complaint: ProviderError) -> dict[str, Any]:
    """Gives the body of an answer that refuses or fails."""
    return {"type": "error", "error": {"type": complaint.kind, "message": complaint.text}}


def anthropic_failure(status: int) -> ProviderError:
    """Gives what Anthropic says when it fails with that status."""
    other = ("api_error" if status >= 500 else "invalid_request_error", f"The request failed with status {status}.")
    kind, text = _FAILURES.get(status, other)
    return ProviderError(text=text, status=status, kind=kind)


def anthropic_invalid_json() -> ProviderError:
    """Gives what Anthropic says to a body that is not JSON."""
    return ProviderError(rule="not-json", text="The request body is not valid JSON: expected value at line 1 column 1")


def express(broken: RuleViolation, asked: ParsedRequest) -> ProviderError:
    """Gives a broken rule in the provider's words; a complaint of the protocol's own is in them already."""
    if isinstance(broken, ProviderError):
        return broken
    text = _WORDS.get(broken.rule, _other_violation)(broken, asked)
    return ProviderError(rule=broken.rule, ids=broken.ids, text=text)


def _missing_results(broken: RuleViolation, asked: ParsedRequest) -> str:
    place = asked.place("call", broken.ids[0]) if broken.ids else 0
    return (
        f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(broken.ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def _unexpected_result(broken: RuleViolation, asked: ParsedRequest) -> str:
    return (
        f"{_block_path(broken, asked, 'tool_result', 'tool_use_id')}: unexpected `tool_use_id` found in `tool_result` "
        f"blocks: {', '.join(broken.ids)}. Each `tool_result` block must have a corresponding `tool_use` block in the "
        "previous message."
    )


def _second_result(broken: RuleViolation, asked: ParsedRequest) -> str:
    place = _block_path(broken, asked, "tool_result", "tool_use_id")
    return (
        f"{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
        f"{', '.join(broken.ids)}"
    )


def _repeated_id(broken: RuleViolation, asked: ParsedRequest) -> str:
    return f"{_block_path(broken, asked, 'tool_use', 'id')}: `tool_use` ids must be unique"


def _invalid_input(broken: RuleViolation, asked: ParsedRequest) -> str:
    return f"{_block_path(broken, asked, 'tool_use', 'id')}.tool_use.input: Input should be a valid dictionary"


def _missing_id(broken: RuleViolation, asked: ParsedRequest) -> str:
    return "messages.tool_use.id: Field required"


def _block_path(broken: RuleViolation, asked: ParsedRequest, kind: str, name: str) -> str:
    """Gives the place of the last block of that kind with the rule's id."""
    found = "messages"
    for number, message in enumerate(asked.body.get("messages") or ()):
        for index, block in enumerate(blocks_of(message)):
            if block.get("type") == kind and block.get(name) in broken.ids:
                found = f"messages.{number}.content.{index}"
    return found


def _other_violation(broken: RuleViolation, asked: ParsedRequest) -> str:
    return f"messages: {broken.text}"


_WORDS: dict[str, Callable[[RuleViolation, ParsedRequest], str]] = {
    "empty-input": lambda broken, asked: "messages: at least one message is required",
    "first-not-user": lambda broken, asked: 'messages: first message must use the "user" role',
    "empty-text": lambda broken, asked: "messages: text content blocks must contain non-whitespace text",
    "call-without-result": _missing_results,
    "result-not-adjacent": _missing_results,
    "result-without-call": _unexpected_result,
    "second-result": _second_result,
    "duplicate-call-id": _repeated_id,
    "repeated-call-id": _repeated_id,
    "arguments-not-an-object": _invalid_input,
    "call-without-id": _missing_id,
}

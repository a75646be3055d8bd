"""
Broken neutral rules in the words of Chat Completions.

The sentences are those of real answers, as people quote them: agno-agi/agno#4345 (a call without a result) and
agno-agi/agno#5116 (a second result).
"""

from __future__ import annotations

from collections.abc import Callable

from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import ProviderError, empty_array, missing_parameter

_Words = Callable[[RuleViolation, ParsedRequest], tuple[str, str | None]]


def express(broken: RuleViolation, asked: ParsedRequest) -> ProviderError:
    """Gives a broken rule in the provider's words; a complaint of the protocol's own is in them already."""
    if isinstance(broken, ProviderError):
        return broken
    if broken.rule == "empty-input":
        return _as_violation(empty_array("messages"), broken)
    if broken.rule == "call-without-id":
        return _as_violation(missing_parameter("messages[].tool_calls[].id"), broken)
    text, param = _WORDS.get(broken.rule, _other_violation)(broken, asked)
    return ProviderError(rule=broken.rule, ids=broken.ids, text=text, param=param)


def _as_violation(complaint: ProviderError, broken: RuleViolation) -> ProviderError:
    return ProviderError(
        rule=broken.rule, ids=broken.ids, text=complaint.text, param=complaint.param, code=complaint.code
    )


def _missing_results(broken: RuleViolation, asked: ParsedRequest) -> tuple[str, str | None]:
    text = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(broken.ids)}"
    )
    return text, f"messages.[{_message_index(broken, asked, 'call') + 1}].role"


def _unexpected_result(broken: RuleViolation, asked: ParsedRequest) -> tuple[str, str | None]:
    text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    return text, f"messages.[{_message_index(broken, asked, 'result')}].role"


def _second_result(broken: RuleViolation, asked: ParsedRequest) -> tuple[str, str | None]:
    name = broken.ids[0] if broken.ids else ""
    places = [item.message for item in asked.items if item.kind == "result" and item.id == name][-2:]
    told = " and ".join(f"messages[{place}]" for place in places)
    text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{name}', in {told}."
    return text, f"messages.[{places[-1] if places else 0}].tool_call_id"


def _duplicate_id(broken: RuleViolation, asked: ParsedRequest) -> tuple[str, str | None]:
    name = broken.ids[0] if broken.ids else ""
    text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{name}'."
    return text, f"messages.[{_message_index(broken, asked, 'call')}].tool_calls"


def _other_violation(broken: RuleViolation, asked: ParsedRequest) -> tuple[str, str | None]:
    return f"Invalid parameter: {broken.text}.", "messages"


def _message_index(broken: RuleViolation, asked: ParsedRequest, kind: str) -> int:
    return asked.place(kind, broken.ids[0]) if broken.ids else 0


_WORDS: dict[str, _Words] = {
    "call-without-result": _missing_results,
    "result-not-adjacent": _missing_results,
    "result-without-call": _unexpected_result,
    "second-result": _second_result,
    "duplicate-call-id": _duplicate_id,
}

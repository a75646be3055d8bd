"""
Broken neutral rules in the words of Chat Completions.

The sentences are those of real answers, as people quote them: agno-agi/agno#4345 (a call without a result) and
agno-agi/agno#5116 (a second result).
"""

from __future__ import annotations

from collections.abc import Callable

from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.complaints import Complaint
from pytest_approvals.protocols.openai_errors import empty_array, missing
from pytest_approvals.protocols.rules import BrokenRule

_Words = Callable[[BrokenRule, Asked], tuple[str, str | None]]


def worded(broken: BrokenRule, asked: Asked) -> Complaint:
    """Gives a broken rule in the provider's words; a complaint of the protocol's own is in them already."""
    if isinstance(broken, Complaint):
        return broken
    if broken.rule == "empty-input":
        return _renamed(empty_array("messages"), broken)
    if broken.rule == "call-without-id":
        return _renamed(missing("messages[].tool_calls[].id"), broken)
    text, param = _WORDS.get(broken.rule, _plain)(broken, asked)
    return Complaint(rule=broken.rule, ids=broken.ids, text=text, param=param)


def _renamed(complaint: Complaint, broken: BrokenRule) -> Complaint:
    return Complaint(rule=broken.rule, ids=broken.ids, text=complaint.text, param=complaint.param, code=complaint.code)


def _unanswered(broken: BrokenRule, asked: Asked) -> tuple[str, str | None]:
    text = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(broken.ids)}"
    )
    return text, f"messages.[{_place(broken, asked, 'call') + 1}].role"


def _orphan(broken: BrokenRule, asked: Asked) -> tuple[str, str | None]:
    text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    return text, f"messages.[{_place(broken, asked, 'result')}].role"


def _second(broken: BrokenRule, asked: Asked) -> tuple[str, str | None]:
    name = broken.ids[0] if broken.ids else ""
    places = [item.message for item in asked.items if item.kind == "result" and item.id == name][-2:]
    told = " and ".join(f"messages[{place}]" for place in places)
    text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{name}', in {told}."
    return text, f"messages.[{places[-1] if places else 0}].tool_call_id"


def _doubled(broken: BrokenRule, asked: Asked) -> tuple[str, str | None]:
    name = broken.ids[0] if broken.ids else ""
    text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{name}'."
    return text, f"messages.[{_place(broken, asked, 'call')}].tool_calls"


def _plain(broken: BrokenRule, asked: Asked) -> tuple[str, str | None]:
    return f"Invalid parameter: {broken.text}.", "messages"


def _place(broken: BrokenRule, asked: Asked, kind: str) -> int:
    return asked.place(kind, broken.ids[0]) if broken.ids else 0


_WORDS: dict[str, _Words] = {
    "call-without-result": _unanswered,
    "result-not-adjacent": _unanswered,
    "result-without-call": _orphan,
    "second-result": _second,
    "duplicate-call-id": _doubled,
}

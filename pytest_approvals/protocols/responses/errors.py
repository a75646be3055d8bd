"""
Broken neutral rules in the words of Responses.

The sentences about calls without outputs, outputs without calls and open approval requests are those of real answers,
as people quote them in the issue trackers of the client libraries; the others follow their pattern.
"""

from __future__ import annotations

from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import ProviderError

_WORDS = {
    "call-without-result": "No tool output found for function call {ids}.",
    "result-without-call": "No tool call found for function call output with call_id {ids}.",
    "second-result": "Duplicate function call output found for call_id {ids}.",
    "duplicate-call-id": "Duplicate function call found with call_id {ids}.",
    "request-without-response": "The following MCP approval requests do not have an approval: {ids}",
    "unknown-approval-id": "No MCP approval request found with id {ids}.",
    "second-response": "The MCP approval request {ids} has more than one approval.",
    "call-without-id": "Missing required parameter: 'input[].call_id'.",
    "empty-input": "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array "
    "instead.",
}


def express(broken: RuleViolation, asked: ParsedRequest) -> ProviderError:
    """Gives a broken rule in the provider's words; a complaint of the protocol's own is in them already."""
    if isinstance(broken, ProviderError):
        return broken
    # Of several calls without an output, the provider names the first only.
    ids = broken.ids[0] if broken.rule == "call-without-result" and broken.ids else ", ".join(broken.ids)
    text = _WORDS.get(broken.rule, "Invalid input: {text}.").format(ids=ids, text=broken.text)
    return ProviderError(rule=broken.rule, ids=broken.ids, text=text, param="input")

"""Codec of Chat Completions, and neutral rule violations in OpenAI's words.

The sentences are those of real responses, as people quote them: agno-agi/agno#4345 (a call without a result) and
agno-agi/agno#5116 (a second result).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.types import Reply
from pytest_approvals.protocols.chat.replies import build_completion, stream_completion
from pytest_approvals.protocols.chat.requests import SHAPE, parse_request
from pytest_approvals.protocols.codec import OpenAICodec, ParsedRequest, reject_hosted
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import ProviderError, empty_array, missing_parameter
from pytest_approvals.protocols.streaming import PLAIN, SseEvent, StreamStyle

_NO_HOSTED = "Chat Completions has no items for it"


class ChatCodec(OpenAICodec):
    """One conversation in Chat Completions, which stores nothing between two requests."""

    name = "chat"
    path = "/chat/completions"
    id_prefix = "chatcmpl-"
    shape_rules = SHAPE

    def _parse(self, body: Mapping[str, Any]) -> ParsedRequest:
        return parse_request(body)

    def reply(self, request: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """See `ProtocolCodec.reply`."""
        reject_hosted(reply, _NO_HOSTED)
        return build_completion(request, reply, self._next_id())

    def events(self, request: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """See `ProtocolCodec.events`."""
        reject_hosted(reply, _NO_HOSTED)
        return stream_completion(request, reply, style, self._next_id())

    def _express(self, violation: RuleViolation, request: ParsedRequest) -> ProviderError:
        if violation.rule == "empty-input":
            return _with_rule(empty_array("messages"), violation)
        if violation.rule == "call-without-id":
            return _with_rule(missing_parameter("messages[].tool_calls[].id"), violation)
        text, param = _SENTENCES.get(violation.rule, _other_violation)(violation, request)
        return ProviderError(rule=violation.rule, ids=violation.ids, text=text, param=param)


def _with_rule(error: ProviderError, violation: RuleViolation) -> ProviderError:
    return ProviderError(rule=violation.rule, ids=violation.ids, text=error.text, param=error.param, code=error.code)


def _missing_results(violation: RuleViolation, request: ParsedRequest) -> tuple[str, str | None]:
    text = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(violation.ids)}"
    )
    return text, f"messages.[{_message_index(violation, request, 'call') + 1}].role"


def _unexpected_result(violation: RuleViolation, request: ParsedRequest) -> tuple[str, str | None]:
    # "preceeding" is the provider's own spelling.
    text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    return text, f"messages.[{_message_index(violation, request, 'result')}].role"


def _second_result(violation: RuleViolation, request: ParsedRequest) -> tuple[str, str | None]:
    call_id = violation.ids[0] if violation.ids else ""
    numbers = [item.message for item in request.items if item.kind == "result" and item.id == call_id][-2:]
    messages = " and ".join(f"messages[{number}]" for number in numbers)
    text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', in {messages}."
    return text, f"messages.[{numbers[-1] if numbers else 0}].tool_call_id"


def _duplicate_id(violation: RuleViolation, request: ParsedRequest) -> tuple[str, str | None]:
    call_id = violation.ids[0] if violation.ids else ""
    text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}'."
    return text, f"messages.[{_message_index(violation, request, 'call')}].tool_calls"


def _other_violation(violation: RuleViolation, request: ParsedRequest) -> tuple[str, str | None]:
    return f"Invalid parameter: {violation.text}.", "messages"


def _message_index(violation: RuleViolation, request: ParsedRequest, kind: str) -> int:
    return request.find_message(kind, violation.ids[0]) if violation.ids else 0


_SENTENCES: dict[str, Callable[[RuleViolation, ParsedRequest], tuple[str, str | None]]] = {
    "call-without-result": _missing_results,
    "result-not-adjacent": _missing_results,
    "result-without-call": _unexpected_result,
    "second-result": _second_result,
    "duplicate-call-id": _duplicate_id,
}
"""Text and parameter of the error, by the violated rule."""

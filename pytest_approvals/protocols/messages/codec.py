"""Codec of Messages, its error bodies, and neutral rule violations in Anthropic's words.

The body is the one of Anthropic's API reference ("errors"); the sentences are those of real responses, as people quote
them: anthropics/claude-code#7929 (a call without a result), anthropics/claude-code#18947 (a result without its call),
sipeed/picoclaw#1793 (a second result), trycua/cua#524 (an id that comes again).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract.types import Item, Reply
from pytest_approvals.protocols.codec import MoreMessages, ParsedRequest, ProtocolCodec, RequestTarget, reject_hosted
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.messages.bodies import blocks_of
from pytest_approvals.protocols.messages.parameter_rules import has_breakpoints
from pytest_approvals.protocols.messages.replies import build_message, stream_message
from pytest_approvals.protocols.messages.requests import SHAPE, TYPES, parse_request, read_more
from pytest_approvals.protocols.messages.threads import Threads, store_thread
from pytest_approvals.protocols.provider_errors import ProviderError, TypeProblem, anthropic_type_error
from pytest_approvals.protocols.streaming import PLAIN, SseEvent, StreamStyle
from pytest_approvals.protocols.text import estimate_tokens, instruction_items

_FAILURES = {
    401: ("authentication_error", "invalid x-api-key"),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed the rate limit. Please try again later."),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}
"""By status: the class of the error, and its text."""

_NO_HOSTED = "Messages has no items for approvals"


class MessagesCodec(ProtocolCodec):
    """One conversation in Messages.

    Attributes:
        threads: The conversations that the provider holds, for clients that send only what is new.
    """

    name = "messages"
    path = "/messages"
    request_id_header = "request-id"
    id_prefix = "msg_"
    first_event = "message_start"
    shape_rules = SHAPE
    published_types = TYPES
    messages_field = "messages"

    def _express_type(self, problem: TypeProblem) -> ProviderError:
        return anthropic_type_error(problem)

    def __init__(self) -> None:
        super().__init__()
        self.threads: Threads = {}

    def clear(self) -> None:
        """See `ProtocolCodec.clear`."""
        super().clear()
        self.threads.clear()

    def serve_stored(
        self, method: str, path: str, query: str, body: Mapping[str, Any]
    ) -> Mapping[str, Any] | ProviderError | None:
        """See `ProtocolCodec.serve_stored`: the number of tokens of an input, which has no `max_tokens`."""
        if method != "POST" or not path.endswith("/messages/count_tokens"):
            return None
        request = self.read({"max_tokens": 1, **body})
        errors = request.body_errors or self.check_types(request.body)
        return errors[0] if errors else {"input_tokens": estimate_tokens(body)}

    def _parse(self, body: Mapping[str, Any], target: RequestTarget) -> ParsedRequest:
        parsed = parse_request(body, self.threads, self.sent)
        if not parsed.body_errors:
            return parsed
        errors = tuple(error for error in parsed.body_errors if not self._excuses_id(error))
        return replace(parsed, body_errors=errors)

    def _excuses_id(self, error: ProviderError) -> bool:
        return error.rule == "malformed-id" and self.emitted.issuperset(error.ids)

    def read_more(self, more: MoreMessages) -> tuple[tuple[Item, ...], frozenset[str]] | None:
        """See `ProtocolCodec.read_more`."""
        return read_more(more)

    def may_grow(self, request: ParsedRequest) -> bool:
        """See `ProtocolCodec.may_grow`: breakpoints of the cache are counted over all of a body."""
        return not has_breakpoints(request.body)

    def count_leading_items(self, body: Mapping[str, Any]) -> int:
        """See `ProtocolCodec.count_leading_items`: the instructions."""
        return len(instruction_items(body.get("system")))

    def excuses(self, violation: RuleViolation, request: ParsedRequest) -> bool:
        """See `ProtocolCodec.excuses`: a message of the system is a message, though its item is no one's."""
        messages = request.body.get("messages") or ()
        return violation.rule == "no-message" and any(message.get("role") == "system" for message in messages)

    def reply(self, request: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """See `ProtocolCodec.reply`."""
        reject_hosted(reply, _NO_HOSTED)
        message = build_message(request, reply, self.next_id())
        store_thread(request.body, self.threads, message)
        return message

    def events(self, request: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """See `ProtocolCodec.events`."""
        reject_hosted(reply, _NO_HOSTED)
        return self._stream(request, reply, style, self.next_id())

    def _stream(self, request: ParsedRequest, reply: Reply, style: StreamStyle, message_id: str) -> Iterator[SseEvent]:
        yield from stream_message(request, reply, style, message_id)
        # Behind the last event, because nobody can continue from a stream that broke off.
        store_thread(request.body, self.threads, build_message(request, reply, message_id))

    def error_body(self, error: ProviderError) -> dict[str, Any]:
        """See `ProtocolCodec.error_body`."""
        details = {"details": {"error_code": error.code}} if error.rule.startswith("thread-") and error.code else {}
        return {"type": "error", "error": {"type": error.kind, "message": error.text, **details}, "request_id": None}

    def failure(self, status: int) -> ProviderError:
        """See `ProtocolCodec.failure`."""
        other = ("api_error" if status >= 500 else "invalid_request_error", f"The request failed with status {status}.")
        kind, text = _FAILURES.get(status, other)
        return ProviderError(text=text, status=status, kind=kind)

    def invalid_json(self) -> ProviderError:
        """See `ProtocolCodec.invalid_json`."""
        text = "The request body is not valid JSON: expected value at line 1 column 1"
        return ProviderError(rule="not-json", text=text)

    def _express(self, violation: RuleViolation, request: ParsedRequest) -> ProviderError:
        text = _SENTENCES.get(violation.rule, _other_violation)(violation, request)
        return ProviderError(rule=violation.rule, ids=violation.ids, text=text)


def _missing_results(violation: RuleViolation, request: ParsedRequest) -> str:
    number = request.find_message("call", violation.ids[0]) if violation.ids else 0
    return (
        f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(violation.ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def _unexpected_result(violation: RuleViolation, request: ParsedRequest) -> str:
    return (
        f"{_block_path(violation, request, 'tool_result', 'tool_use_id')}: unexpected `tool_use_id` found in "
        f"`tool_result` blocks: {', '.join(violation.ids)}. Each `tool_result` block must have a corresponding "
        "`tool_use` block in the previous message."
    )


def _second_result(violation: RuleViolation, request: ParsedRequest) -> str:
    path = _block_path(violation, request, "tool_result", "tool_use_id")
    return (
        f"{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
        f"{', '.join(violation.ids)}"
    )


def _repeated_id(violation: RuleViolation, request: ParsedRequest) -> str:
    return f"{_block_path(violation, request, 'tool_use', 'id')}: `tool_use` ids must be unique"


def _invalid_input(violation: RuleViolation, request: ParsedRequest) -> str:
    path = _block_path(violation, request, "tool_use", "id")
    return f"{path}.tool_use.input: Input should be a valid dictionary"


def _missing_id(violation: RuleViolation, request: ParsedRequest) -> str:
    return "messages.tool_use.id: Field required"


def _block_path(violation: RuleViolation, request: ParsedRequest, kind: str, name: str) -> str:
    """Return the path of the last block of that kind with an id of the violation."""
    path = "messages"
    for number, message in enumerate(request.body.get("messages") or ()):
        for index, block in enumerate(blocks_of(message)):
            if block.get("type") == kind and block.get(name) in violation.ids:
                path = f"messages.{number}.content.{index}"
    return path


def _other_violation(violation: RuleViolation, request: ParsedRequest) -> str:
    return f"messages: {violation.text}"


_SENTENCES: dict[str, Callable[[RuleViolation, ParsedRequest], str]] = {
    "empty-input": lambda violation, request: "messages: at least one message is required",
    "no-message": lambda violation, request: "messages: at least one message is required",
    "empty-text": lambda violation, request: "messages: text content blocks must contain non-whitespace text",
    "call-without-result": _missing_results,
    "result-not-in-next-turn": _missing_results,
    "result-without-call": _unexpected_result,
    "second-result": _second_result,
    "duplicate-call-id": _repeated_id,
    "arguments-not-an-object": _invalid_input,
    "call-without-id": _missing_id,
}
"""The text of the error, by the violated rule."""

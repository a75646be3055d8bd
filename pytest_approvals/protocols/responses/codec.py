"""Codec of Responses, and neutral rule violations in OpenAI's words.

The provider answers a request under a new id, stores the response unless the client says not to, and continues from any
response that it stored, so that two requests may continue from the same one.

The sentences about calls without outputs, outputs without calls and open approval requests are those of real responses,
as people quote them in the issue trackers of the client libraries; the others follow their pattern.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Reply
from pytest_approvals.protocols.codec import OpenAICodec, ParsedRequest, RequestTarget
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.responses.replies import (
    ResponseOutput,
    ResponseStream,
    build_response,
    call_item,
    hosted_call_items,
    message_item,
    reasoning_item,
    tool_list_items,
)
from pytest_approvals.protocols.responses.requests import SHAPE, TYPES, parse_request
from pytest_approvals.protocols.responses.stored_items import (
    ProviderStore,
    ResponsesRequest,
    resolve_request,
    serve_stored,
)
from pytest_approvals.protocols.streaming import PLAIN, PartKey, SseEvent, StreamStyle, list_part_keys
from pytest_approvals.protocols.text import estimate_tokens

_SENTENCES = {
    "call-without-result": "No tool output found for function call {ids}.",
    "result-without-call": "No tool call found for function call output with call_id {ids}.",
    "second-result": "Duplicate function call output found for call_id {ids}.",
    "duplicate-call-id": "Duplicate function call found with call_id {ids}.",
    "request-without-response": "The following MCP approval requests do not have an approval: {ids}",
    "unknown-approval-id": "No MCP approval request found with id {ids}.",
    "second-response": "The MCP approval request {ids} has more than one approval.",
    "approval-not-boolean": "Invalid type for 'input[].approve': expected a boolean.",
    "call-without-id": "Missing required parameter: 'input[].call_id'.",
    "empty-input": "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array "
    "instead.",
}
"""The text of the error, by the violated rule."""


class ResponsesCodec(OpenAICodec):
    """One conversation in Responses; see `ProtocolCodec`.

    Args:
        servers: The tools of each MCP server that the provider calls, as `mcp_list_tools` lists them.

    Attributes:
        store: What the provider stores.
    """

    name = "responses"
    path = "/responses"
    id_prefix = ""
    first_event = "response.created"
    shape_rules = SHAPE
    published_types = TYPES

    def __init__(self, servers: Mapping[str, Sequence[Mapping[str, Any]]] | None = None) -> None:
        super().__init__()
        self.store = ProviderStore()
        self._servers = servers or {}

    def clear(self) -> None:
        """See `ProtocolCodec.clear`."""
        super().clear()
        self.store.clear()

    def serve_stored(
        self, method: str, path: str, query: str, body: Mapping[str, Any]
    ) -> Mapping[str, Any] | ProviderError | None:
        """See `ProtocolCodec.serve_stored`: input tokens, responses, conversations and their items."""
        if (method, path.endswith("/responses/input_tokens")) == ("POST", True):
            return {"object": "response.input_tokens", "input_tokens": estimate_tokens(body)}
        return serve_stored(self.store, method, path, query, body)

    def _parse(self, body: Mapping[str, Any], target: RequestTarget) -> ParsedRequest:
        return parse_request(body, self.store)

    def reply(self, request: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """See `ProtocolCodec.reply`."""
        resolved, response_id, output = self._build_output(request, reply)
        finished = build_response(request, response_id, output.items, "completed")
        self._store(resolved, response_id, output, finished)
        # What runs in the background is not over when its request is answered.
        is_queued = request.body.get("background") is True
        return build_response(request, response_id, [], "queued") if is_queued else finished

    def events(self, request: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """See `ProtocolCodec.events`."""
        resolved, response_id, output = self._build_output(request, reply)
        stream = ResponseStream(output)
        unfinished = build_response(request, response_id, [], "in_progress")
        yield stream.event("response.created", response=unfinished)
        yield stream.event("response.in_progress", response=unfinished)
        yield from stream.item_events(reply, style)
        if reply.breaks:
            raise ModelDown(0, reply.how)
        # A response whose stream broke off is not stored, so that nobody can continue from it.
        finished = build_response(request, response_id, output.items, "completed")
        self._store(resolved, response_id, output, finished)
        yield stream.event("response.completed", response=finished)

    def _express(self, violation: RuleViolation, request: ParsedRequest) -> ProviderError:
        # Of several calls without an output, the provider names the first only.
        names_first = violation.rule == "call-without-result" and violation.ids
        ids = violation.ids[0] if names_first else ", ".join(violation.ids)
        text = _SENTENCES.get(violation.rule, "Invalid input: {text}.").format(ids=ids, text=violation.text)
        return ProviderError(rule=violation.rule, ids=violation.ids, text=text, param="input")

    def _build_output(self, request: ParsedRequest, reply: Reply) -> tuple[ResponsesRequest, str, ResponseOutput]:
        resolved = resolve_request(request.body, self.store)
        key = self.next_id()
        tool_lists = tool_list_items(request, [*resolved.before, *resolved.new], self._servers, key)
        from_model: dict[PartKey, Mapping[str, Any]] = {}
        for part in list_part_keys(reply):
            kind, position = part
            if kind == "thought":
                from_model[part] = reasoning_item(reply.thoughts[position], encrypted=request.has_signatures)
            elif kind == "text":
                from_model[part] = message_item(reply.say, f"msg_{key}")
            else:
                from_model[part] = call_item(reply.calls[position], f"fc_{key}_{position}")
        output = ResponseOutput(from_provider=(*tool_lists, *hosted_call_items(reply)), from_model=from_model)
        # Counted even if the stream breaks off: the client has seen the ids and may send them back.
        self.store.add_output(output.items)
        return resolved, f"resp_{key}", output

    def _store(
        self, request: ResponsesRequest, response_id: str, output: ResponseOutput, shown: Mapping[str, Any]
    ) -> None:
        if request.is_stored:
            items = [*request.new, *output.items]
            self.store.add_response(response_id, request.previous, request.conversation, items, shown)

"""
One conversation in the protocol of Responses, with what the provider keeps of it.

The provider answers a request under a new id, keeps it unless the client says not to, and goes on from any response
that it kept, so that two requests may go on from the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Reply
from pytest_approvals.protocols import provider_errors
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.responses import errors, replies, requests
from pytest_approvals.protocols.responses.replies import ResponseOutput, ResponseStream
from pytest_approvals.protocols.responses.stored_items import ProviderStore, ResponsesRequest, resolve_request
from pytest_approvals.protocols.streaming import PLAIN, SseEvent, StreamStyle


class ResponsesCodec:
    """
    Speaks Responses; see `format.Format`.

    Arguments:
        servers: The tools of each MCP server that the provider calls, as `mcp_list_tools` lists them.

    Attributes:
        kept: What the provider keeps.
    """

    name = "responses"
    path = "/responses"
    opening: str | None = "response.created"
    keeps = True

    def __init__(self, servers: Mapping[str, Sequence[Mapping[str, Any]]] | None = None) -> None:
        self.kept = ProviderStore()
        self._servers = servers or {}
        self._numbers = count(1)
        self._conversations = count(1)

    def begin_conversation(self, items: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """Begins a conversation and gives it as the API does."""
        conversation = f"conv_{next(self._conversations)}"
        self.kept.begin(conversation, items)
        return {"id": conversation, "object": "conversation", "created_at": 0, "metadata": {}}

    def read(self, body: Any) -> ParsedRequest:
        """See `Format.read`."""
        return requests.parse_request(body, self.kept)

    def reply(self, asked: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """See `Format.reply`."""
        request, response_id, output = self._answered(asked, reply)
        self._keep(request, response_id, output)
        return replies.build_response(asked, response_id, output.items, "completed")

    def events(self, asked: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """See `Format.events`."""
        request, response_id, output = self._answered(asked, reply)
        stream = ResponseStream(output)
        unfinished = replies.build_response(asked, response_id, [], "in_progress")
        yield stream.event("response.created", response=unfinished)
        yield stream.event("response.in_progress", response=unfinished)
        yield from stream.items(reply, style)
        if reply.breaks:
            raise ModelDown(0, reply.how)
        self._keep(request, response_id, output)
        finished = replies.build_response(asked, response_id, output.items, "completed")
        yield stream.event("response.completed", response=finished)

    def worded(self, broken: RuleViolation, asked: ParsedRequest) -> ProviderError:
        """See `Format.worded`."""
        return errors.express(broken, asked)

    def error(self, complaint: ProviderError) -> dict[str, Any]:
        """See `Format.error`."""
        return provider_errors.openai_error_body(complaint)

    def failure(self, status: int) -> ProviderError:
        """See `Format.failure`."""
        return provider_errors.openai_failure(status)

    def not_json(self) -> ProviderError:
        """See `Format.not_json`."""
        return provider_errors.openai_invalid_json()

    def _answered(self, asked: ParsedRequest, reply: Reply) -> tuple[ResponsesRequest, str, ResponseOutput]:
        request = resolve_request(asked.body, self.kept)
        key = str(next(self._numbers))
        listed = replies.tool_list_items(asked, [*request.before, *request.new], self._servers, key)
        said: dict[int | None, Mapping[str, Any]] = {}
        if reply.say is not None:
            said[None] = replies.message_item(reply.say, f"msg_{key}")
        said |= {place: replies.call_item(call, f"fc_{key}_{place}") for place, call in enumerate(reply.calls)}
        output = ResponseOutput(first=(*listed, *replies.hosted_call_items(reply)), said=said)
        self.kept.add_output(output.items)
        return request, f"resp_{key}", output

    def _keep(self, request: ResponsesRequest, response_id: str, output: ResponseOutput) -> None:
        if request.is_stored:
            items = [*request.new, *output.items]
            self.kept.keep(response_id, request.previous, request.conversation, items)

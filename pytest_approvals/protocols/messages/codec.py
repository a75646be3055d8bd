"""One conversation in the protocol of Messages, which keeps nothing between two requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from pytest_approvals.agent_side.contract.types import Reply
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.messages import errors, replies, requests
from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.streaming import PLAIN, SseEvent, StreamStyle


class MessagesCodec:
    """Speaks Messages; see `format.Format`."""

    name = "messages"
    path = "/messages"
    opening: str | None = "message_start"
    keeps = False

    def __init__(self) -> None:
        self._numbers = count(1)

    def read(self, body: Any) -> ParsedRequest:
        """See `Format.read`."""
        return requests.parse_request(body)

    def reply(self, asked: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """See `Format.reply`."""
        return replies.build_message(asked, reply, self._id())

    def events(self, asked: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """See `Format.events`."""
        replies.reject_hosted(reply)
        return replies.stream_message(asked, reply, style, self._id())

    def worded(self, broken: RuleViolation, asked: ParsedRequest) -> ProviderError:
        """See `Format.worded`."""
        return errors.express(broken, asked)

    def error(self, complaint: ProviderError) -> dict[str, Any]:
        """See `Format.error`."""
        return errors.anthropic_error_body(complaint)

    def failure(self, status: int) -> ProviderError:
        """See `Format.failure`."""
        return errors.anthropic_failure(status)

    def not_json(self) -> ProviderError:
        """See `Format.not_json`."""
        return errors.anthropic_invalid_json()

    def _id(self) -> str:
        return f"msg_{next(self._numbers)}"

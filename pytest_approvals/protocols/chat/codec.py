"""One conversation in the protocol of Chat Completions, which keeps nothing between two requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from pytest_approvals.agent_side.contract.types import Reply
from pytest_approvals.protocols import provider_errors
from pytest_approvals.protocols.chat import errors, replies, requests
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.streaming import PLAIN, SseEvent, StreamStyle


class ChatCodec:
    """Speaks Chat Completions; see `format.Format`."""

    name = "chat"
    path = "/chat/completions"
    opening: str | None = None
    keeps = False

    def __init__(self) -> None:
        self._numbers = count(1)

    def read(self, body: Any) -> ParsedRequest:
        """See `Format.read`."""
        return requests.parse_request(body)

    def reply(self, asked: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """See `Format.reply`."""
        return replies.build_completion(asked, reply, self._id())

    def events(self, asked: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """See `Format.events`."""
        replies.reject_hosted(reply)
        return replies.stream_completion(asked, reply, style, self._id())

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

    def _id(self) -> str:
        return f"chatcmpl-{next(self._numbers)}"

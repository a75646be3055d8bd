"""One conversation in the protocol of Messages, which keeps nothing between two requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from pytest_approvals.agent_side.neutral import Reply
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.complaints import Complaint
from pytest_approvals.protocols.rules import BrokenRule
from pytest_approvals.protocols.sse import PLAIN, Event, Style

from . import errors, parse, render, stream


class Messages:
    """Speaks Messages; see `format.Format`."""

    name = "messages"
    path = "/messages"
    opening: str | None = "message_start"
    keeps = False

    def __init__(self) -> None:
        self._numbers = count(1)

    def read(self, body: Any) -> Asked:
        """See `Format.read`."""
        return parse.asked(body)

    def reply(self, asked: Asked, reply: Reply) -> dict[str, Any]:
        """See `Format.reply`."""
        return render.message(asked, reply, self._id())

    def events(self, asked: Asked, reply: Reply, style: Style = PLAIN) -> Iterator[Event]:
        """See `Format.events`."""
        render.refuse_hosted(reply)
        return stream.events(asked, reply, style, self._id())

    def worded(self, broken: BrokenRule, asked: Asked) -> Complaint:
        """See `Format.worded`."""
        return errors.worded(broken, asked)

    def error(self, complaint: Complaint) -> dict[str, Any]:
        """See `Format.error`."""
        return errors.error_body(complaint)

    def failure(self, status: int) -> Complaint:
        """See `Format.failure`."""
        return errors.failure(status)

    def not_json(self) -> Complaint:
        """See `Format.not_json`."""
        return errors.not_json()

    def _id(self) -> str:
        return f"msg_{next(self._numbers)}"

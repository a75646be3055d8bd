"""
One conversation in the protocol of Responses, with what the provider keeps of it.

The provider answers a request under a new id, keeps it unless the client says not to, and goes on from any response
that it kept, so that two requests may go on from the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from pytest_approvals.agent_side.failures import ModelDown
from pytest_approvals.agent_side.neutral import Reply
from pytest_approvals.protocols import openai_errors
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.complaints import Complaint
from pytest_approvals.protocols.rules import BrokenRule
from pytest_approvals.protocols.sse import PLAIN, Event, Style

from . import errors, parse, render
from .kept import Kept
from .request import Request, request_of
from .stream import Output, Stream


class Responses:
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
        self.kept = Kept()
        self._servers = servers or {}
        self._numbers = count(1)
        self._conversations = count(1)

    def begin_conversation(self, items: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """Begins a conversation and gives it as the API does."""
        conversation = f"conv_{next(self._conversations)}"
        self.kept.begin(conversation, items)
        return {"id": conversation, "object": "conversation", "created_at": 0, "metadata": {}}

    def read(self, body: Any) -> Asked:
        """See `Format.read`."""
        return parse.asked(body, self.kept)

    def reply(self, asked: Asked, reply: Reply) -> dict[str, Any]:
        """See `Format.reply`."""
        request, response_id, output = self._answered(asked, reply)
        self._keep(request, response_id, output)
        return render.response(asked, response_id, output.items, "completed")

    def events(self, asked: Asked, reply: Reply, style: Style = PLAIN) -> Iterator[Event]:
        """See `Format.events`."""
        request, response_id, output = self._answered(asked, reply)
        stream = Stream(output)
        unfinished = render.response(asked, response_id, [], "in_progress")
        yield stream.event("response.created", response=unfinished)
        yield stream.event("response.in_progress", response=unfinished)
        yield from stream.items(reply, style)
        if reply.breaks:
            raise ModelDown(0, reply.how)
        self._keep(request, response_id, output)
        finished = render.response(asked, response_id, output.items, "completed")
        yield stream.event("response.completed", response=finished)

    def worded(self, broken: BrokenRule, asked: Asked) -> Complaint:
        """See `Format.worded`."""
        return errors.worded(broken, asked)

    def error(self, complaint: Complaint) -> dict[str, Any]:
        """See `Format.error`."""
        return openai_errors.error_body(complaint)

    def failure(self, status: int) -> Complaint:
        """See `Format.failure`."""
        return openai_errors.failure(status)

    def not_json(self) -> Complaint:
        """See `Format.not_json`."""
        return openai_errors.not_json()

    def _answered(self, asked: Asked, reply: Reply) -> tuple[Request, str, Output]:
        request = request_of(asked.body, self.kept)
        key = str(next(self._numbers))
        listed = render.listings(asked, [*request.before, *request.new], self._servers, key)
        said: dict[int | None, Mapping[str, Any]] = {}
        if reply.say is not None:
            said[None] = render.message(reply.say, f"msg_{key}")
        said |= {place: render.called(call, f"fc_{key}_{place}") for place, call in enumerate(reply.calls)}
        output = Output(first=(*listed, *render.ran(reply)), said=said)
        self.kept.gave(output.items)
        return request, f"resp_{key}", output

    def _keep(self, request: Request, response_id: str, output: Output) -> None:
        if request.is_stored:
            items = [*request.new, *output.items]
            self.kept.keep(response_id, request.previous, request.conversation, items)

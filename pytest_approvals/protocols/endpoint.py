"""
One conversation at the place where a client reaches it: a request's bytes come in, an answer's bytes go out.

Every transport ends here, so that a script is played and judged the same over all of them: the transport objects for
client libraries, the routes of a mock, the server on the loopback.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pytest_approvals.agent_side.failures import ModelDown, ModelRefused, ScriptExhausted, Unsupported
from pytest_approvals.agent_side.neutral import Item, Reply

from .answers import Answers, placed
from .asked import Asked
from .complaints import Complaint
from .damage import DAMAGES, damaged
from .format import Format
from .recent import RecentRequests
from .rules import broken_rules
from .sse import PLAIN, Style, written
from .text import json_text

JSON = "application/json"
STREAM = "text/event-stream; charset=utf-8"

_OF_ONE_ITEM = ("call-without-id", "arguments-not-an-object")
"""Rules about the fields of one item, which a provider looks at before it reads the conversation."""


class Model(Protocol):
    """Who answers: the world of a session, which records and judges."""

    async def __call__(self, items: Sequence[Item], asked: Asked) -> Reply:
        """
        Gives the next reply.

        Arguments:
            items: The input of the model; what holds or answers a structured answer is `other` here.
            asked: The request as it was read and judged.

        Errors:
            ModelRefused: The request breaks a rule, of the conversation or of the body.
            ModelDown: The scenario lets the model fail here.
            ScriptExhausted: The script has no further reply.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    What goes back to the client.

    Attributes:
        pieces: The body, piece by piece; raises `ModelDown` where the connection breaks.
        apart: The pieces are to arrive one by one, because the style of the stream cut them so.
        headers: What else the head says.
    """

    status: int
    content_type: str
    pieces: Iterator[bytes]
    apart: bool = False
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, value: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
        """Gives an answer of JSON."""
        return cls(status=status, content_type=JSON, pieces=iter([json_text(value).encode()]), headers=headers)

    @classmethod
    def refusal(cls, spoken: Format, complaint: Complaint) -> Answer:
        """Gives the provider's answer to what it complains of."""
        return cls.of(spoken.error(complaint), complaint.status)


def wrong_path(spoken: Format, text: str) -> Complaint:
    """Gives what a provider says to a path that it does not serve."""
    nothing = spoken.failure(404)
    return Complaint(rule="wrong-path", text=text, status=404, kind=nothing.kind, code=nothing.code)


class Endpoint:
    """
    Answers the requests of one conversation.

    Arguments:
        spoken: The protocol that its clients speak.
        model: Who answers.
        style: How streams are written.
    """

    def __init__(self, spoken: Format, model: Model, *, style: Style = PLAIN) -> None:
        self.format = spoken
        self._model = model
        self._style = style
        self._answers = Answers()
        self._recent = RecentRequests()
        self._number = 0

    async def serve(self, method: str, path: str, raw: bytes) -> Answer:
        """Answers one request to any path; see `transport.Served`."""
        if method != "POST" or not path.endswith(self.format.path):
            return await self.turn_away(wrong_path(self.format, f"{self.format.failure(404).text} ({method} {path})"))
        return await self.post(raw)

    async def post(self, raw: bytes) -> Answer:
        """
        Answers one request of its protocol.

        Errors:
            ModelDown: The connection breaks before there is an answer.
        """
        try:
            asked = self._recent.get(raw) or self._read(raw)
        except (ValueError, RecursionError):
            return await self.turn_away(self.format.not_json())
        try:
            reply = await self._model(asked.items, asked)
        except ModelRefused as refusal:
            return self.refused(self._complaint(asked, refusal))
        except ScriptExhausted as exhausted:
            return self.refused(Complaint(rule="script-exhausted", text=str(exhausted), code="script_exhausted"))
        except ModelDown as down:
            return self._failed(asked, down)
        return self._answer(asked, reply)

    async def turn_away(self, complaint: Complaint) -> Answer:
        """Answers a request that cannot be read: the model is asked nothing, and the refusal is recorded as all are."""
        with suppress(ModelRefused):
            await self._model((), Asked(complaints=(complaint,), broken=(complaint,), readable=False))
        return self.refused(complaint)

    def _read(self, raw: bytes) -> Asked:
        """
        Reads and judges the body of a request.

        Errors:
            ValueError, RecursionError: It is not JSON.
        """
        read = self.format.read(json.loads(raw))
        items = self._answers.hidden(read.items)
        asked = replace(read, items=items, broken=read.complaints or (*broken_rules(items, self.format.name),))
        if not self.format.keeps:
            self._recent.keep(raw, asked)
        return asked

    def _failed(self, asked: Asked, down: ModelDown) -> Answer:
        if down.status:
            complaint = self.format.failure(down.status)
            wait = () if down.retry_after is None else (("retry-after", f"{down.retry_after:g}"),)
            return Answer.of(self.format.error(complaint), complaint.status, wait)
        if down.how not in DAMAGES:
            raise down
        body = damaged(down.how, stream=asked.stream, event=self.format.opening, style=self._style)
        return Answer(status=200, content_type=STREAM if asked.stream else JSON, pieces=iter([body]))

    def _as_it_arrives(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from pieces
        except ModelDown as down:
            if down.how not in DAMAGES:
                raise
            yield damaged(down.how, stream=True, event=self.format.opening, style=self._style)

    def refused(self, complaint: Complaint) -> Answer:
        """Gives the provider's answer to what it complains of."""
        return Answer.refusal(self.format, complaint)

    def _complaint(self, asked: Asked, refusal: ModelRefused) -> Complaint:
        if not asked.broken:
            return Complaint(rule="refused", text=refusal.reason)
        return self.format.worded(min(asked.broken, key=lambda one: one.rule not in _OF_ONE_ITEM), asked)

    def _answer(self, asked: Asked, reply: Reply) -> Answer:
        self._number += 1
        answer_id = f"call_answer_{self._number}"
        if reply.answer is not None:
            self._answers.given(reply.answer, answer_id)
            self._recent.forget()
        told = placed(reply, asked, answer_id)
        try:
            if asked.stream:
                pieces = written(self.format.events(asked, told, self._style), self._style)
                apart = self._style.size is not None
                return Answer(status=200, content_type=STREAM, pieces=self._as_it_arrives(pieces), apart=apart)
            return Answer.of(self.format.reply(asked, told))
        except Unsupported as unsaid:
            return self.refused(Complaint(rule="unsupported", text=str(unsaid), code="unsupported"))

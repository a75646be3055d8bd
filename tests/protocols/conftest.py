"""A scripted model behind each protocol, as a client library sees it."""

from __future__ import annotations

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelDown, ModelRefused, ScriptExhausted
from pytest_approvals.agent_side.contract.types import MAIN, ModelCall, Reply
from pytest_approvals.protocols import create_codec
from pytest_approvals.protocols.endpoint import Endpoint
from pytest_approvals.protocols.streaming import get_stream_style
from pytest_approvals.protocols.transport import Transport
from pytest_approvals.runner.stream_chunks import split_reply


class Script:
    """Plays replies as the world of a session does, and keeps what it was asked."""

    def __init__(self, name, replies):
        self.name = name
        self.replies = list(replies)
        self.asked = []

    async def __call__(self, items, asked):
        self.asked.append((tuple(items), asked))
        if asked.violations:
            raise ModelRefused("; ".join(one.text for one in asked.violations))
        if not self.replies:
            raise ScriptExhausted(MAIN)
        reply = self.replies.pop(0)
        if isinstance(reply, ModelDown):
            raise reply
        return reply


class Wire:
    """A scripted model at the other end of a transport."""

    def __init__(self, name, *replies, style="plain", spoken=None):
        self.script = Script(name, replies)
        self.format = spoken or create_codec(name)
        self.endpoint = Endpoint(self.format, self.script, style=get_stream_style(style))

    def transport(self):
        return Transport(self.endpoint)

    @property
    def items(self):
        """The input of the latest request."""
        return self.script.asked[-1][0]


def call(call_id, tool="pay", kind="function", server=None, **arguments):
    return ModelCall(id=call_id, tool=tool, arguments=arguments, kind=kind, server=server)


def reply(*calls, say=None, style="whole", hosted=(), answer=None, breaks_after=None, how="disconnect"):
    chunks = split_reply(say, calls, style)
    breaks = breaks_after is not None
    shown = chunks[:breaks_after] if breaks else chunks
    return Reply(say=say, calls=calls, hosted=hosted, answer=answer, chunks=shown, breaks=breaks, how=how)


class Making:
    """What tests of protocols make things with."""

    Wire = Wire
    call = staticmethod(call)
    reply = staticmethod(reply)


@pytest.fixture
def making():
    return Making

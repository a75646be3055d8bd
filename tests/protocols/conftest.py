"""A scripted model behind each protocol, as a client library sees it."""

from __future__ import annotations

import pytest

from pytest_approvals.agent_side.failures import ModelDown, ModelRefused, ScriptExhausted
from pytest_approvals.agent_side.neutral import MAIN, ModelCall, Reply
from pytest_approvals.harness.chunking import cut
from pytest_approvals.protocols.endpoint import Endpoint
from pytest_approvals.protocols.format import format_named
from pytest_approvals.protocols.rules import broken_rules
from pytest_approvals.protocols.sse import style_named
from pytest_approvals.protocols.transport import Transport


class Script:
    """Plays replies as the world of a session does, and keeps what it was asked."""

    def __init__(self, name, replies):
        self.name = name
        self.replies = list(replies)
        self.asked = []

    async def __call__(self, items, asked):
        self.asked.append((tuple(items), asked))
        broken = asked.complaints or broken_rules(items, self.name)
        if broken:
            raise ModelRefused("; ".join(one.text for one in broken))
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
        self.format = spoken or format_named(name)
        self.endpoint = Endpoint(self.format, self.script, style=style_named(style))

    def transport(self):
        return Transport(self.endpoint)

    @property
    def items(self):
        """The input of the latest request."""
        return self.script.asked[-1][0]


def call(call_id, tool="pay", kind="function", server=None, **arguments):
    return ModelCall(id=call_id, tool=tool, arguments=arguments, kind=kind, server=server)


def reply(*calls, say=None, style="whole", hosted=(), answer=None, breaks_after=None, how="disconnect"):
    chunks = cut(say, calls, style)
    breaks = breaks_after is not None
    shown = chunks[:breaks_after] if breaks else chunks
    return Reply(say=say, calls=calls, hosted=hosted, answer=answer, chunks=shown, breaks=breaks, how=how)


class Making:
    """What tests of protocols make things with."""

    Wire = Wire
    call = staticmethod(call)
    reply = staticmethod(reply)

    @staticmethod
    def broken(asked, name):
        """Gives the broken neutral rules of a request."""
        return broken_rules(asked.items, name)


@pytest.fixture
def making():
    return Making

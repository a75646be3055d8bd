"""What an endpoint keeps of the bodies that came last, and what it does not."""

from __future__ import annotations

import asyncio
import json

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelRefused
from pytest_approvals.agent_side.contract.types import Reply
from pytest_approvals.protocols import create_codec
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.endpoint import MAX_CACHED_BYTES, MAX_CACHED_REQUESTS, Endpoint, RequestCache

GO = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}


def endpoint(protocol, *replies):
    """An endpoint that answers with these replies in turn, and what it was asked."""
    seen, left = [], list(replies)

    async def model(items, asked):
        seen.append(asked)
        if asked.violations:
            raise ModelRefused("broken")
        return left.pop(0)

    return Endpoint(create_codec(protocol), model), seen


def post(one, body):
    answer = asyncio.run(one.post(json.dumps(body).encode()))
    return answer.status, json.loads(b"".join(answer.pieces))


@pytest.mark.parametrize("protocol", ["chat", "messages"])
def test_same_body_is_read_once(protocol):
    """A body that comes again was read already; each request has an answer of its own."""
    one, seen = endpoint(protocol, Reply(say="one"), Reply(say="two"))
    first, second = post(one, GO)[1], post(one, GO)[1]
    assert seen[0] is seen[1]
    assert first["id"] != second["id"]


def test_verdict_comes_again():
    """What a provider refuses, it refuses again, in the same words."""
    one, _ = endpoint("chat")
    orphan = {**GO, "messages": [*GO["messages"], {"role": "tool", "tool_call_id": "c1", "content": "x"}]}
    first, second = post(one, orphan), post(one, orphan)
    assert (400, True) == (first[0], first == second)


def test_body_that_says_something_else_now_is_read_again():
    """A body of Responses is read in the light of what the provider has kept meanwhile."""
    one, seen = endpoint("responses", Reply(say="one"), Reply(say="two"))
    more = {"model": "m", "input": "more", "previous_response_id": "resp_1"}
    early = post(one, more)[0]
    post(one, {"model": "m", "input": "go"})
    late = post(one, more)[0]
    assert (400, 200) == (early, late)
    assert ["go", "one", "more"] == [item.text for item in seen[-1].items]


def test_structured_answer_is_known_again():
    """A body that came before a structured answer was given, and comes again behind it, holds that answer."""
    one, seen = endpoint("chat", Reply(say="no"), Reply(answer={"total": 5}), Reply(say="yes"))
    body = {**GO, "messages": [*GO["messages"], {"role": "assistant", "content": '{"total": 5}'}, *GO["messages"]]}
    post(one, body)
    post(one, {**GO, "response_format": {"type": "json_object"}})
    post(one, body)
    assert (["user", "say", "user"], ["user", "other", "user"]) == (
        [item.kind for item in seen[0].items],
        [item.kind for item in seen[2].items],
    )


def test_it_does_not_grow():
    """The last few bodies are kept, and no large one."""
    recent = RequestCache()
    for number in range(100):
        recent.add(b"%d" % number, ParsedRequest(model=str(number)))
    recent.add(b"x" * (MAX_CACHED_BYTES + 1), ParsedRequest())
    kept = [number for number in range(100) if recent.get(b"%d" % number)]
    assert list(range(100 - MAX_CACHED_REQUESTS, 100)) == kept
    assert recent.get(b"x" * (MAX_CACHED_BYTES + 1)) is None

"""What an endpoint keeps of the bodies that came last, and what it does not."""

from __future__ import annotations

import asyncio
import json

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelDown, ModelRefused
from pytest_approvals.agent_side.contract.types import ModelCall, Reply
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
    assert seen[0].items is seen[1].items
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
    asked = {"role": "user", "content": "as JSON"}
    post(one, {**GO, "messages": [asked], "response_format": {"type": "json_object"}})
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


# --- what it sent itself ----------------------------------------------------------------------------------------------

LONG = "call:" + "x" * 80


def call_bodies(name, call_id):
    """A body of each protocol that sends a call and its result back."""
    function = {"name": "pay", "arguments": "{}"}
    uses = {"type": "tool_use", "id": call_id, "name": "pay", "input": {}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
    go = {"role": "user", "content": "go"}
    return {
        "chat": {
            "model": "m",
            "messages": [
                go,
                {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": call_id, "content": "ok"},
            ],
        },
        "responses": {
            "model": "m",
            "input": [
                {"type": "function_call", "call_id": call_id, **function},
                {"type": "function_call_output", "call_id": call_id, "output": "ok"},
            ],
        },
        "messages": {
            **GO,
            "messages": [go, {"role": "assistant", "content": [uses]}, {"role": "user", "content": [result]}],
        },
    }[name]


@pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])
def test_id_that_the_provider_sent_is_taken_back(protocol):
    """An id that is too long, or has other characters, is refused until the provider itself has sent it."""
    asked = Reply(calls=(ModelCall(id=LONG, tool="pay", arguments={}),))
    one, _ = endpoint(protocol, asked, Reply(say="done"))
    body = call_bodies(protocol, LONG)
    begin = {"model": "m", "input": "go"} if protocol == "responses" else GO | {"model": "m"}
    if protocol == "chat":
        begin = {"model": "m", "messages": GO["messages"]}

    assert [400, 200, 200, 400] == [
        post(one, asked)[0] for asked in (body, begin, body, call_bodies(protocol, LONG + "y"))
    ]


# --- threads ----------------------------------------------------------------------------------------------------------


def thread(*messages, previous=None, **more):
    how = {"type": "create"} if previous is None else {"type": "continue", "previous_message_id": previous}
    return {"model": "m", "max_tokens": 9, "messages": list(messages), "thread": how, **more}


RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}
PAYS = Reply(calls=(ModelCall(id="c1", tool="pay", arguments={"amount": 5}),))
TOOLS = [{"name": "pay", "input_schema": {"type": "object"}}]


def test_thread_is_judged_with_what_the_provider_holds():
    """A request that continues a thread has all that came before as its input, with system and tools."""
    one, seen = endpoint("messages", PAYS, Reply(say="done"), Reply(say="bye"))
    first = post(one, thread(*GO["messages"], system="be kind", tools=TOOLS))[1]
    second = post(one, thread(RESULT, previous=first["id"]))[1]
    post(one, thread(previous=second["id"]))

    assert ["other", "user", "call", "result", "say"] == [item.kind for item in seen[-1].items]
    assert ("pay",) == seen[-1].tools


@pytest.mark.parametrize(
    ("more", "previous", "status", "code"),
    [
        ({}, "msg_9", 404, "thread_not_found"),
        ({}, "msg_1", 400, "thread_already_continued"),
        ({"tools": TOOLS}, "msg_2", 400, None),
        ({"system": "x"}, "msg_2", 400, None),
    ],
    ids=["unknown", "continued", "tools", "system"],
)
def test_thread_that_cannot_be_continued(more, previous, status, code):
    """An unknown response, one that was continued before, and fields that the thread holds are refused."""
    one, _ = endpoint("messages", PAYS, Reply(say="done"))
    post(one, thread(*GO["messages"]))
    post(one, thread(RESULT, previous="msg_1"))
    got, body = post(one, thread(*GO["messages"], previous=previous, **more))

    assert (status, code) == (got, body["error"].get("details", {}).get("error_code"))


def test_thread_without_a_result_is_refused():
    """The rules of histories hold for what the provider holds, too."""
    one, seen = endpoint("messages", PAYS)
    post(one, thread(*GO["messages"]))
    got, _ = post(one, thread(*GO["messages"], previous="msg_1"))

    assert (400, ["call-without-result"]) == (got, [one.rule for one in seen[-1].violations])


def test_thread_of_a_broken_stream_is_not_held():
    """Nobody can continue from a response whose stream broke off."""
    one, _ = endpoint("messages", Reply(say="do", breaks=True))
    with pytest.raises(ModelDown):
        post(one, {**thread(*GO["messages"]), "stream": True})

    assert "thread_not_found" == post(one, thread(previous="msg_1"))[1]["error"]["details"]["error_code"]

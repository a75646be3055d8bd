"""Requests that extend earlier ones: only what is new is read, and nothing else comes of it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_approvals.agent_side.contract.exceptions import ModelRefused
from pytest_approvals.agent_side.contract.types import Chunk, Reply
from pytest_approvals.model_server.conversation import run_without_loop
from pytest_approvals.protocols import create_codec
from pytest_approvals.protocols.chat.requests import RULES
from pytest_approvals.protocols.endpoint import Endpoint
from pytest_approvals.protocols.growing_requests import MAX_HISTORIES, GrowingRequests

JUDGED = [json.loads(line) for line in Path(__file__).with_name("judged_requests.jsonl").read_text().splitlines()]


def judged_bodies(protocol):
    return {
        one["title"]: one["body"]
        for one in JUDGED
        if one["protocol"] == protocol
        and isinstance(one["body"], dict)
        and isinstance(one["body"].get("messages"), list)
    }


CHAT, MESSAGES_OF_ANTHROPIC = judged_bodies("chat"), judged_bodies("messages")
BEFORE = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes"}]

YES = Reply(say="yes", chunks=(Chunk(text="yes"),))


class Provider:
    """An endpoint that accepts what breaks no rule, and what it was asked last."""

    def __init__(self, protocol="chat"):
        self.asked = None
        self._endpoint = Endpoint(create_codec(protocol), self._answer)

    async def _answer(self, items, asked):
        self.asked = asked
        if asked.violations:
            raise ModelRefused("broken")
        return YES

    def post(self, raw):
        raw = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
        self.asked = None
        response = run_without_loop(self._endpoint.post(raw))
        # The ids of answers are counted.
        answer = re.sub(rb"(chatcmpl-|msg_)\d+", b"", b"".join(response.pieces))
        return response.status, answer, repr(self.asked)


def read_whole(raw, protocol="chat"):
    return Provider(protocol).post(raw)


@pytest.mark.parametrize("name", CHAT)
def test_judged_request_that_grew(name):
    """Whatever a request holds, it is judged the same message by message and at once."""
    body = CHAT[name]
    messages = body["messages"]
    provider = Provider()
    for end in range(1, len(messages) + 1):
        grown = {**body, "messages": messages[:end]}
        assert provider.post(grown) == read_whole(grown)
    provider = Provider()
    for whole in (BEFORE, BEFORE + messages, messages, BEFORE + messages + messages):
        grown = {**body, "messages": whole}
        assert provider.post(grown) == read_whole(grown)


INSTRUCTED = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param([], id="nothing"),
        pytest.param([{"role": "user", "content": "stop"}], id="another-user"),
        pytest.param([{"role": "user", "content": " "}], id="blank"),
        pytest.param([{"role": "assistant", "content": "yes"}, *BEFORE], id="assistant"),
        pytest.param([{"role": "assistant", "content": ""}], id="silence"),
        pytest.param([{"role": "tool", "tool_call_id": "c1", "content": "done"}], id="result"),
        pytest.param([*INSTRUCTED, *INSTRUCTED], id="again"),
    ],
)
@pytest.mark.parametrize("role", ["system", "developer"])
def test_another_conversation_with_the_same_instruction(role, rest):
    """It is judged as if nothing had been asked before, whatever follows the instruction."""
    instruction = {"role": role, "content": "be brief"}
    provider = Provider()
    provider.post({"model": "m", "messages": [instruction, INSTRUCTED[1]]})
    other = {"model": "m", "messages": [instruction, *rest]}

    assert read_whole(other) == provider.post(other)


CALL = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 5}'}}
STRANGE = [None, True, 0, "", "x", [], {}, [{}], ["x"], "a b", "c1", "pay", "x" * 70, '{"amount": NaN}', "\ud800"]
FIELDS = [
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "name",
    "id",
    "type",
    "function",
    "arguments",
    "refusal",
    "x",
]
MESSAGES = [
    {"role": "user", "content": "go"},
    {"role": "user", "content": ""},
    {"role": "user", "content": " "},
    {"role": "system", "content": "json, please"},
    {"role": "developer", "content": "be brief"},
    {"role": "assistant", "content": "yes"},
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": None},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "assistant", "content": "now", "tool_calls": [{**CALL, "id": "c2"}, CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
    {"role": "tool", "tool_call_id": "c2", "content": "done"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
]


def changed(message, field, value):
    """A message with another value in a field, in itself or in its calls."""
    copy = json.loads(json.dumps(message))
    places = [copy, *copy.get("tool_calls", []), *[call["function"] for call in copy.get("tool_calls", [])]]
    holding = [place for place in places if field in place] or [copy]
    holding[-1][field] = value
    return copy


RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}
BLOCKS = [
    [{"role": "user", "content": "go"}],
    [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "go"}],
    [{"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT, {"role": "assistant", "content": "paid"}],
    [
        {"role": "assistant", "content": "", "tool_calls": [CALL, {**CALL, "id": "c2"}]},
        RESULT,
        {**RESULT, "tool_call_id": "c2"},
    ],
    [{"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "system", "content": "be brief"}, RESULT],
    [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "developer", "content": "be brief"},
        RESULT,
    ],
    [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "go"}],
    [{"role": "assistant", "name": "one", "tool_calls": [CALL]}, RESULT],
]


def all_changes(block):
    """The block with each field of each of its objects left out, and with each strange value in its place."""
    places: list[tuple] = [(at,) for at in range(len(block))]
    for at, message in enumerate(block):
        for place, call in enumerate(message.get("tool_calls", [])):
            places += [(at, "tool_calls", place), (at, "tool_calls", place, "function")] if "function" in call else []
    for path in places:
        for field in FIELDS:
            for value in [..., *STRANGE]:
                copy = json.loads(json.dumps(block))
                holder = copy
                for step in path:
                    holder = holder[step]
                if value is ...:
                    holder.pop(field, None)
                else:
                    holder[field] = value
                # The id of a call and that of its result.
                yield copy
                if field == "id" and isinstance(value, str):
                    yield json.loads(json.dumps(copy).replace('"c1"', json.dumps(value)))


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_every_change_of_a_message(block):
    """Whatever one message has that it should not have is seen in messages that follow others, too."""
    for changed_block in all_changes(block):
        provider = Provider()
        provider.post({"model": "m", "messages": BLOCKS[0]})
        body = {"model": "m", "messages": [*BLOCKS[0], *changed_block]}
        assert provider.post(body) == read_whole(body)
        body = {"model": "m", "messages": changed_block}
        assert provider.post(body) == read_whole(body)


messages = st.one_of(
    st.sampled_from(MESSAGES),
    st.builds(changed, st.sampled_from(MESSAGES), st.sampled_from(FIELDS), st.sampled_from(STRANGE)),
    st.sampled_from([None, 5, "x", []]),
)
frames = st.sampled_from(
    [
        {"model": "m"},
        {"model": "m", "stream": True, "stream_options": {"include_usage": True}},
        {"model": "m", "response_format": {"type": "json_object"}},
        {"model": "m", "tools": [{"type": "function", "function": {"name": "pay"}}]},
        {"model": "", "n": 0},
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(frames, st.lists(messages, max_size=4), st.booleans()), min_size=2, max_size=5))
@example([({"model": "m"}, [MESSAGES[0], MESSAGES[8]], True), ({"model": "m"}, [MESSAGES[3], MESSAGES[10]], True)])
def test_drawn_conversation(steps):
    """Requests that extend, cut or change each other are answered as if each were the first."""
    provider, history = Provider(), []
    for frame, more, grows in steps:
        history = [*history, *more] if grows else more
        body = {**frame, "messages": history}
        assert provider.post(body) == read_whole(body)


texts = st.recursive(
    st.sampled_from(
        ["1", "-0", "1e999", "NaN", '"a"', '"\\ud800"', '"\\u00e9"', "null", "tru", "[1,]", "{}", "[]", "01", '"é']
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda values: "[" + ", ".join(values) + "]"),
        st.lists(
            st.tuples(st.sampled_from(['"messages"', '"mess\\u0061ges"', '"a"', '"b"', "c"]), inner), max_size=4
        ).map(lambda pairs: "{" + ",".join(f"{name} :{value}" for name, value in pairs) + "}"),
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(["", " ", "\n", "\ufeff", "\x0b"]), texts, st.sampled_from(["", " \r\n", ",", "}", "\x00"]))
def test_body_is_parsed_as_json(before, text, after):
    """Bodies of any shape mean what they mean to `json`, or are refused with the same error."""
    raw = (before + text + after).encode()
    requests = GrowingRequests(create_codec("chat"))
    expected = got = None
    with suppress(ValueError):
        expected = (json.loads(raw),)
    with suppress(ValueError):
        got = (requests.parse(raw)[0],)
    assert repr(expected) == repr(got)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_body_in_another_encoding(encoding):
    """It is read as JSON allows it, before and after others."""
    body = {"messages": BEFORE, "model": "m"}
    provider = Provider()
    provider.post(body)
    assert 200 == provider.post(json.dumps(body).encode(encoding))[0]


@pytest.mark.parametrize(
    "written",
    [
        '{"messages": [%s], "model": "m"}',
        '{"model":"m","messages":[%s]}',
        '{ "model" : "m" ,\n "messages" : [ %s ] , "n" : 1 }',
    ],
)
def test_only_what_is_new_is_read(written, monkeypatch):
    """A body that goes on is not parsed as a whole, however it is written."""
    provider = Provider()
    one, two = json.dumps(BEFORE[0]), json.dumps(BEFORE[1])
    provider.post((written % one).encode())
    known = provider.asked.items
    monkeypatch.setattr(GrowingRequests, "parse", None)
    status, *_ = provider.post((written % f"{one} , {two}").encode())
    assert (200, True) == (status, provider.asked.items[0] is known[0])


@pytest.mark.parametrize("rest", ["", "]", ",", ",]", ", {}", "] x", ", {}]", ', 5], "model": "m"}', ', {"role"'])
def test_body_that_goes_on_as_no_json(rest):
    """It is refused as if it were the first."""
    provider = Provider()
    begun = '{"messages": [' + json.dumps(BEFORE[0])
    provider.post(f'{begun}], "model": "m"}}'.encode())
    raw = (begun + rest).encode()
    assert provider.post(raw) == read_whole(raw)


def test_many_conversations_are_not_kept_for_ever():
    """The oldest are forgotten, and read as a whole when they come again."""
    provider = Provider()
    bodies = [{"messages": [{"role": "user", "content": str(n)}], "model": "m"} for n in range(2 * MAX_HISTORIES)]
    for body in [*bodies, *bodies]:
        assert provider.post(body) == read_whole(body)
    (histories,) = provider._endpoint._growing._histories.values()
    assert len(histories) == MAX_HISTORIES


class Tracing(dict):
    """A body that notes which fields are read."""

    def __init__(self, body):
        super().__init__(body)
        self.read = set()

    def get(self, name, *default):
        self.read.add(name)
        return super().get(name, *default)

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)


def test_rules_say_when_they_read_messages():
    """A rule about other fields that looks at messages is asked again when messages follow."""
    reading = {name for _, name, _ in RULES._reading}
    for body in CHAT.values():
        for _, name, rule in RULES._by_field:
            traced = Tracing(body)
            list(rule(traced)) if all(isinstance(one, dict) for one in body["messages"]) else None
            assert "messages" not in traced.read or name in reading


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("say", ["yes", "", "\0id\0", 'a "quoted" \ud800 word'])
def test_reply_that_is_sent_again(say, stream):
    """It is the same but for its id."""
    reply = Reply(say=say, chunks=(Chunk(text=say),))

    async def answer(items, asked):
        return reply

    endpoint = Endpoint(create_codec("chat"), answer)
    body = json.dumps({"model": "m", "messages": BEFORE, "stream": stream}).encode()
    first, *later = (b"".join(run_without_loop(endpoint.post(body)).pieces) for _ in range(4))
    assert later == [first.replace(b'"chatcmpl-1"', b'"chatcmpl-%d"' % number) for number in (2, 3, 4)]


def test_reply_that_is_sent_again_otherwise():
    """What else a request asks for is heeded: another model, a stream, usage, several choices."""
    wants = [
        {},
        {"model": "n"},
        {"stream": True},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"n": 2},
    ]
    provider = Provider()
    for want in [*wants, *wants, *wants]:
        body = {"model": "m", "messages": BEFORE, **want}
        assert provider.post(body) == read_whole(body)


# --- Messages ---------------------------------------------------------------------------------------------------------

OF_ANTHROPIC = {"model": "m", "max_tokens": 5}
HINT = {"cache_control": {"type": "ephemeral"}}
TEXT = {"type": "text", "text": "go"}
USE = {"type": "tool_use", "id": "c1", "name": "pay", "input": {"amount": 5}}
ANSWER = {"type": "tool_result", "tool_use_id": "c1", "content": "done"}
TALKS = [
    [{"role": "user", "content": "go"}],
    [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "go"}],
    [{"role": "assistant", "content": []}, {"role": "user", "content": "go"}],
    [{"role": "assistant", "content": "yes "}],
    [{"role": "assistant", "content": [TEXT, TEXT]}, {"role": "user", "content": [TEXT, TEXT]}],
    [{"role": "assistant", "content": [TEXT, USE]}, {"role": "user", "content": [ANSWER, TEXT]}],
    [
        {"role": "assistant", "content": [USE, {**USE, "id": "c2"}]},
        {"role": "user", "content": [ANSWER, {**ANSWER, "tool_use_id": "c2", "content": [TEXT]}]},
        {"role": "assistant", "content": "paid"},
    ],
    [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}],
    [{"role": "user", "content": [{**TEXT, **HINT}, {**TEXT, **HINT}]}],
]
OTHER_FIELDS = [{}, {"system": "be brief"}, {"system": [{**TEXT, **HINT}] * 3}, {"thread": {"type": "create"}}]
OF_BLOCKS = [..., None, "", [], {}, "a b", "user", "assistant", " ", "a ", [TEXT], [{**TEXT, **HINT}], [USE]]
BLOCK_FIELDS = ["type", "text", "id", "name", "input", "tool_use_id", "content", "is_error", "cache_control", "x"]


@pytest.mark.parametrize("name", MESSAGES_OF_ANTHROPIC)
def test_judged_request_of_anthropic_that_grew(name):
    """Whatever a request holds, it is judged the same message by message and at once."""
    body = MESSAGES_OF_ANTHROPIC[name]
    provider = Provider("messages")
    for end in range(1, len(body["messages"]) + 1):
        grown = {**body, "messages": body["messages"][:end]}
        assert provider.post(grown) == read_whole(grown, "messages")
    provider = Provider("messages")
    for whole in (BEFORE, BEFORE + body["messages"], body["messages"], BEFORE + body["messages"] + body["messages"]):
        grown = {**body, "messages": whole}
        assert provider.post(grown) == read_whole(grown, "messages")


def all_changes_of_blocks(talk):
    """The talk with each field of each of its messages and blocks left out, and with a strange value in its place."""
    for at, message in enumerate(talk):
        blocks = message["content"] if isinstance(message["content"], list) else []
        paths = [((at,), ["role", "content", "x"]), *(((at, "content", k), BLOCK_FIELDS) for k in range(len(blocks)))]
        for path, fields in paths:
            for field in fields:
                for value in OF_BLOCKS:
                    copy = json.loads(json.dumps(talk))
                    holder = copy
                    for step in path:
                        holder = holder[step]
                    if value is ...:
                        holder.pop(field, None)
                    else:
                        holder[field] = value
                    yield copy


@pytest.mark.parametrize("talk", TALKS, ids=range(len(TALKS)))
def test_every_change_of_a_block(talk):
    """Whatever one block has that it should not have is seen in messages that follow others, too."""
    for changed_talk in all_changes_of_blocks(talk):
        provider = Provider("messages")
        provider.post({"messages": TALKS[0], **OF_ANTHROPIC})
        body = {"messages": [*TALKS[0], *changed_talk], **OF_ANTHROPIC}
        assert provider.post(body) == read_whole(body, "messages")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(OTHER_FIELDS), st.lists(st.sampled_from(TALKS), max_size=3), st.booleans()),
        min_size=2,
        max_size=5,
    )
)
@example(
    [(OTHER_FIELDS[0], [TALKS[8]], True), (OTHER_FIELDS[2], [TALKS[0]], False), (OTHER_FIELDS[2], [TALKS[8]], False)]
)
@example(
    [(OTHER_FIELDS[0], [TALKS[0]], True), (OTHER_FIELDS[1], [TALKS[0]], False), (OTHER_FIELDS[1], [TALKS[1]], True)]
)
def test_drawn_conversation_of_anthropic(steps):
    """Requests that extend, cut or change each other are answered as if each were the first."""
    provider, history = Provider("messages"), []
    for other, talks, grows in steps:
        more = [message for talk in talks for message in talk]
        history = [*history, *more] if grows else more
        body = {"messages": history, **OF_ANTHROPIC, **other}
        # What a thread holds depends on the requests before.
        fresh = read_whole(body, "messages")
        assert provider.post(body) == fresh


def test_only_what_is_new_is_read_of_messages(monkeypatch):
    """A body that goes on is not parsed as a whole; its instructions come first, whatever they were before."""
    provider = Provider("messages")
    one, two = ({"messages": TALKS[0], **OF_ANTHROPIC, **OTHER_FIELDS[k]} for k in (0, 1))
    provider.post(one), provider.post(two)
    monkeypatch.setattr(GrowingRequests, "parse", None)
    for body in (one, two):
        status, *_ = provider.post({**body, "messages": [*TALKS[0], *TALKS[5]]})
        assert 200 == status
    assert ["other", "user", "say", "call", "result", "user"] == [item.kind for item in provider.asked.items]

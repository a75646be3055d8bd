"""Answers, events and errors have the types of the newest clients: nothing is missing, nothing is unknown."""

from __future__ import annotations

import asyncio
import json
from functools import cache

import pytest

from pytest_approvals.agent_side.contract.types import HostedResult

pydantic = pytest.importorskip("pydantic")
openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

GO = {"role": "user", "content": "go"}
SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}}}
MCP = {"type": "mcp", "server_label": "web", "server_url": "https://web.invalid/mcp", "allowed_tools": ["search"]}

BODIES = {
    "chat": {"model": "m", "messages": [GO]},
    "responses": {"model": "m", "input": "go"},
    "messages": {"model": "m", "max_tokens": 9, "messages": [GO]},
}

MODELS = {
    "chat": (openai.types.chat.ChatCompletion, openai.types.chat.ChatCompletionChunk),
    "responses": (openai.types.responses.Response, openai.types.responses.ResponseStreamEvent),
    "messages": (anthropic.types.Message, anthropic.types.RawMessageStreamEvent),
}

MORE = {
    "chat": {
        "several choices": {"n": 3},
        "usage": {"stream": True, "stream_options": {"include_usage": True}},
        "nulls": {"n": None, "temperature": None},
    },
    "responses": {
        "hosted": {"tools": [MCP]},
        "background": {"background": True},
        "function": {"tools": [{"type": "function", "name": "pay", "parameters": SCHEMA}], "tool_choice": "required"},
        "settings": {
            "reasoning": {"effort": "low"},
            "text": {"verbosity": "low"},
            "max_output_tokens": 50,
            "max_tool_calls": 2,
            "metadata": {"a": "b"},
            "top_logprobs": 2,
            "instructions": "be kind",
        },
        "nulls": {
            "parallel_tool_calls": None,
            "tool_choice": None,
            "temperature": None,
            "text": None,
            "metadata": None,
        },
    },
    "messages": {"a system": {"system": "be kind"}, "a thread": {"thread": {"type": "create"}}},
}

OLDER = {("ResponseFunctionCallArgumentsDoneEvent", "name")}
"""What the newest client no longer has, and openai 2.54 requires."""


def hosted(call_id, output=None, error=None):
    return HostedResult(call_id=call_id, tool="search", arguments={"q": "x"}, output=output, error=error, server="web")


def replies(making, style):
    """One reply of each kind, by what it holds."""
    call = making.call
    return {
        "text": making.reply(say="Well, well.", style=style),
        "calls": making.reply(call("c1", amount=5), call("c2", amount=6), say="Wait", style=style),
        "request": making.reply(call("mcpr_1", "search", "hosted_mcp", "web", q="x"), style=style),
        "hosted results": making.reply(
            say="So", style=style, hosted=(hosted("mcpr_1", "y"), hosted("mcpr_2", None, "no"))
        ),
    }


def unknown_fields(value):
    """Yield the fields that the models do not have, wherever they are."""
    if isinstance(value, pydantic.BaseModel):
        kind = type(value)
        yield from ((kind.__name__, name) for name in value.model_extra or ())
        for name in kind.model_fields:
            yield from unknown_fields(getattr(value, name, None))
    elif isinstance(value, list):
        for element in value:
            yield from unknown_fields(element)


def check(kind, data):
    """Read data strictly as the client's type; missing fields and other types are errors."""
    return set(unknown_fields(adapter_of(kind).validate_python(data, strict=True))) - OLDER


@cache
def adapter_of(kind):
    return pydantic.TypeAdapter(kind)


CASES = [
    (name, title, more, holds)
    for name in BODIES
    for title, more in {"plain": {}, **MORE[name]}.items()
    for holds in ("text", "calls", *(("request", "hosted results") if name == "responses" else ()))
]


@pytest.mark.parametrize(("name", "title", "more", "holds"), CASES, ids=[f"{a}-{b}-{d}" for a, b, _, d in CASES])
def test_answers_have_the_published_types(making, name, title, more, holds):
    """A whole answer and every event of a stream validate strictly against the models of the newest client."""
    whole, event = MODELS[name]
    for style in ("whole", "tokens", "split") if title == "plain" else ("tokens",):
        wire = making.Wire(name, *[replies(making, style)[holds]] * 2)
        if "stream" not in more:
            answer = json.loads(
                b"".join(asyncio.run(wire.endpoint.post(json.dumps({**BODIES[name], **more}).encode())).pieces)
            )
            assert set() == check(whole, answer)
        raw = json.dumps({**BODIES[name], **more, "stream": True}).encode()
        text = b"".join(asyncio.run(wire.endpoint.post(raw)).pieces).decode()
        for line in text.splitlines():
            if line.startswith("data: {"):
                assert set() == check(event, json.loads(line[6:]))


@pytest.mark.parametrize("name", BODIES)
def test_a_missing_or_unknown_field_is_seen(making, name):
    """The check above fails for an answer without one of its fields, and for one with a field more."""
    wire = making.Wire(name, making.reply(say="x"))
    answer = json.loads(b"".join(asyncio.run(wire.endpoint.post(json.dumps(BODIES[name]).encode())).pieces))

    assert {(MODELS[name][0].__name__, "no_such_field")} == check(MODELS[name][0], {**answer, "no_such_field": 1})
    with pytest.raises(pydantic.ValidationError):
        check(MODELS[name][0], {key: value for key, value in answer.items() if key != "model"})


def test_errors_have_the_published_types(making):
    """An error of Messages validates as the client's error, with the details of a thread that is not held."""
    thread = {"type": "continue", "previous_message_id": "msg_9"}
    for more in ({"messages": []}, {"thread": thread}, {"max_tokens": "x"}):
        wire = making.Wire("messages")
        answer = asyncio.run(wire.endpoint.post(json.dumps({**BODIES["messages"], **more}).encode()))
        assert set() == check(anthropic.types.ErrorResponse, json.loads(b"".join(answer.pieces))) - {
            ("NotFoundErrorObject", "details")
        }


def test_every_choice_is_the_reply(making):
    """A request for several choices gets the reply of the script as each of them."""
    wire = making.Wire("chat", making.reply(say="x"), making.reply(say="x"))
    answers = [
        b"".join(
            asyncio.run(wire.endpoint.post(json.dumps({**BODIES["chat"], "n": 3, **more}).encode())).pieces
        ).decode()
        for more in ({}, {"stream": True})
    ]
    chunks = [json.loads(line[6:])["choices"] for line in answers[1].splitlines() if line.startswith("data: {")]

    assert ["x", "x", "x"] == [choice["message"]["content"] for choice in json.loads(answers[0])["choices"]]
    assert ["x", "x", "x"] == [
        "".join(one["delta"].get("content") or "" for choices in chunks for one in choices if one["index"] == index)
        for index in range(3)
    ]

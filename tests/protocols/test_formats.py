"""Requests as neutral items, and what the provider of Responses keeps."""

from __future__ import annotations

import asyncio
import json

import pytest

from pytest_approvals.agent_side.contract.types import Item, ModelCall
from pytest_approvals.errors import UnknownName
from pytest_approvals.protocols import create_codec
from pytest_approvals.protocols.responses import ResponsesCodec
from pytest_approvals.protocols.streaming import STREAM_STYLES, SseEvent, StreamStyle, encode_events, get_stream_style

USER = {"role": "user", "content": "go"}


def filled(body):
    """Return a body with what its protocol requires."""
    return {"model": "m", **({"max_tokens": 9} if "messages" in body else {}), **body}


def post(wire, **body):
    """Post a request and return the body of the answer."""
    answer = asyncio.run(wire.endpoint.post(json.dumps(filled(body)).encode()))
    return answer.status, json.loads(b"".join(answer.pieces))


def streamed(wire, **body):
    """Post a request for a stream and return the data of its events."""
    raw = json.dumps(filled({"stream": True, **body})).encode()
    text = b"".join(asyncio.run(wire.endpoint.post(raw)).pieces).decode()
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def test_unknown_protocol():
    """A protocol that nobody speaks is answered with the nearest one."""
    with pytest.raises(UnknownName) as caught:
        create_codec("response")
    assert "Unknown protocol 'response'; did you mean 'responses'?" == str(caught.value)


def test_chat_as_items():
    """Each message has its number, and text next to a call is in the call's message."""
    made = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 5}'}}
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be kind"},
            USER,
            {"role": "assistant", "content": "Wait.", "tool_calls": [made]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "paid"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "pay"}}],
    }
    asked = create_codec("chat").read(body)
    assert (
        Item(kind="other", text="be kind", message=0),
        Item(kind="user", text="go", message=1),
        Item(kind="say", text="Wait.", message=2),
        Item(kind="call", id="c1", tool="pay", arguments={"amount": 5}, message=2),
        Item(kind="result", id="c1", text="paid", message=3),
    ) == asked.items
    assert (("pay",), False, ()) == (asked.tools, asked.stream, asked.body_errors)


def test_broken_arguments_stay_text():
    """Arguments that are no object stay as the model wrote them."""
    made = [
        {"id": f"c{number}", "type": "function", "function": {"name": "pay", "arguments": text}}
        for number, text in enumerate(["[5]", '{"amount": '])
    ]
    asked = create_codec("chat").read({"messages": [USER, {"role": "assistant", "tool_calls": made}]})
    assert ["[5]", '{"amount": '] == [item.arguments for item in asked.items if item.kind == "call"]


def test_references_are_resolved(making):
    """An item that the provider keeps can be named in place of sending it; the tampered copy of nobody is read."""
    wire = making.Wire(
        "responses", making.reply(making.call("mcpr_1", "search", "hosted_mcp", "web")), making.reply(say="done")
    )
    post(wire, input="go")
    yes = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": "no"}
    post(wire, input=[USER, {"type": "item_reference", "id": "mcpr_1"}, yes])
    assert [("user", None), ("approval_request", "mcpr_1"), ("approval_response", "mcpr_1")] == [
        (item.kind, item.id) for item in wire.items
    ]
    assert ("no", False) == (wire.items[-1].text, wire.items[-1].approved)


def test_reference_next_to_a_previous_response_is_a_duplicate(making):
    """A client that continues from a response and names its items as well sends them twice."""
    asked = making.reply(making.call("mcpr_1", "search", "hosted_mcp", "web"))
    wire = making.Wire("responses", asked, making.reply(say="never"))
    _, first = post(wire, input="go")
    yes = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    twice = [{"type": "item_reference", "id": "mcpr_1"}, yes]
    status, response = post(wire, input=twice, previous_response_id=first["id"])
    assert (400, "Duplicate item found with id mcpr_1.") == (status, response["error"]["message"][:36])


def test_two_requests_continue_from_one_response(making):
    """A response is a place in a conversation, not its end: each request that continues from it is a branch."""
    wire = making.Wire("responses", *(making.reply(say=text) for text in ("one", "two", "three")))
    _, first = post(wire, input="go")
    response = []
    for text in ("left", "right"):
        post(wire, input=text, previous_response_id=first["id"])
        response.append([item.text for item in wire.items])
    assert [["go", "one", "left"], ["go", "one", "right"]] == response


def test_response_that_is_not_stored(making):
    """What the client does not want to be kept cannot be gone on from."""
    wire = making.Wire("responses", making.reply(say="one"), making.reply(say="two"))
    _, first = post(wire, input="go", store=False)
    status, response = post(wire, input="more", previous_response_id=first["id"])
    assert (400, "previous_response_not_found") == (status, response["error"]["code"])


def test_stream_that_broke_is_not_kept(making):
    """A response whose stream broke was never completed, so it cannot be gone on from."""
    wire = making.Wire("responses", making.reply(say="one", breaks_after=1), making.reply(say="two"))
    raw = json.dumps({"model": "m", "input": "go", "stream": True}).encode()
    answer = asyncio.run(wire.endpoint.post(raw))
    shown = []
    with pytest.raises(Exception, match="broke"):
        shown.extend(answer.pieces)
    started = json.loads(shown[0].decode().splitlines()[1][6:])["response"]["id"]
    status, _ = post(wire, input="more", previous_response_id=started)
    assert 400 == status


def test_conversation_holds_what_was_said(making):
    """A conversation is begun first, and then holds the items of all its requests and responses."""
    spoken = ResponsesCodec()
    name = spoken.serve_stored("POST", "/conversations", "", {})["id"]
    wire = making.Wire("responses", making.reply(say="one"), making.reply(say="two"), spoken=spoken)
    post(wire, input="go", conversation=name)
    _, response = post(wire, input="more", conversation={"id": name})
    assert ["go", "one", "more"] == [item.text for item in wire.items]
    assert {"id": name} == response["conversation"]


def test_ids_never_come_again(making):
    """Every response and every item of one conversation has an id of its own."""
    wire = making.Wire("responses", *(making.reply(making.call("c1"), say="so") for _ in range(3)))
    ids = []
    for _ in range(3):
        _, response = post(wire, input="go")
        ids += [response["id"], *(item["id"] for item in response["output"])]
    assert len(ids) == len(set(ids)) == 9


def test_servers_are_listed_once(making):
    """The provider lists a server's tools in its first response and not again while the list is in the conversation."""
    web = {"type": "mcp", "server_label": "web", "server_url": "https://web.invalid/mcp"}
    tools = [{**web, "allowed_tools": {"tool_names": ["search"]}}]
    spoken = ResponsesCodec({"web": [{"name": "search", "input_schema": {}}, {"name": "buy", "input_schema": {}}]})
    wire = making.Wire("responses", making.reply(say="one"), making.reply(say="two"), spoken=spoken)
    _, first = post(wire, input="go", tools=tools)
    _, second = post(wire, input="more", tools=tools, previous_response_id=first["id"])
    assert ["search"] == [tool["name"] for tool in first["output"][0]["tools"]]
    assert ["message"] == [item["type"] for item in second["output"]]


def test_arguments_of_no_text_are_an_empty_input(making):
    """Messages has objects in the place of text: a model that sends nothing has sent an empty one."""
    wire = making.Wire("messages", making.reply(ModelCall(id="c1", tool="restart", arguments="")))
    _, response = post(wire, messages=[USER])
    assert [{}] == [block["input"] for block in response["content"]]


# --- structured answers -----------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"total": {"type": "integer"}}, "additionalProperties": False}
ASKED_BY_TOOL = {
    "chat": {"tools": [{"type": "function", "function": {"name": "final", "parameters": SCHEMA}}]},
    "responses": {"tools": [{"type": "function", "name": "final", "parameters": SCHEMA}]},
    "messages": {"tools": [{"name": "final", "input_schema": SCHEMA}]},
}
ASKED_BY_FORMAT = {
    "chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
    "responses": {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
    "messages": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
}


def asking(name):
    return {"input": "go"} if name == "responses" else {"messages": [USER]}


@pytest.mark.parametrize("name", ASKED_BY_TOOL)
def test_answer_is_a_call_of_the_tool_that_is_for_it(making, name):
    """A structured answer is a call where a tool with its fields is offered."""
    wire = making.Wire(name, making.reply(answer={"total": 5}))
    _, response = post(wire, **asking(name), **ASKED_BY_TOOL[name])
    assert '"final"' in json.dumps(response)


@pytest.mark.parametrize("name", ASKED_BY_FORMAT)
def test_answer_is_text_where_a_format_is_asked_for(making, name):
    """A structured answer is text where text in a format is asked for."""
    wire = making.Wire(name, making.reply(answer={"total": 5}))
    response = streamed(wire, **asking(name), **ASKED_BY_TOOL[name], **ASKED_BY_FORMAT[name])
    assert '\\"total\\": 5' in json.dumps(response)
    assert "call_answer" not in json.dumps(response)


def test_answer_is_known_again(making):
    """What holds an answer, and what responds to it, is `other` in the next input."""
    wire = making.Wire("chat", making.reply(answer={"total": 5}), making.reply(say="done"))
    _, response = post(wire, messages=[USER], **ASKED_BY_TOOL["chat"])
    said = response["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "ok"}
    post(wire, messages=[USER, said, result, USER])
    assert ["user", "other", "other", "user"] == [item.kind for item in wire.items]


# --- streams ----------------------------------------------------------------------------------------------------------


def test_stream_as_bytes():
    """A style changes how events are written, and nothing that they say."""
    events = [SseEvent(name="a", data={"text": "é"}), SseEvent(data="[DONE]")]
    shown = {name: b"".join(encode_events(events, style)) for name, style in STREAM_STYLES.items()}
    assert 'event: a\ndata: {"text": "é"}\n\ndata: [DONE]\n\n' == shown["plain"].decode()
    assert 'event: a\r\ndata: {"text": "é"}\r\n\r\ndata: [DONE]\r\n\r\n' == shown["crlf"].decode()
    assert 'data: {"text": "é"}\n\ndata: [DONE]\n\n' == shown["unnamed"].decode()
    assert ': still here\n\nevent: a\ndata: {"text": "é"}\n\n' == shown["comments"].decode().removesuffix(
        ": still here\n\ndata: [DONE]\n\n"
    )
    assert shown["plain"] == shown["bytes"]


def test_bytes_tear_characters():
    """A style with a size sends that many bytes at a time, in the middle of characters, too."""
    pieces = list(encode_events([SseEvent(data="é")], StreamStyle(size=1)))
    assert {1} == set(map(len, pieces))
    assert [b"\xc3", b"\xa9"] == pieces[6:8]


def test_unknown_style():
    """A style that does not exist is answered with the nearest one."""
    with pytest.raises(UnknownName) as caught:
        get_stream_style("crfl")
    assert "Unknown style of a stream 'crfl'; did you mean 'crlf'?" == str(caught.value)


@pytest.mark.parametrize("style", ["ids_first", "interleaved"])
def test_chat_streams_chunks_as_they_come(making, style):
    """In Chat Completions the pieces of several calls come in the order of the chunks."""
    reply = making.reply(making.call("c1", amount=5), making.call("c2", amount=6), style=style)
    response = streamed(making.Wire("chat", reply), messages=[USER])
    calls = [call for one in response for choice in one["choices"] for call in choice["delta"].get("tool_calls", ())]
    assert [chunk.call for chunk in reply.chunks] == [call["index"] for call in calls]
    assert ["c1", "c2"] == [call["id"] for call in calls if "id" in call]


def blocks_of(response, name):
    """Return the events that begin and continue a part, with its number."""
    if name == "messages":
        return [one["index"] for one in response if one["type"].startswith("content_block_")]
    return [one["output_index"] for one in response if "output_index" in one]


@pytest.mark.parametrize("name", ["responses", "messages"])
def test_parts_follow_each_other(making, name):
    """In Responses and Messages a part begins when the one before it has ended, unless the style lets them overlap."""
    reply = making.reply(making.call("c1", amount=5), making.call("c2", amount=6), style="interleaved")
    plain = blocks_of(streamed(making.Wire(name, reply), **asking(name)), name)
    overlapping = blocks_of(streamed(making.Wire(name, reply, style="overlapping"), **asking(name)), name)
    assert sorted(plain) == plain
    assert sorted(overlapping) != overlapping


@pytest.mark.parametrize("name", ["chat", "responses", "messages"])
def test_empty_chunks_stay(making, name):
    """Chunks without content are sent, as providers do."""
    reply = making.reply(making.call("c1", amount=5), style="empty")
    response = json.dumps(streamed(making.Wire(name, reply), **asking(name)))
    empty = {"chat": '"arguments": ""}', "responses": '"delta": ""', "messages": '"partial_json": ""'}
    assert response.count(empty[name]) >= len([chunk for chunk in reply.chunks if chunk.arguments == ""])

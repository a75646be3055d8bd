"""Amazon's official client takes every body of Converse, whole and streamed, over a connection."""

from __future__ import annotations

import asyncio
import json
import socket
from threading import Thread

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Reply, Thought
from pytest_approvals.protocols.reasoning import sign_reasoning
from pytest_approvals.protocols.streaming import STREAM_STYLES
from pytest_approvals.runner.stream_chunks import CHUNKINGS, split_reply

boto3 = pytest.importorskip("boto3", reason="test_other_clients.py makes a place for it")
pytest.importorskip("httptools")

from botocore import eventstream, exceptions, loaders  # noqa: E402
from botocore.config import Config  # noqa: E402
from botocore.model import ServiceModel  # noqa: E402
from botocore.validate import ParamValidator  # noqa: E402
from urllib3.exceptions import ProtocolError  # noqa: E402

from pytest_approvals.protocols.http.server import HttpServer  # noqa: E402

MODEL = ServiceModel(loaders.Loader().load_service_model("bedrock-runtime", "service-2"), "bedrock-runtime")
HAS_REASONING = "reasoningContent" in MODEL.shape_for("ContentBlock").members
"""Whether the release has it: boto3 1.35 does not."""

PAY = {"name": "pay", "inputSchema": {"json": {"type": "object", "properties": {"amount": {"type": "integer"}}}}}
TOOLS = {"tools": [{"toolSpec": PAY}]}
GO = {"role": "user", "content": [{"text": "go"}]}
ASK = {"modelId": "us.anthropic.claude:0", "messages": [GO], "toolConfig": TOOLS, "system": [{"text": "be kind"}]}

EXPECTED = [
    {"text": "Wait: é"},
    {"toolUse": {"toolUseId": "c1", "name": "pay", "input": {"amount": 5, "to": "Zoë"}}},
    {"toolUse": {"toolUseId": "c2", "name": "pay", "input": {"amount": 6}}},
]


class Bedrock:
    """A server on the loopback interface, and a client of it: making one takes a quarter of a second."""

    def __init__(self):
        self.wire = None
        self.server = HttpServer(socket.AF_INET, "127.0.0.1", 0, self.serve, None)
        self.thread = Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        session = boto3.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")
        url, config = (
            f"http://127.0.0.1:{self.server.server_port}",
            Config(retries={"total_max_attempts": 1}, proxies={}),
        )
        self.client = session.client("bedrock-runtime", endpoint_url=url, config=config)

    def serve(self, method, path, raw):
        return asyncio.run(self.wire.endpoint.serve(method, path, raw))

    def stop(self):
        self.client.close()
        self.server.stop()
        self.thread.join()
        self.server.close()


@pytest.fixture(scope="module")
def bedrock():
    """It never asks twice."""
    made = Bedrock()
    yield made
    made.stop()


@pytest.fixture
def asking(bedrock):
    """The client of a wire."""

    def ask(wire):
        bedrock.wire = wire
        return bedrock.client

    return ask


def two_calls(making, style="whole"):
    calls = making.call("c1", amount=5, to="Zoë"), making.call("c2", amount=6)
    return making.reply(*calls, say="Wait: é", style=style)


def content_of(response):
    return response["output"]["message"]["content"]


def join(events):
    """Return the content of a streamed message as the client would get it whole, and why it stopped."""
    blocks, stop = {}, None
    for event in events:
        ((kind, facts),) = event.items()
        if kind == "contentBlockStart":
            blocks[facts["contentBlockIndex"]] = {"toolUse": {**facts["start"]["toolUse"], "input": ""}}
        elif kind == "contentBlockDelta":
            ((name, piece),) = facts["delta"].items()
            block = blocks.setdefault(facts["contentBlockIndex"], {})
            if name == "text":
                block["text"] = block.get("text", "") + piece
            elif name == "toolUse":
                block["toolUse"]["input"] += piece["input"]
            else:
                held = block.setdefault("reasoningContent", {})
                for field, value in piece.items():
                    held[field] = held[field] + value if field in held else value
        elif kind == "messageStop":
            stop = facts["stopReason"]
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return [blocks[index] for index in sorted(blocks)], stop


def results(*ids, text="paid"):
    return {"role": "user", "content": [{"toolResult": {"toolUseId": one, "content": [{"text": text}]}} for one in ids]}


def test_response(asking, making):
    """A response has the text and the calls of the reply."""
    wire = making.Wire("converse", two_calls(making))
    client = asking(wire)
    got = client.converse(**ASK)

    assert EXPECTED == content_of(got)
    assert ("assistant", "tool_use") == (got["output"]["message"]["role"], got["stopReason"])
    assert "req_1" == got["ResponseMetadata"]["RequestId"]
    assert [("other", "be kind"), ("user", "go")] == [(item.kind, item.text) for item in wire.items]
    assert [("us.anthropic.claude:0", False, ("pay",))] == [
        (asked.model, asked.stream, asked.tools) for _, asked in wire.script.asked
    ]


@pytest.mark.parametrize(
    ("chunking", "style"),
    [
        *((chunking, "plain") for chunking in CHUNKINGS),
        *(("tokens", style) for style in sorted(set(STREAM_STYLES) - {"plain"})),
    ],
)
def test_streamed_response(asking, making, chunking, style):
    """A stream has the same blocks, however it is written and cut."""
    wire = making.Wire("converse", two_calls(making, chunking), style=style)
    client = asking(wire)
    got = list(client.converse_stream(**ASK)["stream"])

    assert (EXPECTED, "tool_use") == join(got)
    assert "metadata" in got[-1]
    assert wire.script.asked[-1][1].stream


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_bodies_have_the_published_types(making, stream):
    """Every field of a response and of each event is one of the service model, and none that it requires is missing."""
    reply = thinking_reply(making.call("c1", amount=5), say="Yes.") if HAS_REASONING else two_calls(making)
    wire = making.Wire("converse", reply)
    target = wire.format.find_target(f"/model/m/converse{'-stream' if stream else ''}", "")
    raw = b"".join(asyncio.run(wire.endpoint.post(json.dumps({"messages": [GO]}).encode(), target)).pieces)
    members = MODEL.shape_for("ConverseStreamOutput").members
    bodies = (
        [(members[name].name, json.loads(payload)) for name, payload in read_messages(raw)]
        if stream
        else [("ConverseResponse", json.loads(raw))]
    )

    reports = [ParamValidator().validate(body, MODEL.shape_for(shape)).generate_report() for shape, body in bodies]
    assert [] == [report for report in reports if report]


def read_messages(raw):
    buffer = eventstream.EventStreamBuffer()
    buffer.add_data(raw)
    return [(event.headers[":event-type"], event.payload) for event in buffer]


def test_whole_story(asking, making):
    """Results go back in a message of the user."""
    wire = making.Wire("converse", two_calls(making), making.reply(say="done"))
    client = asking(wire)
    said = client.converse(**ASK)["output"]["message"]
    answer = client.converse(**{**ASK, "messages": [GO, said, results("c1", "c2")]})

    assert [{"text": "done"}] == content_of(answer)
    assert "end_turn" == answer["stopReason"]
    assert ["other", "user", "say", "call", "call", "result", "result"] == [item.kind for item in wire.items]
    assert ["c1", "c2", "c1", "c2"] == [item.id for item in wire.items[3:]]
    assert ["paid", "paid"] == [item.text for item in wire.items[5:]]


def test_result_that_is_json(asking, making):
    """It is read as text."""
    wire = making.Wire("converse", making.reply(say="done"))
    call = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "pay", "input": {}}}]}
    result = {"toolResult": {"toolUseId": "c1", "content": [{"json": {"paid": 5}}], "status": "success"}}
    client = asking(wire)
    client.converse(**{**ASK, "messages": [GO, call, {"role": "user", "content": [result]}]})

    assert '{"paid": 5}' == wire.items[-1].text


def test_structured_answer(asking, making):
    """It is the call of the tool that has exactly its fields as parameters."""
    wire = making.Wire("converse", making.reply(answer={"amount": 5}))
    client = asking(wire)
    (block,) = content_of(client.converse(**ASK))

    assert ("pay", {"amount": 5}) == (block["toolUse"]["name"], block["toolUse"]["input"])


def test_tokens_are_counted(asking, making):
    """The number is an estimate, and asks no model."""
    if "CountTokens" not in MODEL.operation_names:
        return  # an older release
    wire = making.Wire("converse")
    client = asking(wire)
    assert client.count_tokens(modelId="m", input={"converse": {"messages": [GO]}})["inputTokens"] > 0
    assert [] == wire.script.asked


def test_refusal_is_a_validation_exception(asking, making):
    """A history that the provider refuses is the client's `ValidationException`, in the provider's words."""
    wire = making.Wire("converse", making.reply(say="never"))
    call = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "pay", "input": {}}}]}
    client = asking(wire)
    with pytest.raises(client.exceptions.ValidationException) as caught:
        client.converse(**{**ASK, "messages": [GO, call, GO]})

    error = caught.value.response["Error"]
    assert "Expected toolResult blocks at messages.2.content for the following Ids: c1" == error["Message"]
    assert 400 == caught.value.response["ResponseMetadata"]["HTTPStatusCode"]


FAILURES = [(429, "ThrottlingException"), (500, "InternalServerException"), (503, "ServiceUnavailableException")]


@pytest.mark.parametrize(("status", "error"), FAILURES)
@pytest.mark.parametrize("method", ["converse", "converse_stream"])
def test_failure_is_the_clients_own_error(asking, making, status, error, method):
    """A model that fails is the client's own error for that status."""
    client = asking(making.Wire("converse", ModelDown(status)))
    with pytest.raises(exceptions.ClientError) as caught:
        getattr(client, method)(**ASK)
    assert isinstance(caught.value, getattr(client.exceptions, error, exceptions.ClientError))
    assert error == caught.value.response["Error"]["Code"]


def test_connection_that_breaks(asking, making):
    """It is an error of the connection."""
    client = asking(making.Wire("converse", ModelDown(0)))
    with pytest.raises(exceptions.ConnectionClosedError):
        client.converse(**ASK)


def test_stream_that_breaks(asking, making):
    """It shows what came before, and ends in an error of the connection."""
    wire = making.Wire("converse", making.reply(say="Well, well.", style="tokens", breaks_after=2))
    shown = []
    client = asking(wire)
    stream = client.converse_stream(**ASK)["stream"]
    with pytest.raises(ProtocolError):
        shown.extend(stream)

    assert "".join(event["contentBlockDelta"]["delta"]["text"] for event in shown[1:]) in "Well, well."[:-1]


@pytest.mark.parametrize("how", ["truncated", "garbled"])
def test_stream_that_cannot_be_read(asking, making, how):
    """Bytes that are no message are an error of the client."""
    wire = making.Wire("converse", ModelDown(0, how))
    client = asking(wire)
    stream = client.converse_stream(**ASK)["stream"]
    with pytest.raises(eventstream.ParserError):
        list(stream)


# --- reasoning --------------------------------------------------------------------------------------------------------

THINKS = {**ASK, "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}


def thinking_reply(*calls, say=None, text="It is small", style="whole"):
    thought = Thought(id="rs_1_0", text=text, signature=sign_reasoning("rs_1_0", text), before=None)
    return Reply(say=say, calls=calls, thoughts=(thought,), chunks=split_reply(say, calls, style, (thought,)))


reasons = pytest.mark.skipif(not HAS_REASONING, reason="this boto3 has no reasoning")


@reasons
@pytest.mark.parametrize("text", ["It is small", None], ids=["shown", "redacted"])
@pytest.mark.parametrize("style", CHUNKINGS)
def test_reasoning_and_signatures(asking, making, text, style):
    """Reasoning precedes the calls with its signature, or is bytes; a stream has the same."""
    said = thinking_reply(making.call("c1", amount=5), text=text, style=style)
    client = asking(making.Wire("converse", said, said))
    whole = content_of(client.converse(**THINKS))
    streamed, _ = join(client.converse_stream(**THINKS)["stream"])

    signature = sign_reasoning("rs_1_0", text)
    shown = {"reasoningText": {"text": text, "signature": signature}}
    assert {"reasoningContent": shown if text else {"redactedContent": signature.encode()}} == whole[0]
    flat = {"text": text, "signature": signature} if text else {"redactedContent": signature.encode()}
    assert [flat, {"amount": 5}] == [streamed[0]["reasoningContent"], streamed[1]["toolUse"]["input"]]


def change_text(blocks):
    return [{"reasoningContent": {"reasoningText": {**blocks[0]["reasoningContent"]["reasoningText"], "text": "Hm"}}}]


@reasons
@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (lambda blocks: blocks, ""),
        (lambda blocks: blocks[1:], "Expected `thinking` or `redacted_thinking`, but found `tool_use`."),
        (lambda blocks: [*change_text(blocks), blocks[1]], "Invalid `signature` in `thinking` block"),
        (lambda blocks: [blocks[1], blocks[0]], "Expected `thinking` or `redacted_thinking`"),
        (
            lambda blocks: [{"reasoningContent": {"reasoningText": {"text": "It is small"}}}, blocks[1]],
            "Field required",
        ),
    ],
    ids=["as sent", "left out", "another text", "another order", "no signature"],
)
def test_reasoning_that_comes_back(asking, making, change, refused):
    """It is wanted as it was sent, in front of its calls, and then known by its signature."""
    wire = making.Wire("converse", thinking_reply(making.call("c1", amount=5)), making.reply(say="done"))
    client = asking(wire)
    blocks = change(content_of(client.converse(**THINKS)))
    history = [GO, {"role": "assistant", "content": blocks}, results("c1")]
    if not refused:
        assert [{"text": "done"}] == content_of(client.converse(**{**THINKS, "messages": history}))
        assert ["reasoning", "call", "result"] == [item.kind for item in wire.items[2:]]
        assert ("rs_1_0", "It is small") == (wire.items[2].id, wire.items[2].text)
        return
    with pytest.raises(client.exceptions.ValidationException) as caught:
        client.converse(**{**THINKS, "messages": history})
    message = caught.value.response["Error"]["Message"]
    assert message.startswith("The model returned the following errors: ")
    assert refused in message


@reasons
def test_reasoning_of_older_turns_may_be_left_out(asking, making):
    """Behind the next message of the user nobody asks for it."""
    wire = making.Wire("converse", thinking_reply(making.call("c1", amount=5)), *2 * [making.reply(say="done")])
    client = asking(wire)
    _, call = content_of(client.converse(**THINKS))
    said = {"role": "assistant", "content": [{"text": "done"}]}
    history = [GO, {"role": "assistant", "content": [call]}, results("c1"), said, GO]
    assert [{"text": "done"}] == content_of(client.converse(**{**THINKS, "messages": history}))


@reasons
def test_redacted_reasoning_comes_back(asking, making):
    """Its bytes are known."""
    wire = making.Wire("converse", thinking_reply(making.call("c1", amount=5), text=None), making.reply(say="done"))
    client = asking(wire)
    blocks = content_of(client.converse(**THINKS))
    client.converse(**{**THINKS, "messages": [GO, {"role": "assistant", "content": blocks}, results("c1")]})

    assert ("reasoning", "rs_1_0") == (wire.items[2].kind, wire.items[2].id)

"""Google's official client takes every body of Gemini: sync, async, streams and its chats."""

from __future__ import annotations

import asyncio

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Reply, Thought
from pytest_approvals.protocols.reasoning import sign_reasoning
from pytest_approvals.protocols.streaming import STREAM_STYLES
from pytest_approvals.runner.stream_chunks import CHUNKINGS, split_reply

genai = pytest.importorskip("google.genai", reason="test_other_clients.py makes a place for it")
httpx = pytest.importorskip("httpx")
errors, types = genai.errors, genai.types

PAY = {"name": "pay", "parameters": {"type": "OBJECT", "properties": {"amount": {"type": "INTEGER"}}}}
TOOLS = [{"function_declarations": [PAY]}]
CONFIG = {"tools": TOOLS, "system_instruction": "be kind"}
ASK = {"model": "m", "contents": "go", "config": CONFIG}

EXPECTED = [("text", "Wait: é"), ("c1", "pay", {"amount": 5, "to": "Zoë"}), ("c2", "pay", {"amount": 6})]


def client(wire):
    options = types.HttpOptions(
        base_url="http://model.invalid",
        httpx_client=httpx.Client(transport=wire.transport()),
        httpx_async_client=httpx.AsyncClient(transport=wire.transport()),
    )
    return genai.Client(api_key="none", vertexai=False, http_options=options)


def two_calls(making, style="whole"):
    calls = making.call("c1", amount=5, to="Zoë"), making.call("c2", amount=6)
    return making.reply(*calls, say="Wait: é", style=style)


def read_parts(response):
    return [
        ("text", part.text)
        if part.function_call is None
        else (part.function_call.id, part.function_call.name, part.function_call.args)
        for part in response.candidates[0].content.parts
    ]


def join(chunks):
    """Return the parts of a stream, its text in one."""
    parts = [part for chunk in chunks for part in read_parts(chunk)]
    text = "".join(part[1] for part in parts if part[0] == "text")
    return [("text", text), *(part for part in parts if part[0] != "text")]


def result(*ids, text="paid"):
    parts = [
        types.Part(function_response=types.FunctionResponse(id=one, name="pay", response={"result": text}))
        for one in ids
    ]
    return types.Content(role="user", parts=parts)


GO = types.Content(role="user", parts=[types.Part(text="go")])


def thinking_reply(*calls, say=None, text="It is small", style="whole"):
    thought = Thought(id="rs_1_0", text=text, signature=sign_reasoning("rs_1_0", text), before=None)
    return Reply(say=say, calls=calls, thoughts=(thought,), chunks=split_reply(say, calls, style, (thought,)))


def test_response(making):
    """A response has the text and the calls of the reply."""
    wire = making.Wire("gemini", two_calls(making))
    got = client(wire).models.generate_content(**ASK)

    assert EXPECTED == read_parts(got)
    assert (types.FinishReason.STOP, "m") == (got.candidates[0].finish_reason, got.model_version)
    assert [("other", "be kind"), ("user", "go")] == [(item.kind, item.text) for item in wire.items]
    assert [("m", False, ("pay",))] == [(asked.model, asked.stream, asked.tools) for _, asked in wire.script.asked]


@pytest.mark.parametrize(
    ("chunking", "style"),
    [
        *((chunking, "plain") for chunking in CHUNKINGS),
        # The client takes a comment for data.
        *(("tokens", style) for style in sorted(set(STREAM_STYLES) - {"plain", "comments", "torn"})),
    ],
)
def test_streamed_response(making, chunking, style):
    """The text comes in its pieces and each call whole, however the stream is written."""
    wire = making.Wire("gemini", two_calls(making, chunking), style=style)
    got = list(client(wire).models.generate_content_stream(**ASK))

    assert EXPECTED == join(got)
    assert [types.FinishReason.STOP] == [
        chunk.candidates[0].finish_reason for chunk in got if chunk.candidates[0].finish_reason
    ]
    assert wire.script.asked[-1][1].stream


def test_async_response(making):
    """The asynchronous client takes a response and a stream."""
    wire = making.Wire("gemini", two_calls(making), two_calls(making, "tokens"))

    async def both():
        models = client(wire).aio.models
        whole = await models.generate_content(**ASK)
        return read_parts(whole), join([chunk async for chunk in await models.generate_content_stream(**ASK)])

    assert (EXPECTED, EXPECTED) == asyncio.run(both())


def test_whole_story(making):
    """Results go back in a content of the user, as the client's chat keeps it."""
    wire = making.Wire("gemini", two_calls(making), making.reply(say="done"))
    chat = client(wire).chats.create(model="m", config=CONFIG)
    chat.send_message("go")
    answer = chat.send_message(result("c1", "c2").parts)

    assert "done" == answer.text
    assert ["other", "user", "say", "call", "call", "result", "result"] == [item.kind for item in wire.items]
    assert ["c1", "c2", "c1", "c2"] == [item.id for item in wire.items[3:]]
    assert ["paid", "paid"] == [item.text for item in wire.items[5:]]


def test_calls_without_ids(making):
    """Results belong to the calls of their tool in their order, if nobody gave ids."""
    wire = making.Wire("gemini", making.reply(say="done"))
    calls = [types.Part(function_call=types.FunctionCall(name="pay", args={"amount": one})) for one in (5, 6)]
    client(wire).models.generate_content(
        model="m", contents=[GO, types.Content(role="model", parts=calls), result(None, None)]
    )

    assert ["unnamed-1", "unnamed-2", "unnamed-1", "unnamed-2"] == [item.id for item in wire.items[1:]]


def test_structured_answer(making):
    """It is text where JSON is asked for."""
    wire = making.Wire("gemini", making.reply(answer={"total": 5}))
    got = client(wire).models.generate_content(
        model="m",
        contents="go",
        config={
            "response_mime_type": "application/json",
            "response_schema": {"type": "OBJECT", "properties": {"total": {"type": "INTEGER"}}},
        },
    )

    assert {"total": 5} == got.parsed


def test_tokens_are_counted(making):
    """The number is an estimate, and asks no model."""
    wire = making.Wire("gemini")

    assert client(wire).models.count_tokens(model="m", contents="go").total_tokens > 0
    assert [] == wire.script.asked


def test_refusal_is_a_client_error(making):
    """A history that the provider refuses is a `ClientError`, in the provider's words."""
    wire = making.Wire("gemini", making.reply(say="never"))
    lone = types.Content(
        role="model", parts=[types.Part(function_call=types.FunctionCall(id="c1", name="pay", args={}))]
    )
    with pytest.raises(errors.ClientError) as caught:
        client(wire).models.generate_content(model="m", contents=[GO, lone, GO])

    assert (400, "INVALID_ARGUMENT") == (caught.value.code, caught.value.status)
    assert caught.value.message.startswith("Please ensure that the number of function response parts is equal")


@pytest.mark.parametrize(("status", "error"), [(429, "ClientError"), (500, "ServerError"), (503, "ServerError")])
def test_failure_is_the_clients_own_error(making, status, error):
    """A model that fails is the client's own error for that status."""
    with pytest.raises(getattr(errors, error)) as caught:
        client(making.Wire("gemini", ModelDown(status))).models.generate_content(**ASK)
    assert status == caught.value.code


def test_connection_that_breaks(making):
    """It is an error of the HTTP library."""
    with pytest.raises(httpx.ReadError):
        client(making.Wire("gemini", ModelDown(0))).models.generate_content(**ASK)


def test_stream_that_breaks(making):
    """It shows what came before, and ends in an error of the connection."""
    wire = making.Wire("gemini", making.reply(say="Well, well.", style="tokens", breaks_after=2))
    shown = []

    def read():
        shown.extend(chunk.text for chunk in client(wire).models.generate_content_stream(**ASK))

    with pytest.raises(httpx.ReadError):
        read()
    assert "".join(shown) in "Well, well."[:-1]
    assert shown


@pytest.mark.parametrize("how", ["truncated", "garbled"])
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_answer_that_cannot_be_read(making, how, stream):
    """It is an error of the client, whether it streams or not."""
    models = client(making.Wire("gemini", ModelDown(0, how))).models
    with pytest.raises((ValueError, errors.APIError)):
        list(models.generate_content_stream(**ASK)) if stream else models.generate_content(**ASK)


# --- reasoning --------------------------------------------------------------------------------------------------------

THINKS = {**CONFIG, "thinking_config": {"include_thoughts": True}}


@pytest.mark.parametrize("style", CHUNKINGS)
def test_thoughts_and_signatures(making, style):
    """A thought is text that the request asks for, and its signature is on the first call; a stream has the same."""
    said = thinking_reply(making.call("c1", amount=5), making.call("c2", amount=6), style=style)
    models = client(making.Wire("gemini", said, said, said)).models
    ask = {"model": "m", "contents": "go", "config": THINKS}
    whole = models.generate_content(**ask).candidates[0].content.parts
    streamed = [part for chunk in models.generate_content_stream(**ask) for part in chunk.candidates[0].content.parts]
    silent = models.generate_content(**ASK).candidates[0].content.parts

    assert [("It is small", True), (None, None), (None, None)] == [(part.text, part.thought) for part in whole]
    assert "It is small" == "".join(part.text for part in streamed if part.thought)
    signature = sign_reasoning("rs_1_0", "It is small").encode()
    for parts in (whole, streamed, silent):
        calls = [part for part in parts if part.function_call is not None]
        assert [signature, None] == [part.thought_signature for part in calls]


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_signature_of_a_text(making, stream):
    """It is on the text, in a stream on an empty one at the end."""
    wire = making.Wire("gemini", thinking_reply(say="Yes."))
    models = client(wire).models
    responses = list(models.generate_content_stream(**ASK)) if stream else [models.generate_content(**ASK)]
    parts = [part for one in responses for part in one.candidates[0].content.parts]

    assert "Yes." == "".join(part.text for part in parts)
    assert parts[-1].thought_signature is not None


def test_signatures_come_back(making):
    """The client's chat sends them back, and the provider knows the reasoning by them."""
    wire = making.Wire("gemini", thinking_reply(making.call("c1", amount=5)), making.reply(say="done"))
    chat = client(wire).chats.create(model="m", config=THINKS)
    chat.send_message("go")
    chat.send_message(result("c1").parts)

    assert ["other", "user", "reasoning", "call", "result"] == [item.kind for item in wire.items]
    assert ("rs_1_0", "It is small") == (wire.items[2].id, wire.items[2].text)


@pytest.mark.parametrize("style", ["whole", "tokens"])
def test_signature_at_the_end_of_a_stream_signs_its_text(making, style):
    """The reasoning comes before the text, in however many parts that is sent back."""
    wire = making.Wire("gemini", thinking_reply(say="Yes, it is.", style=style), making.reply(say="done"))
    models = client(wire).models
    responses = models.generate_content_stream(**ASK)
    parts = [part for one in responses for part in one.candidates[0].content.parts]
    models.generate_content(**{**ASK, "contents": [GO, types.Content(role="model", parts=parts), GO]})

    said = [item.kind for item in wire.items][2:-1]
    assert ["reasoning", *["say"] * (len(said) - 1)] == said
    assert "Yes, it is." == "".join(item.text for item in wire.items if item.kind == "say")


@pytest.mark.parametrize(
    ("signature", "refused"),
    [
        (None, "Function call is missing a thought_signature in functionCall parts."),
        (b"another", "Thought signature is not valid."),
        (b"skip_thought_signature_validator", ""),
    ],
)
def test_signature_that_is_not_the_one_sent(making, signature, refused):
    """It is wanted as it was sent, but for the words that stand for none."""
    wire = making.Wire("gemini", thinking_reply(making.call("c1", amount=5)), making.reply(say="done"))
    models = client(wire).models
    models.generate_content(model="m", contents=[GO])
    call = types.Part(
        function_call=types.FunctionCall(id="c1", name="pay", args={"amount": 5}), thought_signature=signature
    )
    contents = [GO, types.Content(role="model", parts=[call]), result("c1")]
    if not refused:
        assert "done" == models.generate_content(model="m", contents=contents).text
        return
    with pytest.raises(errors.ClientError) as caught:
        models.generate_content(model="m", contents=contents)
    assert caught.value.message.startswith(refused)


def test_word_in_place_of_a_signature_is_no_reasoning(making):
    """A client that writes it before a call may leave it out of the next request."""
    wire = making.Wire("gemini", making.reply(say="done"))
    call = types.FunctionCall(id="c1", name="pay", args={"amount": 5})
    part = types.Part(function_call=call, thought_signature=b"skip_thought_signature_validator")
    contents = [GO, types.Content(role="model", parts=[part]), result("c1")]
    client(wire).models.generate_content(model="m", contents=contents)

    assert ["user", "call", "result"] == [item.kind for item in wire.items]


def test_signatures_of_older_steps_may_be_left_out(making):
    """Behind the next message of the user nobody asks for them."""
    wire = making.Wire("gemini", thinking_reply(making.call("c1", amount=5)), making.reply(say="done"))
    models = client(wire).models
    models.generate_content(model="m", contents=[GO])
    call = types.Content(
        role="model", parts=[types.Part(function_call=types.FunctionCall(id="c1", name="pay", args={"amount": 5}))]
    )

    assert "done" == models.generate_content(model="m", contents=[GO, call, result("c1"), GO]).text

"""The official client for Anthropic takes every body of Messages: sync, async and through its helpers."""

from __future__ import annotations

import asyncio

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.protocols.streaming import STREAM_STYLES
from pytest_approvals.runner.stream_chunks import CHUNKINGS as CHUNKINGS

anthropic = pytest.importorskip("anthropic", reason="test_other_clients.py makes a place for it")
LIBRARY = "httpx2" if int(anthropic.__version__.split(".")[0]) >= 1 else "httpx"
hx = pytest.importorskip(LIBRARY)

GO = [{"role": "user", "content": "go"}]
TOOLS = [{"name": "pay", "input_schema": {"type": "object", "properties": {"amount": {"type": "integer"}}}}]
ASK = {"model": "m", "max_tokens": 10, "messages": GO, "tools": TOOLS}

EXPECTED = [("text", "Wait: é"), ("c1", "pay", {"amount": 5, "to": "Zoë"}), ("c2", "pay", {"amount": 6})]


def client(wire):
    return anthropic.Anthropic(
        api_key="none",
        base_url="http://model.invalid",
        max_retries=0,
        http_client=hx.Client(transport=wire.transport()),
    )


def async_client(wire):
    return anthropic.AsyncAnthropic(
        api_key="none",
        base_url="http://model.invalid",
        max_retries=0,
        http_client=hx.AsyncClient(transport=wire.transport()),
    )


def two_calls(making, style="whole"):
    calls = making.call("c1", amount=5, to="Zoë"), making.call("c2", amount=6)
    return making.reply(*calls, say="Wait: é", style=style)


def read_blocks(message):
    return [
        ("text", block.text) if block.type == "text" else (block.id, block.name, block.input)
        for block in message.content
    ]


def test_message(making):
    """A message has the text and the calls of the reply."""
    wire = making.Wire("messages", two_calls(making))
    got = client(wire).messages.create(**ASK, system="be kind")
    assert EXPECTED == read_blocks(got)
    assert "tool_use" == got.stop_reason
    assert [("other", "be kind"), ("user", "go")] == [(item.kind, item.text) for item in wire.items]


@pytest.mark.parametrize(
    "style", sorted(set(STREAM_STYLES) - {"unnamed"})
)  # the client looks at the names of events only
@pytest.mark.parametrize("chunking", CHUNKINGS)
def test_streamed_message(making, chunking, style):
    """The client's own helper puts a stream together, however its reply is cut and however the stream is written."""
    wire = making.Wire("messages", two_calls(making, chunking), style=style)
    with client(wire).messages.stream(**ASK) as stream:
        said = "".join(stream.text_stream)
        got = stream.get_final_message()
    assert EXPECTED == read_blocks(got)
    assert "Wait: é" == said
    assert "tool_use" == got.stop_reason


def test_async_message(making):
    """The asynchronous client takes a message and a stream."""
    wire = making.Wire("messages", two_calls(making), two_calls(making, "tokens"))

    async def both():
        async with async_client(wire) as asking:
            whole = await asking.messages.create(**ASK)
            async with asking.messages.stream(**ASK) as stream:
                return whole, await stream.get_final_message()

    assert [EXPECTED, EXPECTED] == [read_blocks(got) for got in asyncio.run(both())]


def test_whole_story(making):
    """A result goes back in a message of the user, and text beside it is distinguished from it."""
    wire = making.Wire("messages", two_calls(making), making.reply(say="done"))
    asking = client(wire)
    first = asking.messages.create(**ASK)
    results = [
        {"type": "tool_result", "tool_use_id": name, "content": [{"type": "text", "text": "paid"}]}
        for name in ("c1", "c2")
    ]
    said = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]}
    more = {"role": "user", "content": [*results, {"type": "text", "text": "and?"}]}
    asking.messages.create(**{**ASK, "messages": [*GO, said, more]})
    assert ["user", "say", "call", "call", "result", "result", "user"] == [item.kind for item in wire.items]
    assert [0, 1, 1, 1, 2, 2, 2] == [item.message for item in wire.items]


def test_refusal_is_a_bad_request(making):
    """A history that the provider refuses is a `BadRequestError` in the client, in the provider's words."""
    wire = making.Wire("messages", making.reply(say="never"))
    lone = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "pay", "input": {}}]}
    with pytest.raises(anthropic.BadRequestError) as caught:
        client(wire).messages.create(**{**ASK, "messages": [*GO, lone, *GO]})
    assert "invalid_request_error" == caught.value.body["error"]["type"]
    assert caught.value.body["error"]["message"].startswith("messages.1: `tool_use` ids were found without")


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, "RateLimitError"), (500, "InternalServerError"), (529, "APIStatusError"), (0, "APIConnectionError")],
)
def test_failure_is_the_clients_own_error(making, status, error):
    """A model that fails is the client's own error for that status; status 0 is a connection that broke."""
    wire = making.Wire("messages", ModelDown(status))
    with pytest.raises(getattr(anthropic, error)):
        client(wire).messages.create(**ASK)


def test_stream_that_breaks(making):
    """A stream that breaks shows what came before, and ends in an error of the connection."""
    wire = making.Wire("messages", making.reply(making.call("c1", amount=5), style="tokens", breaks_after=3))
    shown = []
    events = client(wire).messages.create(**ASK, stream=True)
    with pytest.raises((anthropic.APIConnectionError, hx.ReadError)):
        shown.extend(events)
    assert '{"amount' == "".join(event.delta.partial_json for event in shown if event.type == "content_block_delta")


UNREADABLE = (ValueError, anthropic.APIError)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize(
    ("how", "error"),
    [("timeout", anthropic.APITimeoutError), ("truncated", UNREADABLE), ("garbled", UNREADABLE)],
)
def test_failure_without_a_status(making, how, error, stream):
    """No answer in time, half an answer and none at all are errors of the client, whether it streams or not."""
    wire = making.Wire("messages", ModelDown(0, how))
    with pytest.raises(error):
        list(client(wire).messages.create(**ASK, stream=stream))


@pytest.mark.parametrize("how", ["timeout", "truncated", "garbled"])
def test_stream_that_stands_still_or_turns_to_rubbish(making, how):
    """A stream shows what came before it went wrong, and ends in an error."""
    wire = making.Wire("messages", making.reply(say="Well, well.", style="tokens", breaks_after=2, how=how))
    events = client(wire).messages.create(**ASK, stream=True)
    with pytest.raises((*UNREADABLE, hx.TimeoutException)):
        list(events)


def test_client_that_asks_again(making):
    """A client asks again when the provider wants it to, and gets the next reply."""
    wire = making.Wire("messages", ModelDown(429, retry_after=0), ModelDown(529), making.reply(say="Done."))
    client(wire).with_options(max_retries=2).messages.create(**ASK)
    assert 3 == len(wire.script.asked)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_tool_runner_plays_an_approval(making, decision, stream):
    """The client's tool runner runs a call that is approved once, and tells the model of one that is rejected."""
    asked, paid = [], []

    @anthropic.beta_tool
    def pay(amount: int) -> str:
        """Pay an amount."""
        asked.append(amount)
        if decision == "reject":
            raise ValueError("rejected")
        paid.append(amount)
        return f"paid {amount}"

    wire = making.Wire("messages", making.reply(making.call("c1", amount=5)), making.reply(say="done"))
    runner = client(wire).beta.messages.tool_runner(
        model="m", max_tokens=10, system="be kind", tools=[pay], messages=GO, stream=stream
    )
    turns = [turn.get_final_message() if stream else turn for turn in runner]

    assert [["tool_use"], ["text"]] == [[block.type for block in turn.content] for turn in turns]
    assert ([5], [5] if decision == "approve" else []) == (asked, paid)
    assert ["other", "user", "call", "result"] == [item.kind for item in wire.items]
    assert ("paid 5" if decision == "approve" else "rejected") in wire.items[-1].text

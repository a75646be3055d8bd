"""The official client for OpenAI takes every body of both of its protocols: sync, async and through its helpers."""

from __future__ import annotations

import asyncio
import importlib.util
import json

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import HostedResult
from pytest_approvals.protocols.streaming import STREAM_STYLES
from pytest_approvals.runner.stream_chunks import CHUNKINGS as CHUNKINGS

openai = pytest.importorskip("openai")
LIBRARY = "httpx2" if int(openai.__version__.split(".")[0]) >= 3 else "httpx"
hx = pytest.importorskip(LIBRARY)

TOOLS = [{"type": "function", "function": {"name": "pay", "parameters": {"type": "object", "properties": {}}}}]
FUNCTIONS = [{"type": "function", "name": "pay", "parameters": {"type": "object", "properties": {}}, "strict": False}]
MCP = [{"type": "mcp", "server_label": "web", "server_url": "https://web.invalid/mcp", "allowed_tools": ["search"]}]
GO = [{"role": "user", "content": "go"}]


def client(wire):
    return openai.OpenAI(
        api_key="none",
        base_url="http://model.invalid/v1",
        max_retries=0,
        http_client=hx.Client(transport=wire.transport()),
    )


def async_client(wire):
    return openai.AsyncOpenAI(
        api_key="none",
        base_url="http://model.invalid/v1",
        max_retries=0,
        http_client=hx.AsyncClient(transport=wire.transport()),
    )


def two_calls(making, style="whole"):
    calls = making.call("c1", amount=5, to="Zoë"), making.call("c2", amount=6)
    return making.reply(*calls, say="Wait: é", style=style)


# --- Chat Completions -------------------------------------------------------------------------------------------------


def told_by_chat(message):
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
    return message.content, calls


EXPECTED = ("Wait: é", [("c1", "pay", {"amount": 5, "to": "Zoë"}), ("c2", "pay", {"amount": 6})])


def test_completion(making):
    """A completion has the text and the calls of the reply."""
    wire = making.Wire("chat", two_calls(making))
    got = client(wire).chat.completions.create(model="m", messages=GO, tools=TOOLS)
    assert EXPECTED == told_by_chat(got.choices[0].message)
    assert "tool_calls" == got.choices[0].finish_reason
    assert [("user", "go", 0)] == [(item.kind, item.text, item.message) for item in wire.items]


JOINED = ("repeated_ids", "changing_ids")


@pytest.mark.parametrize("style", STREAM_STYLES)
@pytest.mark.parametrize("chunking", [chunking for chunking in CHUNKINGS if chunking not in JOINED])
def test_streamed_completion(making, chunking, style):
    """The client's own helper puts a stream together, however its reply is cut and however the stream is written."""
    wire = making.Wire("chat", two_calls(making, chunking), style=style)
    with client(wire).chat.completions.stream(model="m", messages=GO, tools=TOOLS) as stream:
        for _ in stream:
            pass
        got = stream.get_final_completion()
    assert EXPECTED == told_by_chat(got.choices[0].message)


@pytest.mark.parametrize("chunking", JOINED)
def test_an_id_with_each_piece_is_joined_by_the_clients_helper(making, chunking):
    """Each piece of a call has an id; the client's own helper adds them up, as it does with texts."""
    wire = making.Wire("chat", two_calls(making, chunking), two_calls(making, chunking))
    plain = client(wire).chat.completions.create(model="m", messages=GO, tools=TOOLS, stream=True)
    sent = [call for chunk in plain for choice in chunk.choices for call in choice.delta.tool_calls or ()]
    with client(wire).chat.completions.stream(model="m", messages=GO, tools=TOOLS) as stream:
        for _ in stream:
            pass
        got = stream.get_final_completion()
    joined = ["".join(call.id for call in sent if call.index == index) for index in (0, 1)]
    assert {"c1", "c2"} == {call.id[:2] for call in sent}
    assert joined == [call.id for call in got.choices[0].message.tool_calls]


def test_async_completion(making):
    """The asynchronous client takes a completion and a stream."""
    wire = making.Wire("chat", two_calls(making), two_calls(making, "tokens"))

    async def both():
        async with async_client(wire) as asking:
            whole = await asking.chat.completions.create(model="m", messages=GO)
            async with asking.chat.completions.stream(model="m", messages=GO) as stream:
                return whole, await stream.get_final_completion()

    assert [EXPECTED, EXPECTED] == [told_by_chat(got.choices[0].message) for got in asyncio.run(both())]


def test_usage_comes_where_it_is_asked_for(making):
    """The last chunk has the usage and no choices where the client includes it, as the API reference says."""
    wire = making.Wire("chat", making.reply(say="done"), making.reply(say="done"))
    options = {"include_usage": True}
    asking = client(wire)
    plain = list(asking.chat.completions.create(model="m", messages=GO, stream=True))
    asked = list(asking.chat.completions.create(model="m", messages=GO, stream=True, stream_options=options))
    assert [] == [chunk for chunk in plain if chunk.usage]
    assert [[]] == [chunk.choices for chunk in asked if chunk.usage]


# --- Responses --------------------------------------------------------------------------------------------------------


def told_by_responses(got):
    calls = [
        (item.call_id, item.name, json.loads(item.arguments)) for item in got.output if item.type == "function_call"
    ]
    return got.output_text, calls


def test_response(making):
    """A response has the text and the calls of the reply."""
    wire = making.Wire("responses", two_calls(making))
    got = client(wire).responses.create(model="m", input="go", tools=FUNCTIONS)
    assert EXPECTED == told_by_responses(got)
    assert "completed" == got.status


@pytest.mark.parametrize("style", STREAM_STYLES)
@pytest.mark.parametrize("chunking", CHUNKINGS)
def test_streamed_response(making, chunking, style):
    """The client's own helper puts a stream together, however its reply is cut and however the stream is written."""
    wire = making.Wire("responses", two_calls(making, chunking), style=style)
    with client(wire).responses.stream(model="m", input="go", tools=FUNCTIONS) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        got = stream.get_final_response()
    assert EXPECTED == told_by_responses(got)
    assert EXPECTED[0] == "".join(deltas)


def test_async_response(making):
    """The asynchronous client takes a response and a stream."""
    wire = making.Wire("responses", two_calls(making), two_calls(making, "tokens"))

    async def both():
        async with async_client(wire) as asking:
            whole = await asking.responses.create(model="m", input="go")
            async with asking.responses.stream(model="m", input="go") as stream:
                return whole, await stream.get_final_response()

    assert [EXPECTED, EXPECTED] == [told_by_responses(got) for got in asyncio.run(both())]


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
def test_hosted_call(making, streamed):
    """A hosted call is listed, asked for, approved by id, run by the provider and reported, over previous responses."""
    ran = HostedResult(call_id="mcpr_1", tool="search", server="web", arguments={"query": "cats"}, output="two cats")
    wire = making.Wire(
        "responses",
        making.reply(making.call("mcpr_1", "search", "hosted_mcp", "web", query="cats")),
        making.reply(say="Two.", hosted=(ran,)),
    )
    asking = client(wire)
    first = answered(asking, streamed, input="go", tools=MCP)
    yes = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    second = answered(asking, streamed, input=[yes], previous_response_id=first.id, tools=MCP)
    assert ["mcp_list_tools", "mcp_approval_request"] == [item.type for item in first.output]
    assert ["search"] == [tool.name for tool in first.output[0].tools]
    assert ("mcpr_1", "search", "web") == (first.output[1].id, first.output[1].name, first.output[1].server_label)
    assert ["mcp_call", "message"] == [item.type for item in second.output]
    assert ("mcpr_1", "two cats") == (second.output[0].approval_request_id, second.output[0].output)
    assert [("user", None), ("approval_request", None), ("approval_response", True)] == [
        (item.kind, item.approved) for item in wire.items
    ]


def answered(asking, streamed, **request):
    if not streamed:
        return asking.responses.create(model="m", **request)
    with asking.responses.stream(model="m", **request) as stream:
        return stream.get_final_response()


def test_failed_hosted_call(making):
    """A hosted call that fails is reported with its error, and told as a hosted result in the next input."""
    failed = HostedResult(call_id="mcpr_1", tool="search", server="web", arguments={}, output=None, error="no net")
    wire = making.Wire("responses", making.reply(say="Oh.", hosted=(failed,)), making.reply(say="bye"))
    asking = client(wire)
    first = answered(asking, True, input="go", tools=MCP)
    answered(asking, False, input="and?", tools=MCP, previous_response_id=first.id)
    told = [item for item in wire.items if item.kind == "hosted_result"]
    assert "failed" == next(item for item in first.output if item.type == "mcp_call").status
    assert [("mcpr_1", "no net")] == [(item.id, item.text) for item in told]


@pytest.mark.parametrize("item_id", ["mcp_mcpr_1", "mcpr_1"])
def test_hosted_call_is_told_without_its_request(making, item_id):
    """A client may send the call back with its own id only; it is the one that was reported under that id."""
    wire = making.Wire("responses", making.reply(say="bye"))
    told = {"type": "mcp_call", "id": item_id, "name": "search", "server_label": "web", "arguments": "{}"}
    answered(client(wire), False, input=[{"role": "user", "content": "go"}, {**told, "output": "two cats"}])

    assert [("mcpr_1", "two cats")] == [(item.id, item.text) for item in wire.items if item.kind == "hosted_result"]


# --- what is refused and what fails -----------------------------------------------------------------------------------


def test_refusal_is_a_bad_request(making):
    """A history that the provider refuses is a `BadRequestError` in the client, in the provider's words."""
    wire = making.Wire("responses", making.reply(say="never"))
    lone = [{"type": "function_call", "call_id": "c1", "name": "pay", "arguments": "{}"}]
    with pytest.raises(openai.BadRequestError) as caught:
        client(wire).responses.create(model="m", input=[*GO, *lone])
    assert "No tool output found for function call c1." == caught.value.body["message"]
    assert ("input", "invalid_request_error") == (caught.value.param, caught.value.type)


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, "RateLimitError"), (500, "InternalServerError"), (503, "InternalServerError"), (0, "APIConnectionError")],
)
def test_failure_is_the_clients_own_error(making, status, error):
    """A model that fails is the client's own error for that status; status 0 is a connection that broke."""
    wire = making.Wire("chat", ModelDown(status))
    with pytest.raises(getattr(openai, error)):
        client(wire).chat.completions.create(model="m", messages=GO)


@pytest.mark.parametrize("name", ["chat", "responses"])
def test_stream_that_breaks(making, name):
    """A stream that breaks shows what came before, and ends in an error of the connection."""
    wire = making.Wire(name, making.reply(making.call("c1", amount=5), style="tokens", breaks_after=3))
    shown = []
    events = streamed_events(client(wire), name)
    with pytest.raises((openai.APIConnectionError, hx.ReadError)):
        shown.extend(events)
    assert '{"am' + "ount" == "".join(map(pieces_of, shown))


def streamed_events(asking, name):
    if name == "chat":
        return asking.chat.completions.create(model="m", messages=GO, stream=True)
    return asking.responses.create(model="m", input="go", stream=True)


def pieces_of(event):
    if hasattr(event, "choices"):
        calls = event.choices[0].delta.tool_calls if event.choices else None
        return calls[0].function.arguments or "" if calls else ""
    return event.delta if event.type == "response.function_call_arguments.delta" else ""


def test_both_libraries_are_served(making):
    """The transport exists for `httpx`, too, which older clients are made on."""
    if importlib.util.find_spec("httpx") is None:
        pytest.skip("httpx is not here")
    import httpx

    wire = making.Wire("chat", making.reply(say="done"))
    with httpx.Client(transport=wire.transport()) as asking:
        got = asking.post("http://model.invalid/v1/chat/completions", json={"model": "m", "messages": GO})
    assert "done" == got.json()["choices"][0]["message"]["content"]


UNREADABLE = (ValueError, openai.APIError)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize(
    ("how", "error"),
    [("timeout", openai.APITimeoutError), ("truncated", UNREADABLE), ("garbled", UNREADABLE)],
)
def test_failure_without_a_status(making, how, error, stream):
    """No answer in time, half an answer and none at all are errors of the client, whether it streams or not."""
    wire = making.Wire("chat", ModelDown(0, how))
    with pytest.raises(error):
        list(client(wire).chat.completions.create(model="m", messages=GO, stream=stream))


@pytest.mark.parametrize("how", ["timeout", "truncated", "garbled"])
def test_stream_that_stands_still_or_turns_to_rubbish(making, how):
    """A stream shows what came before it went wrong, and ends in an error."""
    wire = making.Wire("chat", making.reply(say="Well, well.", style="tokens", breaks_after=2, how=how))
    events = client(wire).chat.completions.create(model="m", messages=GO, stream=True)
    with pytest.raises((*UNREADABLE, hx.TimeoutException)):
        list(events)


def test_client_that_asks_again(making):
    """A client asks again when the provider wants it to, and gets the next reply."""
    wire = making.Wire("chat", ModelDown(429, retry_after=0), ModelDown(529), making.reply(say="Done."))
    client(wire).with_options(max_retries=2).chat.completions.create(model="m", messages=GO)
    assert 3 == len(wire.script.asked)

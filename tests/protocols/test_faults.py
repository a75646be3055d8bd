"""What a client sees of a model that fails, over a transport, routes of respx or a server."""

from __future__ import annotations

import json

import pytest

from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.plugin.model_script import ScriptedModel
from pytest_approvals.scenario.build import say

httpx = pytest.importorskip("httpx")
httpx2 = pytest.importorskip("httpx2")
respx = pytest.importorskip("respx")
openai = pytest.importorskip("openai")

GO = [{"role": "user", "content": "go"}]
WAYS = ("transport", "routes", "server")


@pytest.fixture
def model():
    return ScriptedModel("own test").speaks(chunking="tokens")


@pytest.fixture
def asking(request, model):
    """An official client of the model, over each way; it never asks twice."""
    way = request.param
    if way == "transport":
        with httpx2.Client(transport=model.transport()) as http:
            yield openai.OpenAI(api_key="none", max_retries=0, http_client=http)
    elif way == "routes":
        with request.getfixturevalue("httpx2_mock") as router:
            model.mount(router)
            yield openai.OpenAI(api_key="none", max_retries=0)
    else:
        with ScriptedModelServer().running() as server:
            server.add(model.wire)
            url = server.url(model.wire.name)
            with openai.OpenAI(api_key="none", base_url=url, max_retries=0, timeout=0.5) as client:
                yield client


def over_every_way(function):
    return pytest.mark.parametrize("asking", WAYS, indirect=True)(function)


def ask(client, *, stream=False):
    """Asks, and gives the text of the answer."""
    got = client.chat.completions.create(model="m", messages=GO, stream=stream)
    if not stream:
        return got.choices[0].message.content
    return "".join(piece.choices[0].delta.content or "" for piece in got)


@over_every_way
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_status(model, asking, status):
    """A status is the client's own error for it, and says when to ask again where the script says so."""
    model.fails(status, retry_after=1.5).says("Done.")
    with pytest.raises(openai.RateLimitError if status == 429 else openai.InternalServerError) as caught:
        ask(asking)
    assert (status, "1.5") == (caught.value.status_code, caught.value.response.headers["retry-after"])
    assert "Done." == ask(asking)


@over_every_way
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("disconnect", openai.APIConnectionError),
        ("timeout", openai.APITimeoutError),
        ("truncated", (json.JSONDecodeError, openai.APIError)),
        ("garbled", (json.JSONDecodeError, openai.APIError)),
    ],
)
def test_failure_without_a_status(model, asking, how, error, stream):
    """A connection that breaks, an answer that does not come or cannot be read are errors of the client, at once."""
    model.fails(how).says("Done.")
    with pytest.raises(error):
        ask(asking, stream=stream)
    assert "Done." == ask(asking, stream=stream)
    failed = [event for event in model.wire.events if event.kind == "model.failure"]
    assert [(0, None if how == "disconnect" else how)] == [(event.status, event.how) for event in failed]


@over_every_way
@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("disconnect", (openai.APIConnectionError, httpx2.TransportError)),
        ("timeout", (openai.APITimeoutError, httpx2.TimeoutException)),
        ("truncated", (json.JSONDecodeError, openai.APIError)),
        ("garbled", (json.JSONDecodeError, openai.APIError)),
    ],
)
def test_stream_that_breaks(model, asking, how, error):
    """What came before the break has arrived; the next request is answered."""
    from dataclasses import replace

    broken = say("Well, well.", breaks_after=2)
    model.replies(replace(broken, failure=replace(broken.failure, how=how))).says("Done.")
    seen = []
    stream = asking.chat.completions.create(model="m", messages=GO, stream=True)
    with pytest.raises(error):
        seen.extend(piece.choices[0].delta.content or "" for piece in stream)
    assert "Well, we" == "".join(seen)
    assert "Done." == ask(asking)


@over_every_way
def test_slow_first_byte(model, asking):
    """The answer of a model that takes its time arrives all the same."""
    model.replies(say("Slow.", takes=0.1))
    assert "Slow." == ask(asking, stream=True)


def test_client_that_asks_again(model):
    """A client that asks again by itself gets the next reply, and the journal has both requests."""
    model.fails(429, retry_after=0).fails("disconnect").calls("refund", order=42)
    http = httpx2.Client(transport=model.transport())
    client = openai.OpenAI(api_key="none", max_retries=2, http_client=http)
    said = client.chat.completions.create(model="m", messages=GO).choices[0].message
    assert "refund" == said.tool_calls[0].function.name
    kinds = [event.kind for event in model.wire.events[1:]]
    assert ["model.request", "model.failure"] * 2 + ["model.request", "model.answer"] == kinds

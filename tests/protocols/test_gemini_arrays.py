"""Streams of Gemini for clients that do not ask for events: one array of JSON, as Google's REST interface sends it."""

from __future__ import annotations

import json

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Chunk, ModelCall, Reply
from pytest_approvals.model_server.conversation import run_without_loop
from pytest_approvals.protocols import create_codec
from pytest_approvals.protocols.endpoint import Endpoint, HttpResponse
from pytest_approvals.protocols.streaming import PLAIN, StreamStyle

PATH = "/v1beta/models/m:streamGenerateContent"
BODY = json.dumps({"contents": [{"role": "user", "parts": [{"text": "go"}]}]}).encode()
CALL = ModelCall(id="c1", tool="pay", arguments={"amount": 5})
PAYS = Reply(say="So be it.", calls=(CALL,), chunks=(Chunk(text="So "), Chunk(text="be it.")))


def post(reply: Reply, path: str = PATH, *, style: StreamStyle = PLAIN) -> HttpResponse:
    """The response to a request of a conversation that has this reply."""

    async def answer(items: object, request: object) -> Reply:
        return reply

    return run_without_loop(Endpoint(create_codec("gemini"), answer, style=style).serve("POST", path, BODY))


def parts_of(response: HttpResponse) -> list[object]:
    """The parts of a streamed response, which is an array."""
    return [part for one in json.loads(b"".join(response.pieces)) for part in one["candidates"][0]["content"]["parts"]]


@pytest.mark.parametrize("query", ["", "?alt=json", "?key=none"])
def test_a_stream_is_an_array(query: str) -> None:
    """Its elements are what the events would hold."""
    response = post(PAYS, PATH + query)
    events = b"".join(post(PAYS, f"{PATH}?alt=sse").pieces).decode().split("\n\n")

    assert "application/json" == response.content_type
    assert [json.loads(event.removeprefix("data: ")) for event in events if event] == json.loads(
        b"".join(response.pieces)
    )


@pytest.mark.parametrize("query", ["?alt=sse", "?key=none&alt=sse"])
def test_a_stream_is_events_if_that_is_asked_for(query: str) -> None:
    """The query says so."""
    response = post(PAYS, PATH + query)

    assert response.content_type.startswith("text/event-stream")
    assert b"".join(response.pieces).startswith(b"data: {")


def test_an_array_comes_in_pieces() -> None:
    """A style that cuts streams cuts it, too."""
    response = post(PAYS, style=StreamStyle(size=7))
    pieces = list(response.pieces)

    assert {*map(len, pieces[:3])} == {7}
    assert response.flush_each
    assert 3 == len(json.loads(b"".join(pieces)))


@pytest.mark.parametrize(("how", "expected"), [("truncated", '{"id": "cut_off", "object": "'), ("garbled", "<html>")])
def test_an_array_that_is_corrupt_from_some_place_on(how: str, expected: str) -> None:
    """What came before is there, and then no JSON and no event."""
    response = post(Reply(say="So be it.", chunks=(Chunk(text="So "),), breaks=True, how=how))
    got = b"".join(response.pieces).decode()

    assert got.startswith('[{"candidates": ')
    assert expected in got
    assert "data: " not in got


def test_an_array_that_breaks_off() -> None:
    """The connection ends inside of it."""
    response = post(Reply(say="So be it.", chunks=(Chunk(text="So "),), breaks=True))
    got = []
    with pytest.raises(ModelDown):
        got.extend(response.pieces)

    assert 0 == len(got) or not b"".join(got).endswith(b"]")

"""Streams of the reference agent: what it makes of chunks, and what it shows."""

from __future__ import annotations

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Finished, ModelCall


@pytest.fixture
def streamed(kit):
    """A reply with text and two calls that share an id, in awkward chunks."""
    chunk = kit.Chunk
    return kit.calls(
        ModelCall(id="c1", tool="delete", arguments={"path": "ä"}),
        ModelCall(id="c1", tool="read", arguments={"path": "b"}),
        say="On it.",
        chunks=(
            chunk(text="On "),
            chunk(call=1, id="c1", tool="read"),
            chunk(),
            chunk(call=0, id="c1"),
            chunk(call=0, tool="delete", arguments='{"pa'),
            chunk(call=1, arguments='{"path": "b"}'),
            chunk(call=0, arguments=""),
            chunk(call=0, arguments='th": "\\u00'),
            chunk(text="it."),
            chunk(call=0, arguments='e4"}'),
        ),
    )


def test_calls_are_put_together_by_position(kit, streamed):
    """Interleaved, torn and empty pieces make the calls that the model meant, in its order."""
    bench = kit.Bench(streamed)
    outcome = bench.send("go", stream=True)

    assert ("On it.", {"path": "ä"}, "c1") == (
        outcome.text,
        outcome.requests[0].arguments,
        outcome.requests[0].call_id,
    )
    assert ["read(b)"] == bench.world.ran


def test_everything_is_shown_as_it_comes(kit, streamed):
    """Text, calls, results, requests, and the end."""
    bench = kit.Bench(streamed)
    request = bench.send("go", stream=True).requests[0]

    assert [
        ("text", {"text": "On "}),
        ("text", {"text": "it."}),
        ("call", {"id": "c1", "tool": "delete"}),
        ("call", {"id": "c1-2", "tool": "read"}),
        ("result", {"id": "c1-2", "text": "read done"}),
        ("request", {"id": request.id}),
        ("end", {}),
    ] == bench.world.seen


def test_nothing_is_shown_without_a_stream(paused):
    """Showing belongs to streaming."""
    assert [] == paused().world.seen


def test_a_broken_stream_leaves_no_trace_in_the_history(kit, streamed):
    """The turn fails, nothing of the half reply runs or is remembered, and the retry works."""
    broken = kit.say("", chunks=streamed.chunks, breaks=True)
    bench = kit.Bench(broken, kit.say("better", chunks=(kit.Chunk(text="better"),)))
    with pytest.raises(ModelDown):
        bench.send("go", stream=True)

    assert Finished(output="better") == bench.decide(stream=True)
    assert [] == bench.world.ran
    assert ["user"] == [item.kind for item in bench.world.inputs[-1]]


@pytest.mark.parametrize("text", ["{broken", "[1]", '{"path": NaN}'])
def test_streamed_arguments_that_are_no_object_stay_text(kit, text):
    """They are answered to the model like other arguments that do not fit."""
    reply = kit.calls(
        ModelCall(id="c1", tool="read", arguments=text),
        chunks=(kit.Chunk(call=0, id="c1", tool="read"), kit.Chunk(call=0, arguments=text)),
    )
    bench = kit.Bench(reply, kit.say("sorry", chunks=(kit.Chunk(text="sorry"),)))
    bench.send("go", stream=True)

    assert ["Error: the arguments do not fit 'read': they are not a JSON object."] == bench.world.told()

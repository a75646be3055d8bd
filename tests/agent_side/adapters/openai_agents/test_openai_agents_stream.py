"""A reply as the events of a stream: as a provider sends them, however it is cut."""

from __future__ import annotations

import pytest
from openai.types.responses import ResponseCompletedEvent

from pytest_approvals.agent_side.adapters.openai_agents.responses import build_output_items, build_stream_events
from pytest_approvals.agent_side.contract import HostedResult, ModelCall, ModelDown, Reply
from pytest_approvals.runner.stream_chunks import CHUNKINGS, split_reply

CALLS = (
    ModelCall(id="c1", tool="pay", arguments={"amount": 5}),
    ModelCall(id="r1", tool="find", arguments={"q": "ü"}, kind="hosted_mcp", server="docs"),
    ModelCall(id="c2", tool="pay", arguments="[not an object"),
)
RAN = HostedResult(call_id="r0", tool="find", server="docs", arguments={"q": "x"}, output="found")


def streamed(
    style: str, *, say: str | None = "Paying.", hosted: tuple[HostedResult, ...] = ()
) -> list[tuple[str, object]]:
    reply = Reply(say=say, calls=CALLS, hosted=hosted, chunks=split_reply(say, CALLS, style))
    return [(event.type, event) for event in build_stream_events(reply, build_output_items(reply, "k"), "k")]


@pytest.mark.parametrize("style", CHUNKINGS)
@pytest.mark.parametrize("say", ["Paying.", None])
def test_the_pieces_make_up_the_whole(style: str, say: str | None) -> None:
    """In each style, what was added piece by piece is what is done in the end."""
    given = streamed(style, say=say)
    for kind, field in (("function_call_arguments", "arguments"), ("output_text", "text")):
        pieces: dict[int, str] = {}
        for name, event in given:
            if name == f"response.{kind}.delta":
                pieces[event.output_index] = pieces.get(event.output_index, "") + event.delta
        done = {event.output_index: getattr(event, field) for name, event in given if name == f"response.{kind}.done"}
        assert done == pieces


@pytest.mark.parametrize("style", CHUNKINGS)
def test_every_item_is_opened_once_before_it_grows_and_closed_once(style: str) -> None:
    """No piece comes before its item, and each item is added and done exactly once."""
    begun: set[int] = set()
    done: list[int] = []
    for name, event in streamed(style, hosted=(RAN,)):
        if name == "response.output_item.added":
            assert event.output_index not in begun
            begun.add(event.output_index)
        elif name == "response.output_item.done":
            done.append(event.output_index)
        elif hasattr(event, "output_index"):
            assert event.output_index in begun

    assert [0, 1, 2, 3, 4] == sorted(begun) == done


def test_the_events_are_numbered_and_framed() -> None:
    """The stream begins with the response as created and ends with all of it."""
    given = streamed("tokens")
    last = given[-1][1]

    assert list(range(len(given))) == [event.sequence_number for _, event in given]
    assert "response.created" == given[0][0]
    assert isinstance(last, ResponseCompletedEvent)
    assert ["message", "function_call", "mcp_approval_request", "function_call"] == [
        item.type for item in last.response.output
    ]


def test_a_call_that_the_provider_ran_has_its_own_events() -> None:
    """It comes first, and is said to be completed."""
    names = [name for name, event in streamed("whole", hosted=(RAN,)) if getattr(event, "output_index", None) == 0]

    assert ["response.output_item.added", "response.mcp_call.completed", "response.output_item.done"] == names


def test_a_stream_that_breaks_has_no_end() -> None:
    """After the last piece the model is gone."""
    reply = Reply(say="Paying.", chunks=split_reply("Paying.", (), "tokens")[:1], breaks=True)
    given: list[str] = []
    with pytest.raises(ModelDown):
        given.extend(event.type for event in build_stream_events(reply, build_output_items(reply, "k"), "k"))

    assert "response.output_text.delta" == given[-1]

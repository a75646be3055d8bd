"""Server-sent events, and the ways in which streams of one protocol differ from provider to provider.

A gateway that comments, a proxy with other line ends, a network that tears characters: clients must take them all.

Answers that arrive and are none: cut off in their middle, or the page of a proxy in place of the provider's JSON.

A streamed reply by its parts.

Chat completions streams the chunks of all parts as they come. Responses and Anthropic begin a part when the one before
it has ended, so there the chunks of a part stand together; each keeps its size, and empty ones stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.contract.types import Chunk, ModelCall, Reply
from pytest_approvals.errors import UnknownName
from pytest_approvals.protocols.text import arguments_text, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class SseEvent:
    """One event: its data, as JSON or verbatim, and its name where the protocol has one."""

    data: Mapping[str, Any] | str
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStyle:
    """
    How a stream is written.

    Attributes:
        newline: The end of a line: the standard allows both.
        comments: A comment stands before every event, as gateways send them to keep a connection alive; Anthropic's own
            `ping` events, too.
        named: Events have `event:` lines where the protocol has them; clients may look at the data's `type` only.
        done: Chat completions end with `[DONE]`; some compatible servers leave it out.
        usage: Chunks that hold nothing but usage come in the middle, too; the Responses API has none.
        overlapping: A part may begin before another has ended, in the order of the chunks. Chat completions does so
            anyway; Responses and Anthropic number the parts, but were not seen to overlap them.
        size: How many bytes are sent at a time; None sends an event at a time.
    """

    newline: str = "\n"
    comments: bool = False
    named: bool = True
    done: bool = True
    usage: bool = False
    overlapping: bool = False
    size: int | None = None


STREAM_STYLES = {
    "plain": StreamStyle(),
    "crlf": StreamStyle(newline="\r\n"),
    "comments": StreamStyle(comments=True),
    "unnamed": StreamStyle(named=False),
    "no_done": StreamStyle(done=False),
    "usage": StreamStyle(usage=True),
    "overlapping": StreamStyle(overlapping=True),
    "bytes": StreamStyle(size=1),
    "torn": StreamStyle(size=7, newline="\r\n", comments=True, usage=True),
}
"""The styles by their names, the one of the providers themselves first."""

PLAIN = STREAM_STYLES["plain"]


def get_stream_style(name: str) -> StreamStyle:
    """
    Gives a style by its name.

    Errors:
        UnknownName: No style has that name.
    """
    if name not in STREAM_STYLES:
        raise UnknownName("style of a stream", name, STREAM_STYLES)
    return STREAM_STYLES[name]


def encode_events(events: Iterable[SseEvent], style: StreamStyle = PLAIN) -> Iterator[bytes]:
    """Gives a stream as bytes, piece by piece; what *events* raises comes out after the pieces before it."""
    for event in events:
        text = _encode_event(event, style).encode()
        if style.size is None:
            yield text
        else:
            yield from (text[start : start + style.size] for start in range(0, len(text), style.size))


def _encode_event(event: SseEvent, style: StreamStyle) -> str:
    data = event.data if isinstance(event.data, str) else to_json(event.data)
    end = style.newline
    comment = f": still here{end}{end}" if style.comments else ""
    name = f"event: {event.name}{end}" if event.name is not None and style.named else ""
    return f"{comment}{name}data: {data}{end}{end}"


CORRUPTIONS = {
    "truncated": '{"id": "cut_off", "object": "',
    "garbled": "<html><body><h1>502 Bad Gateway</h1></body></html>",
}
"""What comes in place of JSON, by the names of `failures.BREAKS`; all other breaks leave nothing behind."""


def corrupt_body(how: str, *, stream: bool, event: str | None = None, style: StreamStyle = PLAIN) -> bytes:
    """
    Gives what arrives.

    Arguments:
        stream: It stands in a stream, as the data of an event.
        event: The name of that event, in protocols whose clients skip events without a known one.
    """
    text = CORRUPTIONS[how]
    return b"".join(encode_events([SseEvent(data=text, name=event)], style)) if stream else text.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPart:
    """
    The text of a reply, or one of its calls, with its chunks.

    Attributes:
        position: The position of the call among the reply's; None for the text.
        is_whole: Its chunks are all that it has; not so where the stream breaks inside.
    """

    position: int | None = None
    call: ModelCall | None = None
    chunks: tuple[Chunk, ...] = ()
    is_whole: bool = True


def split_parts(reply: Reply) -> list[StreamPart]:
    """Gives the parts that a stream of *reply* shows, in their order; of one that breaks, those that it gets to."""
    parts = list(_iter_parts(reply))
    return [part for part in parts if part.chunks] if reply.breaks else parts


def _iter_parts(reply: Reply) -> Iterator[StreamPart]:
    if reply.say is not None:
        chunks = tuple(chunk for chunk in reply.chunks if chunk.call is None)
        yield StreamPart(chunks=chunks, is_whole=_join(chunk.text for chunk in chunks) == reply.say)
    for position, call in enumerate(reply.calls):
        chunks = tuple(chunk for chunk in reply.chunks if chunk.call == position)
        whole = _join(chunk.arguments for chunk in chunks) == arguments_text(call)
        yield StreamPart(position=position, call=call, chunks=chunks, is_whole=whole)


def _join(pieces: Iterator[str | None]) -> str:
    return "".join(piece or "" for piece in pieces)


def interleave_parts(parts: list[StreamPart], reply: Reply) -> Iterator[tuple[StreamPart, Chunk]]:
    """Gives each chunk with its part, in the order of the chunks."""
    by_position = {part.position: part for part in parts}
    return ((by_position[chunk.call], chunk) for chunk in reply.chunks if chunk.call in by_position)

"""Server-sent events: encoding, stream styles, corruption, and parts of a reply.

Streams of one protocol differ from provider to provider: a gateway that comments, a proxy with other line ends, a
network that cuts characters in two. Clients must take them all.

Chat Completions streams the chunks of all parts as they come. Responses and Messages begin a part when the one before
it has ended, so there the chunks of a part are consecutive; each keeps its size, and empty ones stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_approvals.agent_side.contract.types import Chunk, ModelCall, Reply, Thought
from pytest_approvals.errors import UnknownName
from pytest_approvals.protocols.text import arguments_text, to_json, to_json_bytes

EVENT_STREAM = "text/event-stream; charset=utf-8"
"""Media type of server-sent events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SseEvent:
    """One event: its data, as JSON or verbatim, and its name if the protocol has one."""

    data: Mapping[str, Any] | str
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStyle:
    """How a stream is written.

    Attributes:
        newline: The end of a line: the standard allows both.
        comments: A comment precedes every event, as gateways send them to keep a connection alive; Anthropic's own
            `ping` events, too.
        named: Events have `event:` lines if the protocol has them; without, clients only have the data's `type`.
        done: Chat completions end with `[DONE]`; some compatible servers leave it out.
        usage: Chunks that hold nothing but usage come in the middle, too; the Responses API has none.
        overlapping: A part may begin before another has ended, in the order of the chunks. Chat completions does so
            anyway; Responses and Anthropic number the parts, but were not seen to overlap them.
        size: How many bytes are sent at a time; None sends one event at a time.
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
"""The styles by their names; the first is that of the providers themselves."""

PLAIN = STREAM_STYLES["plain"]


def get_stream_style(name: str) -> StreamStyle:
    """Return the style called *name*.

    Raises:
        UnknownName: No style has that name.
    """
    if name not in STREAM_STYLES:
        raise UnknownName("style of a stream", name, STREAM_STYLES)
    return STREAM_STYLES[name]


def encode_events(events: Iterable[SseEvent], style: StreamStyle = PLAIN) -> Iterator[bytes]:
    """Yield a stream as bytes; what *events* raises comes out after the bytes before it."""
    for event in events:
        # The data is JSON, where the escape is that of half of a surrogate pair.
        yield from _cut(_encode_event(event, style).encode(errors="backslashreplace"), style)


def encode_array(events: Iterable[SseEvent], style: StreamStyle = PLAIN) -> Iterator[bytes]:
    """Yield the data of events as one array of JSON; what *events* raises comes out after the bytes before it."""
    before = b"["
    for event in events:
        yield from _cut(before + to_json_bytes(event.data), style)
        before = b",\r\n"
    yield b"]"


def _cut(text: bytes, style: StreamStyle) -> Iterator[bytes]:
    if style.size is None:
        yield text
        return
    # Cut by bytes, so that a character may be torn in two.
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
"""Text in place of JSON, by the names of `BREAKS`; all other breaks leave nothing behind."""


def corrupt_body(how: str, *, stream: bool, event: str | None = None, style: StreamStyle = PLAIN) -> bytes:
    """Return a corrupted body.

    Args:
        how: A name of `CORRUPTIONS`.
        stream: The text is the data of an event in a stream.
        event: The name of that event, for protocols whose clients skip events without a known one.
        style: How the stream is written.
    """
    text = CORRUPTIONS[how]
    return b"".join(encode_events([SseEvent(data=text, name=event)], style)) if stream else text.encode()


PartKey = tuple[Literal["thought", "text", "call"], int]
"""Kind of a part, and its position among the parts of that kind."""


def list_part_keys(reply: Reply) -> list[PartKey]:
    """Return the keys of all parts of a reply, in their order."""
    thoughts = list(enumerate(reply.thoughts))
    keys: list[PartKey] = [("thought", number) for number, thought in thoughts if thought.before is None]
    if reply.say is not None:
        keys.append(("text", 0))
    for position in range(len(reply.calls)):
        keys += [("thought", number) for number, thought in thoughts if thought.before == position]
        keys.append(("call", position))
    return keys


def _key_of(chunk: Chunk) -> PartKey:
    if chunk.thought is not None:
        return "thought", chunk.thought
    return ("text", 0) if chunk.call is None else ("call", chunk.call)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPart:
    """The text of a reply, one of its calls, or a piece of its reasoning, with its chunks.

    Attributes:
        key: What distinguishes it from the other parts of the reply.
        is_whole: Its chunks are all that it has; not so if the stream breaks inside.
    """

    key: PartKey
    call: ModelCall | None = None
    thought: Thought | None = None
    chunks: tuple[Chunk, ...] = ()
    is_whole: bool = True


PartStep = Literal["begin", "end"] | Chunk
"""What a stream shows of a part: its beginning, one of its chunks, or its end."""


def stream_parts(reply: Reply, *, overlapping: bool) -> Iterator[tuple[int, StreamPart, PartStep]]:
    """Yield the steps of each part of a reply, with the index of the part.

    Args:
        reply: The reply; of one that breaks, the parts and chunks up to there.
        overlapping: Keep the order of the chunks, so that parts begin before others have ended.
    """
    parts = _split_parts(reply)
    if overlapping:
        yield from _stream_overlapping(parts, reply)
        return
    for index, part in enumerate(parts):
        yield index, part, "begin"
        for chunk in part.chunks:
            yield index, part, chunk
        # The stream breaks inside this part: clients see neither its end nor another part.
        if not part.is_whole:
            return
        yield index, part, "end"


def _stream_overlapping(parts: list[StreamPart], reply: Reply) -> Iterator[tuple[int, StreamPart, PartStep]]:
    indexes = {part.key: index for index, part in enumerate(parts)}
    begun = 0
    for chunk in reply.chunks:
        # An empty chunk of text belongs to no part if the reply has no text.
        if _key_of(chunk) not in indexes:
            continue
        index = indexes[_key_of(chunk)]
        # Clients append parts as they begin, so those before one that begins must have begun, too.
        while begun <= index:
            yield begun, parts[begun], "begin"
            begun += 1
        yield index, parts[index], chunk
    for index, part in enumerate(parts):
        if index >= begun:
            yield index, part, "begin"
        if part.is_whole:
            yield index, part, "end"


def _split_parts(reply: Reply) -> list[StreamPart]:
    """Return the parts that a stream of *reply* shows, in their order."""
    parts = list(_iter_parts(reply))
    # A stream that breaks shows nothing of the parts that it does not reach.
    return [part for part in parts if part.chunks] if reply.breaks else parts


def _iter_parts(reply: Reply) -> Iterator[StreamPart]:
    for key in list_part_keys(reply):
        chunks = tuple(chunk for chunk in reply.chunks if _key_of(chunk) == key)
        kind, position = key
        if kind == "call":
            call = reply.calls[position]
            is_whole = _join(chunk.arguments for chunk in chunks) == arguments_text(call)
            yield StreamPart(key=key, call=call, chunks=chunks, is_whole=is_whole)
            continue
        thought = reply.thoughts[position] if kind == "thought" else None
        text = reply.say if thought is None else thought.text
        is_whole = _join(chunk.text for chunk in chunks) == (text or "")
        yield StreamPart(key=key, thought=thought, chunks=chunks, is_whole=is_whole)


def _join(texts: Iterator[str | None]) -> str:
    return "".join(text or "" for text in texts)

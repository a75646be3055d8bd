"""Stream chunks: ways to split a reply.

Providers split replies in many ways, and agents lose requests on the odd ones; each style is one way in which a real
provider was seen to stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, zip_longest
from typing import TypeAlias

from pytest_approvals.agent_side.contract.types import Chunk, ModelCall, Thought
from pytest_approvals.errors import UnknownName
from pytest_approvals.journal.formatting import format_streamed_id

_Splitter: TypeAlias = Callable[[str | None, tuple[ModelCall, ...], Sequence[str]], Iterator[Chunk]]
"""What splits a text and calls into chunks; the calls have labels."""


def split_reply(
    say: str | None,
    calls: tuple[ModelCall, ...],
    style: str,
    thoughts: Sequence[Thought] = (),
    labels: Sequence[str] = (),
) -> tuple[Chunk, ...]:
    """Split a reply into chunks.

    A piece of reasoning precedes all chunks of what it leads to, as providers stream it.

    Args:
        say: The text of the reply.
        calls: The calls of the reply.
        style: `whole` (one chunk a part), `tokens` (a few characters each), `ids_first` (the ids of all calls before
            any arguments), `split` (every character alone, so that numbers, escapes and words are torn), `interleaved`
            (the calls' arguments alternating), `empty` (empty chunks between all others), and four of servers that
            are like OpenAI's: `repeated_ids` (each chunk of a call with its id: BerriAI/litellm#20480,
            JetBrains/koog#2052), `late_ids` (the name first, the id with the first arguments:
            pipecat-ai/pipecat#4987), `blank_ids` (an empty id in each later chunk: anomalyco/opencode#40969),
            `changing_ids` (another id in each later chunk: poolsideai/pool#9, cubist38/mlx-openai-server#216).
        thoughts: The reasoning of the reply.
        labels: The label of each call; left out, its id. `changing_ids` makes ids of it that no other call of the run
            has, as such servers do, also if the model gives one id twice.
    """
    try:
        pieces = _SPLITTERS[style]
    except KeyError:
        raise UnknownName("chunking", style, _SPLITTERS) from None
    chunks = tuple(pieces(say, calls, labels or [call.id or "" for call in calls]))
    return tuple(_insert_thoughts(chunks, thoughts, style)) if thoughts else chunks


def _insert_thoughts(chunks: Sequence[Chunk], thoughts: Sequence[Thought], style: str) -> Iterator[Chunk]:
    waiting = dict(enumerate(thoughts))
    for chunk in chunks:
        for number, thought in list(waiting.items()):
            if thought.before is None or (chunk.call is not None and chunk.call >= thought.before):
                yield from _thought_chunks(number, thought, style)
                del waiting[number]
        yield chunk
    for number, thought in waiting.items():
        yield from _thought_chunks(number, thought, style)


def _thought_chunks(number: int, thought: Thought, style: str) -> Iterator[Chunk]:
    size = {"whole": len(thought.text or ""), "split": 1}.get(style, 4)
    # What shows no text has one chunk all the same, so that a stream can break before it or after it.
    for piece in _split_text(thought.text, size) if thought.text else [""]:
        yield Chunk(thought=number, text=piece)
        if style == "empty":
            yield Chunk(thought=number, text="")


def encode_arguments(call: ModelCall) -> str:
    """Return the arguments as the model writes them: JSON text, or the raw text of broken arguments."""
    return call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments), ensure_ascii=False)


def _text_chunks(say: str | None, size: int) -> Iterator[Chunk]:
    yield from map(_text_chunk, _split_text(say or "", size))


def _call_opening(index: int, call: ModelCall) -> Chunk:
    return Chunk(call=index, id=call.id, tool=call.tool)


def _argument_chunks(index: int, call: ModelCall, size: int) -> Iterator[Chunk]:
    return (_argument_chunk(index, piece) for piece in _split_text(encode_arguments(call), size))


# A reply has a chunk for each few characters of it, most of which were there before.
@lru_cache(maxsize=4096)
def _text_chunk(piece: str) -> Chunk:
    return Chunk(text=piece)


@lru_cache(maxsize=4096)
def _argument_chunk(index: int, piece: str) -> Chunk:
    return Chunk(call=index, arguments=piece)


def _split_text(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _sequential_splitter(size: int) -> _Splitter:
    def pieces(say: str | None, calls: tuple[ModelCall, ...], _labels: Sequence[str]) -> Iterator[Chunk]:
        yield from _text_chunks(say, size)
        for index, call in enumerate(calls):
            yield _call_opening(index, call)
            yield from _argument_chunks(index, call, size)

    return pieces


def _split_whole(say: str | None, calls: tuple[ModelCall, ...], _labels: Sequence[str]) -> Iterator[Chunk]:
    if say is not None:
        yield Chunk(text=say)
    for index, call in enumerate(calls):
        yield Chunk(call=index, id=call.id, tool=call.tool, arguments=encode_arguments(call))


def _split_ids_first(say: str | None, calls: tuple[ModelCall, ...], _labels: Sequence[str]) -> Iterator[Chunk]:
    yield from _text_chunks(say, 4)
    yield from (_call_opening(index, call) for index, call in enumerate(calls))
    yield from chain.from_iterable(_argument_chunks(index, call, 4) for index, call in enumerate(calls))


def _split_interleaved(say: str | None, calls: tuple[ModelCall, ...], _labels: Sequence[str]) -> Iterator[Chunk]:
    yield from _text_chunks(say, 4)
    streams = [
        chain([_call_opening(index, call)], _argument_chunks(index, call, 3)) for index, call in enumerate(calls)
    ]
    for row in zip_longest(*streams):
        yield from (chunk for chunk in row if chunk is not None)


def _split_with_empty(say: str | None, calls: tuple[ModelCall, ...], _labels: Sequence[str]) -> Iterator[Chunk]:
    yield Chunk(text="")
    yield from _text_chunks(say, 4)
    for index, call in enumerate(calls):
        yield _call_opening(index, call)
        for piece in _argument_chunks(index, call, 4):
            yield Chunk(call=index, arguments="")
            yield piece
    yield Chunk(text="")


def _id_splitter(later_id: Callable[[str, str, int], str | None], *, opens_with_id: bool = True) -> _Splitter:
    """Return a style in which *later_id* gives the id of a chunk, from its call's id and label and its number from 1.

    A hosted call keeps its id: the servers that stream ids in these ways have none. A call without an id gets none, and
    one without arguments has its id in its only chunk.
    """

    def pieces(say: str | None, calls: tuple[ModelCall, ...], labels: Sequence[str]) -> Iterator[Chunk]:
        yield from _text_chunks(say, 4)
        for index, (call, label) in enumerate(zip(calls, labels, strict=True)):
            opening, arguments = _call_opening(index, call), tuple(_argument_chunks(index, call, 4))
            if call.id is None or call.kind == "hosted_mcp":
                yield from (opening, *arguments)
                continue
            yield opening if opens_with_id or not arguments else replace(opening, id=None)
            for number, chunk in enumerate(arguments, 1):
                yield replace(chunk, id=later_id(call.id, label, number))

    return pieces


def _repeat_id(call_id: str, _label: str, _number: int) -> str:
    return call_id


def _give_id_once(call_id: str, _label: str, number: int) -> str | None:
    return call_id if number == 1 else None


def _blank_id(_call_id: str, _label: str, _number: int) -> str:
    return ""


def _change_id(_call_id: str, label: str, number: int) -> str:
    return format_streamed_id(label, number)


_SPLITTERS: dict[str, _Splitter] = {
    "whole": _split_whole,
    "tokens": _sequential_splitter(4),
    "ids_first": _split_ids_first,
    "split": _sequential_splitter(1),
    "interleaved": _split_interleaved,
    "empty": _split_with_empty,
    "repeated_ids": _id_splitter(_repeat_id),
    "late_ids": _id_splitter(_give_id_once, opens_with_id=False),
    "blank_ids": _id_splitter(_blank_id),
    "changing_ids": _id_splitter(_change_id),
}

CHUNKINGS = tuple(_SPLITTERS)
"""Names of all styles, the plainest one first."""

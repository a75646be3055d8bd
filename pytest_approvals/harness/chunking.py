"""
Cutting a reply into the pieces of a stream.

Providers cut replies in many ways, and agents lose requests on the odd ones; each style here is one way that a real
provider was seen to stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain, zip_longest

from pytest_approvals.agent_side.neutral import Chunk, ModelCall
from pytest_approvals.errors import UnknownName


def cut(say: str | None, calls: tuple[ModelCall, ...], style: str) -> tuple[Chunk, ...]:
    """
    Cuts a reply into chunks.

    Arguments:
        style: `whole` (one chunk a part), `tokens` (a few characters each), `ids_first` (the ids of all calls before
            any arguments), `split` (every character alone, so that numbers, escapes and words are torn), `interleaved`
            (the calls' arguments in turns), `empty` (empty chunks between all others).
    """
    try:
        pieces = _STYLES[style]
    except KeyError:
        raise UnknownName("chunking", style, _STYLES) from None
    return tuple(pieces(say, calls))


def arguments_text(call: ModelCall) -> str:
    """Gives the arguments as the model writes them: JSON text, or the raw text of broken arguments."""
    return call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments), ensure_ascii=False)


def _text(say: str | None, size: int) -> Iterator[Chunk]:
    for piece in _pieces(say or "", size):
        yield Chunk(text=piece)


def _opening(index: int, call: ModelCall) -> Chunk:
    return Chunk(call=index, id=call.id, tool=call.tool)


def _arguments(index: int, call: ModelCall, size: int) -> Iterator[Chunk]:
    for piece in _pieces(arguments_text(call), size):
        yield Chunk(call=index, arguments=piece)


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _one_after_the_other(size: int) -> Callable[[str | None, tuple[ModelCall, ...]], Iterator[Chunk]]:
    def pieces(say: str | None, calls: tuple[ModelCall, ...]) -> Iterator[Chunk]:
        yield from _text(say, size)
        for index, call in enumerate(calls):
            yield _opening(index, call)
            yield from _arguments(index, call, size)

    return pieces


def _whole(say: str | None, calls: tuple[ModelCall, ...]) -> Iterator[Chunk]:
    if say is not None:
        yield Chunk(text=say)
    for index, call in enumerate(calls):
        yield Chunk(call=index, id=call.id, tool=call.tool, arguments=arguments_text(call))


def _ids_first(say: str | None, calls: tuple[ModelCall, ...]) -> Iterator[Chunk]:
    yield from _text(say, 4)
    yield from (_opening(index, call) for index, call in enumerate(calls))
    yield from chain.from_iterable(_arguments(index, call, 4) for index, call in enumerate(calls))


def _interleaved(say: str | None, calls: tuple[ModelCall, ...]) -> Iterator[Chunk]:
    yield from _text(say, 4)
    streams = [chain([_opening(index, call)], _arguments(index, call, 3)) for index, call in enumerate(calls)]
    for row in zip_longest(*streams):
        yield from (chunk for chunk in row if chunk is not None)


def _empty(say: str | None, calls: tuple[ModelCall, ...]) -> Iterator[Chunk]:
    yield Chunk(text="")
    yield from _text(say, 4)
    for index, call in enumerate(calls):
        yield _opening(index, call)
        for piece in _arguments(index, call, 4):
            yield Chunk(call=index, arguments="")
            yield piece
    yield Chunk(text="")


_STYLES: dict[str, Callable[[str | None, tuple[ModelCall, ...]], Iterator[Chunk]]] = {
    "whole": _whole,
    "tokens": _one_after_the_other(4),
    "ids_first": _ids_first,
    "split": _one_after_the_other(1),
    "interleaved": _interleaved,
    "empty": _empty,
}

STYLES = tuple(_STYLES)
"""The names of all styles, the plainest one first."""

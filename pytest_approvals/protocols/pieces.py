"""
A streamed reply by its parts.

Chat completions streams the chunks of all parts as they come. Responses and Anthropic begin a part when the one before
it has ended, so there the chunks of a part stand together; each keeps its size, and empty ones stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_approvals.agent_side.neutral import Chunk, ModelCall, Reply

from .text import arguments_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
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


def parts_of(reply: Reply) -> list[Part]:
    """Gives the parts that a stream of *reply* shows, in their order; of one that breaks, those that it gets to."""
    parts = list(_all_parts(reply))
    return [part for part in parts if part.chunks] if reply.breaks else parts


def _all_parts(reply: Reply) -> Iterator[Part]:
    if reply.say is not None:
        chunks = tuple(chunk for chunk in reply.chunks if chunk.call is None)
        yield Part(chunks=chunks, is_whole=_joined(chunk.text for chunk in chunks) == reply.say)
    for position, call in enumerate(reply.calls):
        chunks = tuple(chunk for chunk in reply.chunks if chunk.call == position)
        whole = _joined(chunk.arguments for chunk in chunks) == arguments_text(call)
        yield Part(position=position, call=call, chunks=chunks, is_whole=whole)


def _joined(pieces: Iterator[str | None]) -> str:
    return "".join(piece or "" for piece in pieces)


def overlapping(parts: list[Part], reply: Reply) -> Iterator[tuple[Part, Chunk]]:
    """Gives each chunk with its part, in the order of the chunks."""
    by_position = {part.position: part for part in parts}
    return ((by_position[chunk.call], chunk) for chunk in reply.chunks if chunk.call in by_position)

"""
Server-sent events, and the ways in which streams of one protocol differ from provider to provider.

A gateway that comments, a proxy with other line ends, a network that tears characters: clients must take them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_approvals.errors import UnknownName

from .text import json_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event: its data, as JSON or verbatim, and its name where the protocol has one."""

    data: Mapping[str, Any] | str
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
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


STYLES = {
    "plain": Style(),
    "crlf": Style(newline="\r\n"),
    "comments": Style(comments=True),
    "unnamed": Style(named=False),
    "no_done": Style(done=False),
    "usage": Style(usage=True),
    "overlapping": Style(overlapping=True),
    "bytes": Style(size=1),
    "torn": Style(size=7, newline="\r\n", comments=True, usage=True),
}
"""The styles by their names, the one of the providers themselves first."""

PLAIN = STYLES["plain"]


def style_named(name: str) -> Style:
    """
    Gives a style by its name.

    Errors:
        UnknownName: No style has that name.
    """
    if name not in STYLES:
        raise UnknownName("style of a stream", name, STYLES)
    return STYLES[name]


def written(events: Iterable[Event], style: Style = PLAIN) -> Iterator[bytes]:
    """Gives a stream as bytes, piece by piece; what *events* raises comes out after the pieces before it."""
    for event in events:
        text = _text(event, style).encode()
        if style.size is None:
            yield text
        else:
            yield from (text[start : start + style.size] for start in range(0, len(text), style.size))


def _text(event: Event, style: Style) -> str:
    data = event.data if isinstance(event.data, str) else json_text(event.data)
    end = style.newline
    comment = f": still here{end}{end}" if style.comments else ""
    name = f"event: {event.name}{end}" if event.name is not None and style.named else ""
    return f"{comment}{name}data: {data}{end}{end}"

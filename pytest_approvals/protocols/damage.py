"""Answers that arrive and are none: cut off in their middle, or the page of a proxy in place of the provider's JSON."""

from __future__ import annotations

from .sse import PLAIN, Event, Style, written

DAMAGES = {
    "truncated": '{"id": "cut_off", "object": "',
    "garbled": "<html><body><h1>502 Bad Gateway</h1></body></html>",
}
"""What comes in place of JSON, by the names of `failures.BREAKS`; all other breaks leave nothing behind."""


def damaged(how: str, *, stream: bool, event: str | None = None, style: Style = PLAIN) -> bytes:
    """
    Gives what arrives.

    Arguments:
        stream: It stands in a stream, as the data of an event.
        event: The name of that event, in protocols whose clients skip events without a known one.
    """
    text = DAMAGES[how]
    return b"".join(written([Event(data=text, name=event)], style)) if stream else text.encode()

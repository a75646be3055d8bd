"""Untrusted text, made printable.

Text of scenarios, journals, conversations, agent processes and file names reaches terminals, logs and reports. There it
must not act: terminals obey control characters, marks of the writing direction show a text as another one, and CI
systems obey lines that look like their commands: `::error ...`, `##[error]...`, `##vso[...]`, `##teamcity[...]`.

All functions leave text alone that is harmless and short, and what they return is left alone if it is passed again.
"""

from __future__ import annotations

import re

VALUE_WIDTH = 200
"""Maximal length of a value that a message quotes."""

LINE_WIDTH = 1_000
"""Maximal length of a printed line."""

MESSAGE_LENGTH = 50_000
"""Maximal length of a printed message."""

# A runner of GitHub ignores blanks before `::`, and finds `##[` anywhere in a line. The end counts as a letter, because
# the next piece of the same line may begin with one.
_COMMAND_AT_START = re.compile(r"^( *:):(?![^A-Za-z])", re.MULTILINE)
_COMMAND_ANYWHERE = re.compile(r"(##\w*)\[")


def escape_value(text: str) -> str:
    r"""Return a text with escapes for all that is not printable, line feeds included.

    >>> print(escape_value("a\x1b[31mb\u202ec\n::error::d"))
    a\x1b[31mb\u202ec\n::error::d
    """
    return _defuse(_escape_characters(text))


def escape_lines(text: str) -> str:
    r"""Return a text of several lines with escapes for all that is not printable, line feeds excluded.

    A tab becomes four blanks.

    >>> print(escape_lines("a\x07\r\n\tb\n::error::c\n##[group]d"))
    a\x07
        b
    :\u003aerror::c
    ##\u005bgroup]d
    """
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    return _defuse("\n".join(map(_escape_characters, lines)))


def shorten(text: str, length: int = VALUE_WIDTH) -> str:
    """Return a text with its middle left out if it is longer than *length*.

    >>> shorten("to be, or not to be, that is the question", 15)
    'to be, or  [... 26 characters left out ...] stion'
    """
    if len(text) <= length:
        return text
    end = length // 3
    start = length - end
    return f"{text[:start]} [... {len(text) - length:,} characters left out ...] {text[len(text) - end :]}"


def format_message(text: str) -> str:
    """Return a message of several lines as it may be printed: without long lines and without control characters."""
    if len(text) > LINE_WIDTH:
        text = shorten("\n".join(shorten(line, LINE_WIDTH) for line in text.split("\n")), MESSAGE_LENGTH)
    return escape_lines(text)


def quote(text: str) -> str:
    """Return a text in quotes, on one line and of a length that fits into a message."""
    return _defuse(repr(shorten(text)))


def _escape_characters(text: str) -> str:
    # Nearly all lines are printable, and one question to the whole line is fast.
    return (
        text
        if text.isprintable()
        else "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    )


def _defuse(text: str) -> str:
    # These escapes mean the same in JSON and in double quotes of YAML, so that printed data stays what it is.
    if "##" in text:
        text = _COMMAND_ANYWHERE.sub(r"\1\\u005b", text)
    return _COMMAND_AT_START.sub(r"\1\\u003a", text) if "::" in text else text

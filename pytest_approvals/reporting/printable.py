"""Escapes for untrusted text that is printed to a terminal."""

from __future__ import annotations


def escape_control_characters(text: str) -> str:
    r"""Return a text with escapes in place of control characters and marks of the writing direction.

    >>> print(escape_control_characters("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    return text if text.isprintable() else "".join(map(_escape_character, text))


def _escape_character(letter: str) -> str:
    return letter if letter.isprintable() else ascii(letter)[1:-1]

"""Untrusted text, shown so that a terminal does nothing on its behalf."""

from __future__ import annotations


def escape_control_characters(text: str) -> str:
    r"""
    Gives a text with escapes in place of what is not printable: control characters, turns of the direction of writing.

    >>> print(harmless("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    return text if text.isprintable() else "".join(map(_escape_character, text))


def _escape_character(letter: str) -> str:
    return letter if letter.isprintable() else ascii(letter)[1:-1]

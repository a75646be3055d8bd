"""How an error is written into a journal."""

from __future__ import annotations

LONGEST = 2000
"""Messages of errors are cut to this many characters."""


def described(error: BaseException) -> list[str]:
    """Gives an error's type and message; one that crossed a process boundary keeps the type that it had there."""
    name = getattr(error, "original_type", None) or type(error).__name__
    return [name, str(error)[:LONGEST]]

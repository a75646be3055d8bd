"""Output of the command line: no terminal and no CI system acts on what is printed.

While a command runs, `sys.stdout` and `sys.stderr` are `PrintableStream`s, so no `print` can forget to escape. What a
CI system is to obey goes through `print_command`; the colours of pytest are let through by a token that no text knows.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import TextIOBase
from typing import TextIO, cast

from pytest_approvals.errors.printable import escape_lines

_SEAM = 64
"""How much of a line is kept, to recognize a command that several writes complete."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class PrintableStream(TextIOBase):
    """Text stream that passes on what is printable, and escapes what is not.

    Args:
        target: The stream that gets the text.

    Attributes:
        colour_token: What has to follow the escape character of a colour that is let through.
        drops_colours: Whether all other colours are left out instead of escaped.
    """

    def __init__(self, target: TextIO) -> None:
        self.target = target
        self.colour_token = os.urandom(8).hex()
        self.drops_colours = False
        self._line = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the target."""
        return self.target.encoding or "utf-8"

    def write(self, text: str, /) -> int:
        """Write a text, escaped."""
        kept = _COLOUR.sub("", text) if self.drops_colours else text
        # pytest rewrites a line of a terminal while it collects.
        rewrites = kept.startswith("\r") and self.isatty()
        before = self._line
        # A command may be complete only together with what the line has already. That was passed on as it was, and it
        # stays so, because only the last character of a command is escaped.
        escaped = escape_lines(before + kept[rewrites:])[len(before) :]
        self._line = _end_of_line(before + escaped)
        _write_encodable(self.target, "\r" * rewrites + escaped.replace(f"\\x1b{self.colour_token}", "\x1b"))
        return len(text)

    def mark_colours(self, text: str) -> str:
        """Add the token to the colours of a text, so that they are let through."""
        return text.replace("\x1b", f"\x1b{self.colour_token}")

    def flush(self) -> None:
        """Flush the target."""
        if not self.target.closed:
            self.target.flush()

    def fileno(self) -> int:
        """Return the descriptor of the target."""
        return self.target.fileno()

    def isatty(self) -> bool:
        """Return whether the target is a terminal."""
        return self.target.isatty()

    def writable(self) -> bool:
        """Return True."""
        return True


def _end_of_line(text: str) -> str:
    line = text[text.rfind("\n") + 1 :].lstrip(" ")
    # With any other first character, the rest of a long line is not taken for a start.
    return line if len(line) <= _SEAM else f"-{line[-_SEAM:]}"


def _write_encodable(stream: TextIO, text: str) -> None:
    """Write a text, with escapes for characters that the encoding of *stream* lacks."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


@contextmanager
def printable_output() -> Generator[None]:
    """Escape what is printed on standard output and standard error."""
    out, errors = PrintableStream(sys.stdout), PrintableStream(sys.stderr)
    with redirect_stdout(cast("TextIO", out)), redirect_stderr(cast("TextIO", errors)):
        yield


def true_stream(stream: TextIO) -> TextIO:
    """Return the stream that gets what is printed on *stream*."""
    return stream.target if isinstance(stream, PrintableStream) else stream


def print_command(line: str) -> None:
    """Print a line that a CI system is to obey; what is untrusted in it has been escaped."""
    _write_encodable(true_stream(sys.stdout), f"{line}\n")

"""Argument parser of all commands, whose errors suggest the nearest valid option."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NoReturn

from pytest_approvals.errors import UnknownName, UsageError


class CommandParser(argparse.ArgumentParser):
    """Parser of the words of one command.

    Attributes:
        passes_on: Whether the command hands on the words that it does not know; they are then in `args.others`.
        alone: Options that may have no value: the values that they know, and the value that is then used.
    """

    def __init__(self, command: str, purpose: str) -> None:
        super().__init__(
            prog=f"pytest-approvals {command}",
            description=f"{purpose[0].upper()}{purpose[1:]}.",
            # An abbreviation could take an option that is meant for pytest.
            allow_abbrev=False,
        )
        self.passes_on = False
        # The colours of Python 3.14 would be escaped; see `PrintableStream`.
        self.color = False
        self.alone: dict[str, tuple[tuple[str, ...], str]] = {}

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse *words*.

        Raises:
            UsageError: A word is invalid; the message suggests the nearest valid one.
        """
        args, others = self.parse_known_args([*self._completed(words)])
        if others and not self.passes_on:
            raise self.unknown(others[0])
        args.others = others
        return args

    def _completed(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the words, with a value for each option that has none, so that it does not take the next word."""
        for word, following in zip_longest(words, words[1:]):
            values, alone = self.alone.get(word, ((), ""))
            yield f"{word}={alone}" if word in self.alone and following not in values else word

    def unknown(self, word: str) -> UsageError:
        """Return the error for an invalid word."""
        if word.startswith("-"):
            return UnknownName("option", word.partition("=")[0], self.options())
        return UsageError(f"{self.prog}: unexpected argument {word!r}")

    def options(self) -> list[str]:
        """Return the long options of the command."""
        return [text for action in self._actions for text in action.option_strings if text.startswith("--")]

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print, so that all errors read alike."""
        raise UsageError(f"{self.prog}: {message}")

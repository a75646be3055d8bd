"""The argument parser of all commands: an unknown option is answered with the nearest valid one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NoReturn

from pytest_approvals.errors import UnknownName, UsageError


class CommandParser(argparse.ArgumentParser):
    """
    Parses the words of one command.

    Attributes:
        passes_on: Whether words that the command does not know are for somebody else; they are then in `args.others`.
        alone: The options that may stand without a value: the values that they know, and the one that is then meant.
    """

    def __init__(self, command: str, purpose: str) -> None:
        super().__init__(
            prog=f"pytest-approvals {command}",
            description=f"{purpose[0].upper()}{purpose[1:]}.",
            allow_abbrev=False,
        )
        self.passes_on = False
        self.alone: dict[str, tuple[tuple[str, ...], str]] = {}

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """
        Parses *words*.

        Errors:
            UsageError: A word cannot be used; the nearest valid one is named.
        """
        args, others = self.parse_known_args([*self._completed(words)])
        if others and not self.passes_on:
            raise self.unknown(others[0])
        args.others = others
        return args

    def _completed(self, words: Sequence[str]) -> Iterator[str]:
        """Gives an option that may stand alone its value, so that it does not take the next word for it."""
        for word, following in zip_longest(words, words[1:]):
            values, alone = self.alone.get(word, ((), ""))
            yield f"{word}={alone}" if word in self.alone and following not in values else word

    def unknown(self, word: str) -> UsageError:
        """Gives the error about a word that cannot be used."""
        if word.startswith("-"):
            return UnknownName("option", word.partition("=")[0], self.options())
        return UsageError(f"{self.prog} does not know what to do with {word!r}")

    def options(self) -> list[str]:
        """Lists the long options of the command."""
        return [text for action in self._actions for text in action.option_strings if text.startswith("--")]

    def error(self, message: str) -> NoReturn:
        """Raises what argparse would print, so that all errors read alike."""
        raise UsageError(f"{self.prog}: {message}")

"""Stored conversations looked at one by one: what is told about each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_approvals.errors import HistoryError
from pytest_approvals.histories.files import Skipped, Stored, stored_conversations
from pytest_approvals.histories.parsing import TOO_DEEP

from .judging import lint
from .output import Told, told_finding, told_mistake, told_skip


@dataclass(slots=True)
class Looking:
    """
    Looks at conversations.

    Arguments:
        words: Files, folders, and `-` for standard input.
        form: The format; None to recognise it.
        gated: Names of tools, or patterns, whose calls need approval.

    Attributes:
        conversations, mistakes: How many there were so far.
    """

    words: Iterable[str]
    form: str | None = None
    gated: Sequence[str] = ()
    conversations: int = 0
    mistakes: int = 0

    def __iter__(self) -> Iterator[Told]:
        """
        Gives all that is to be told.

        Errors:
            UsageError: A file does not exist, or a folder holds none to look at.
        """
        for stored in stored_conversations(self.words, form=self.form):
            if isinstance(stored, Stored):
                self.conversations += 1
                told = self._about(stored)
            else:
                told = [told_skip(stored) if isinstance(stored, Skipped) else told_mistake(stored)]
            for each in told:
                self.mistakes += each.is_mistake
                yield each

    def _about(self, stored: Stored) -> list[Told]:
        try:
            return [told_finding(finding, stored) for finding in lint(stored.conversation, self.gated)]
        except RecursionError:
            return [told_mistake(HistoryError(TOO_DEEP, file=stored.file, line=stored.line))]

"""Watch of a folder: what is found in its files, and in those that arrive or change, each finding once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pytest_approvals.conversations.histories.files import list_stored
from pytest_approvals.conversations.lint.linter import Linter, LintMessage
from pytest_approvals.conversations.made_up_values import MadeUpValues
from pytest_approvals.errors import UsageError

State = tuple[tuple[str, int, int], ...]
"""The names, times and sizes of files."""

_LOG_SUFFIX = "-wal"
"""How the log of a SQLite database is called, which has what the database does not have yet."""


@dataclass(slots=True)
class FolderWatch:
    """Watch of one folder.

    Args:
        folder: The folder.
        format_name: The format; None to recognize it.
        gated: Names of tools, or patterns, whose calls need approval.
        values: What is shown in place of the arguments' own values; by default only secrets are hidden.

    Attributes:
        mistakes: The number of findings so far.
    """

    folder: str
    format_name: str | None = None
    gated: Sequence[str] = ()
    values: MadeUpValues | None = None
    mistakes: int = 0
    _known: dict[str, State] = field(default_factory=dict)
    _looked_at: dict[str, State] = field(default_factory=dict)
    _found: dict[str, set[tuple[str | None, ...]]] = field(default_factory=dict)

    def look(self) -> Iterator[LintMessage]:
        """Yield the new findings in what has not changed since the last look, so that it is written to its end."""
        before, self._known = self._known, {path: _read_state(path) for path in list_stored(self.folder)}
        for path, state in self._known.items():
            if before.get(path) == state != self._looked_at.get(path):
                self._looked_at[path] = state
                yield from self._lint(path)
        for gone in self._looked_at.keys() - self._known.keys():
            del self._looked_at[gone]
            self._found.pop(gone, None)

    def _lint(self, path: str) -> Iterator[LintMessage]:
        before = self._found.get(path, set())
        found: set[tuple[str | None, ...]] = set()
        # The file may have been removed meanwhile.
        with suppress(UsageError):
            for message in Linter([path], self.format_name, self.gated, self.values, of_folder=True):
                if not message.is_mistake:
                    continue
                # A file that grows holds what was found in it before.
                key = (message.conversation, message.rule, message.where, message.text)
                found.add(key)
                if key not in before:
                    self.mistakes += 1
                    yield message
        self._found[path] = found


def _read_state(path: str) -> State:
    """Return the state of a file with its log, or of the files of a session."""
    files = [path, path + _LOG_SUFFIX]
    if os.path.isdir(path):
        files = [os.path.join(parent, name) for parent, _, names in os.walk(path) for name in sorted(names)]
    state = []
    for file in files:
        with suppress(OSError):
            found = os.stat(file)
            state.append((file, found.st_mtime_ns, found.st_size))
    return tuple(state)

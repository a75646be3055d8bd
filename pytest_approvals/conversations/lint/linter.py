"""Findings as text, as JSON lines, and as annotations of GitHub.

Conversations are untrusted: control characters, and those that turn the direction of writing, are shown as escapes, so
that a terminal does nothing on their behalf.

Stored conversations looked at one by one: what is told about each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.conversations.histories.conversation import JsonPath, format_path
from pytest_approvals.conversations.histories.documents import TOO_DEEP
from pytest_approvals.conversations.histories.files import LocatedConversation, SkippedFile, read_conversations
from pytest_approvals.conversations.lint.rules import LintFinding, lint_conversation
from pytest_approvals.errors import HistoryError
from pytest_approvals.reporting.printable import escape_control_characters

UNREADABLE = "unreadable"
"""What is said of a document that cannot be read, in place of a rule."""

SKIPPED = "skipped"
"""What is said of a file of a folder that holds no conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintMessage:
    """
    One thing that is told.

    Attributes:
        rule: The rule that is broken, or one of the words `waits`, `odd`, `unreadable`, `skipped`.
        is_mistake: It lets lint fail.
        where: The place in the conversation, for people.
    """

    rule: str
    is_mistake: bool
    what: str
    file: str
    line: int | None = None
    where: str = ""
    path: JsonPath = ()
    message: int | None = None
    content: int | None = None
    conversation: str | None = None
    format: str | None = None


def finding_message(finding: LintFinding, stored: LocatedConversation) -> LintMessage:
    """Tells what was found in a conversation."""
    return LintMessage(
        rule=finding.rule,
        is_mistake=finding.is_mistake,
        what=finding.what,
        file=stored.file,
        line=stored.line_of(finding.path),
        where=finding.where,
        path=finding.path,
        message=finding.message,
        content=finding.content,
        conversation=stored.conversation.name,
        format=stored.conversation.format,
    )


def error_message(mistake: HistoryError) -> LintMessage:
    """Tells what cannot be read."""
    return LintMessage(
        rule=UNREADABLE,
        is_mistake=True,
        what=mistake.what,
        file=mistake.file or "",
        line=mistake.line,
        where=format_path(mistake.at),
        path=mistake.at,
    )


def skip_message(skipped: SkippedFile) -> LintMessage:
    """Tells which file of a folder was left out."""
    return LintMessage(rule=SKIPPED, is_mistake=False, what="no conversation of a known format", file=skipped.file)


def format_text(told: LintMessage) -> str:
    """
    Gives a line for people: place, rule, sentence.

    >>> as_text(Told(rule="odd", is_mistake=False, what="it rings \x07", file="a.json", line=3, where="message 0"))
    'a.json:3: message 0: odd: it rings \\\\x07'
    """
    place = told.file if told.line is None else f"{told.file}:{told.line}"
    return escape_control_characters(": ".join(part for part in (place, told.where, told.rule, told.what) if part))


def format_json(told: LintMessage) -> str:
    """Gives a line of JSON."""
    facts: dict[str, Any] = {
        "event": "finding" if told.is_mistake else "notice",
        "rule": told.rule,
        "file": told.file,
        "line": told.line,
        "conversation": told.conversation,
        "format": told.format,
        "message": told.message,
        "content": told.content,
        "path": list(told.path),
        "what": told.what,
    }
    return json.dumps({name: value for name, value in facts.items() if value is not None})


def format_annotation(told: LintMessage) -> str:
    """Gives a line that GitHub shows beside the file."""
    level = "error" if told.is_mistake else "notice"
    place = f"file={_escape_property(told.file)}" + (f",line={told.line}" if told.line is not None else "")
    text = escape_control_characters(f"{told.where}: {told.what}" if told.where else told.what)
    return f"::{level} {place},title={_escape_property(told.rule)}::{text.replace('%', '%25')}"


FORMATTERS: dict[str, Callable[[LintMessage], str]] = {
    "text": format_text,
    "jsonl": format_json,
    "github": format_annotation,
}
"""By name: how one thing is written."""


def _escape_property(text: str) -> str:
    return escape_control_characters(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


@dataclass(slots=True)
class Linter:
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

    def __iter__(self) -> Iterator[LintMessage]:
        """
        Gives all that is to be told.

        Errors:
            UsageError: A file does not exist, or a folder holds none to look at.
        """
        for stored in read_conversations(self.words, form=self.form):
            if isinstance(stored, LocatedConversation):
                self.conversations += 1
                told = self._about(stored)
            else:
                told = [skip_message(stored) if isinstance(stored, SkippedFile) else error_message(stored)]
            for each in told:
                self.mistakes += each.is_mistake
                yield each

    def _about(self, stored: LocatedConversation) -> list[LintMessage]:
        try:
            return [finding_message(finding, stored) for finding in lint_conversation(stored.conversation, self.gated)]
        except RecursionError:
            return [error_message(HistoryError(TOO_DEEP, file=stored.file, line=stored.line))]

"""Linter of files and values: findings as objects, as text, as JSON lines and as annotations of GitHub.

Conversations are untrusted: control characters, and those that turn the direction of writing, are escaped, so that a
terminal does not act on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_approvals.conversations.histories.conversation import JsonPath, format_path
from pytest_approvals.conversations.histories.documents import TOO_DEEP
from pytest_approvals.conversations.histories.files import (
    LocatedConversation,
    SkippedFile,
    TextPlace,
    read_conversations,
    read_text,
)
from pytest_approvals.conversations.lint.rules import LintFinding, lint_conversation
from pytest_approvals.conversations.made_up_values import MadeUpValues
from pytest_approvals.errors import HistoryError, UsageError
from pytest_approvals.errors.printable import LINE_WIDTH, escape_value, shorten

UNREADABLE = "unreadable"
"""The rule of messages about documents that cannot be read."""

SKIPPED = "skipped"
"""The rule of messages about files of a folder that hold no conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintMessage:
    """One message of the linter: a finding or a notice.

    Attributes:
        rule: The rule that is violated, or one of the words `waits`, `odd`, `unreadable`, `skipped`.
        is_mistake: It makes the linter fail.
        where: The place in the conversation, in words.
    """

    rule: str
    is_mistake: bool
    text: str
    file: str
    line: int | None = None
    where: str = ""
    path: JsonPath = ()
    message: int | None = None
    content: int | None = None
    conversation: str | None = None
    format: str | None = None


def finding_messages(findings: Sequence[LintFinding], stored: LocatedConversation) -> list[LintMessage]:
    """Return the messages about the findings in one conversation."""
    if not findings:
        return []
    places = stored.find_places([finding.path for finding in findings])
    return [_finding_message(finding, stored, place) for finding, place in zip(findings, places, strict=True)]


def _finding_message(finding: LintFinding, stored: LocatedConversation, place: TextPlace) -> LintMessage:
    return LintMessage(
        rule=finding.rule,
        is_mistake=finding.is_mistake,
        text=finding.text,
        file=place.file,
        line=place.line,
        where=finding.where,
        path=finding.path,
        message=finding.message,
        content=finding.content,
        conversation=stored.conversation.name,
        format=stored.conversation.format,
    )


def error_message(error: HistoryError) -> LintMessage:
    """Return the message about a document that cannot be read."""
    return LintMessage(
        rule=UNREADABLE,
        is_mistake=True,
        text=error.what,
        file=error.file or "",
        line=error.line,
        where=format_path(error.at),
        path=error.at,
    )


def skip_message(skipped: SkippedFile) -> LintMessage:
    """Return the message about a file of a folder that was left out."""
    return LintMessage(rule=SKIPPED, is_mistake=False, text="no conversation of a known format", file=skipped.file)


def format_text(message: LintMessage) -> str:
    r"""Return a line of text: place, rule, sentence.

    >>> format_text(LintMessage(rule="odd", is_mistake=False, text="it rings \x07", file="a.json", line=3))
    'a.json:3: odd: it rings \\x07'
    """
    place = message.file if message.line is None else f"{message.file}:{message.line}"
    parts = (place, message.where, message.rule, message.text)
    return escape_value(": ".join(shorten(part, LINE_WIDTH) for part in parts if part))


def format_json(message: LintMessage) -> str:
    """Return a message as a line of JSON."""
    facts: dict[str, Any] = {
        "event": "finding" if message.is_mistake else "notice",
        "rule": message.rule,
        "file": message.file,
        "line": message.line,
        "conversation": message.conversation,
        "format": message.format,
        "message": message.message,
        "content": message.content,
        "path": list(message.path),
        "what": shorten(message.text, LINE_WIDTH),
    }
    return json.dumps({name: value for name, value in facts.items() if value is not None})


def format_annotation(message: LintMessage) -> str:
    """Return a message as an annotation that GitHub shows next to the line."""
    level = "error" if message.is_mistake else "notice"
    place = f"file={_escape_property(message.file)}" + (f",line={message.line}" if message.line is not None else "")
    text = escape_value(": ".join(shorten(part, LINE_WIDTH) for part in (message.where, message.text) if part))
    return f"::{level} {place},title={_escape_property(message.rule)}::{text.replace('%', '%25')}"


FORMATTERS: dict[str, Callable[[LintMessage], str]] = {
    "text": format_text,
    "jsonl": format_json,
    "github": format_annotation,
}
"""The formats of messages, by name."""


def _escape_property(text: str) -> str:
    return escape_value(shorten(text, LINE_WIDTH)).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


@dataclass(slots=True)
class Linter:
    """Linter of files and folders; iterating over it yields its messages.

    Args:
        paths: Files, folders, and `-` for standard input.
        format_name: The format; None to recognize it.
        gated: Names of tools, or patterns, whose calls need approval.
        values: What is shown in place of the arguments' own values; by default only secrets are hidden.
        of_folder: See `read_conversations`.

    Attributes:
        conversations: The number of conversations so far.
        mistakes: The number of findings so far.
    """

    paths: Iterable[str]
    format_name: str | None = None
    gated: Sequence[str] = ()
    values: MadeUpValues | None = None
    of_folder: bool = False
    conversations: int = 0
    mistakes: int = 0

    def __iter__(self) -> Iterator[LintMessage]:
        """Lint each conversation and yield the messages about it.

        Raises:
            UsageError: A file does not exist, or a folder holds no files of conversations.
        """
        for stored in read_conversations(self.paths, format_name=self.format_name, of_folder=self.of_folder):
            if isinstance(stored, LocatedConversation):
                self.conversations += 1
                messages = self._lint(stored)
            else:
                messages = [skip_message(stored) if isinstance(stored, SkippedFile) else error_message(stored)]
            for message in messages:
                self.mistakes += message.is_mistake
                yield message

    def _lint(self, stored: LocatedConversation) -> list[LintMessage]:
        try:
            return finding_messages(lint_conversation(stored.conversation, self.gated, self.values), stored)
        except RecursionError:
            return [error_message(HistoryError(TOO_DEEP, file=stored.file, line=stored.line))]


def judge_conversation(
    conversation: str | bytes | Path | Sequence[object] | Mapping[str, object],
    *,
    format_name: str | None = None,
    gated: Sequence[str] = (),
    redact: bool = False,
) -> list[LintFinding]:
    """Return what is wrong with the approvals in a stored conversation, or in each of several.

    For tests of an application and for jobs that look at what it stored: nothing is executed, and neither the framework
    nor a model is needed. A call that waits at the end is not wrong, because the conversation is paused.

    Args:
        conversation: JSON text, plain values as `json.loads` returns them, or the path of a file or folder.
        format_name: A format that `pytest-approvals lint` knows; None to recognize it.
        gated: Names of tools, or patterns such as `wipe_*`, whose calls need approval whatever the conversation says;
            with a condition, `refund:amount>100`.
        redact: Show made-up values in place of those of arguments.

    Returns:
        The findings, in the order of the conversation; empty if it is sound.

    Raises:
        HistoryError: It cannot be read, or is of no known format.
        UnknownName: There is no such format.
        UsageError: The file does not exist, a condition is none, or the value is not plain JSON.
    """
    if isinstance(conversation, Path):
        found = read_conversations([str(conversation)], format_name=format_name)
    else:
        found = read_text(_to_json(conversation), name="the conversation", format_name=format_name)
    findings: list[LintFinding] = []
    values = MadeUpValues() if redact else None
    for stored in found:
        if isinstance(stored, HistoryError):
            raise stored
        if isinstance(stored, LocatedConversation):
            found_here = lint_conversation(stored.conversation, gated, values)
            findings += [each for each in found_here if each.is_mistake]
    return findings


def _to_json(conversation: object) -> bytes:
    if isinstance(conversation, bytes):
        return conversation
    try:
        return (conversation if isinstance(conversation, str) else json.dumps(conversation)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        what = f"judge_conversation: the conversation is not plain JSON: {error}"
        raise UsageError(f"{what}; dump it with the framework's serializer first") from error

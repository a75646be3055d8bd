"""
Findings as text, as JSON lines, and as annotations of GitHub.

Conversations are untrusted: control characters, and those that turn the direction of writing, are shown as escapes, so
that a terminal does nothing on their behalf.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_approvals.errors import HistoryError
from pytest_approvals.harmless import harmless
from pytest_approvals.histories.conversation import Path, shown_path
from pytest_approvals.histories.files import Skipped, Stored

from .finding import Finding

UNREADABLE = "unreadable"
"""What is said of a document that cannot be read, in place of a rule."""

SKIPPED = "skipped"
"""What is said of a file of a folder that holds no conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
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
    path: Path = ()
    message: int | None = None
    content: int | None = None
    conversation: str | None = None
    format: str | None = None


def told_finding(finding: Finding, stored: Stored) -> Told:
    """Tells what was found in a conversation."""
    return Told(
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


def told_mistake(mistake: HistoryError) -> Told:
    """Tells what cannot be read."""
    return Told(
        rule=UNREADABLE,
        is_mistake=True,
        what=mistake.what,
        file=mistake.file or "",
        line=mistake.line,
        where=shown_path(mistake.at),
        path=mistake.at,
    )


def told_skip(skipped: Skipped) -> Told:
    """Tells which file of a folder was left out."""
    return Told(rule=SKIPPED, is_mistake=False, what="no conversation of a known format", file=skipped.file)


def as_text(told: Told) -> str:
    """
    Gives a line for people: place, rule, sentence.

    >>> as_text(Told(rule="odd", is_mistake=False, what="it rings \x07", file="a.json", line=3, where="message 0"))
    'a.json:3: message 0: odd: it rings \\\\x07'
    """
    place = told.file if told.line is None else f"{told.file}:{told.line}"
    return harmless(": ".join(part for part in (place, told.where, told.rule, told.what) if part))


def as_json(told: Told) -> str:
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


def as_annotation(told: Told) -> str:
    """Gives a line that GitHub shows beside the file."""
    level = "error" if told.is_mistake else "notice"
    place = f"file={_property(told.file)}" + (f",line={told.line}" if told.line is not None else "")
    text = harmless(f"{told.where}: {told.what}" if told.where else told.what)
    return f"::{level} {place},title={_property(told.rule)}::{text.replace('%', '%25')}"


OUTPUTS: dict[str, Callable[[Told], str]] = {"text": as_text, "jsonl": as_json, "github": as_annotation}
"""By name: how one thing is written."""


def _property(text: str) -> str:
    return harmless(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")

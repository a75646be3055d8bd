"""Untrusted text, made printable: escapes, and what is left out of long text."""

from __future__ import annotations

import inspect
import re
import sys

import pytest

import pytest_approvals.checks
from pytest_approvals import errors
from pytest_approvals.errors.printable import (
    LINE_WIDTH,
    MESSAGE_LENGTH,
    escape_lines,
    escape_value,
    format_message,
    quote,
    shorten,
)

HARMFUL = {
    "osc": "\x1b]52;c;eA==\x07",
    "csi": "\x1b[31m",
    "c1": "\x9b31m",
    "nul": "\0",
    "delete": "\x7f",
    "carriage-return": "a\rb",
    "bidi-override": "\u202e",
    "bidi-isolate": "\u2066",
    "arabic-letter-mark": "\u061c",
    "line-separator": "a\u2028::error::b",
    "lone-surrogate": "\ud800",
    "zero-width": "a\u200bb",
    "tag": "\U000e0041",
}
COMMANDS = {
    "github": "::error file=a::injected",
    "github-behind-blanks": "  \t ::set-output name=a::b",
    "github-in-a-later-line": "a\n::add-mask::b",
    "github-of-old": "##[error]a",
    "github-of-old-within-a-line": "a ##[set-env name=a]b",
    "azure": "##vso[task.setvariable variable=a]b",
    "teamcity": "##teamcity[message text='a']",
}


def acts(text: str) -> bool:
    """Return whether a terminal or a CI system acts on a text."""
    lines = text.split("\n")
    return (
        not all(line.isprintable() for line in lines)
        or any(re.match(r"\s*::[a-z]", line) for line in lines)
        or any(command in text for command in ("##[", "##vso[", "##teamcity["))
    )


@pytest.mark.parametrize("text", [*HARMFUL.values(), *COMMANDS.values()], ids=[*HARMFUL, *COMMANDS])
def test_nothing_acts_on_escaped_text(text: str) -> None:
    """Neither on a value nor on several lines; escaping it again changes nothing."""
    assert acts(text)
    for escape in (escape_value, escape_lines, format_message):
        escaped = escape(text)

        assert not acts(escaped)
        assert escaped == escape(escaped)
        assert escaped.encode("utf-8")


@pytest.mark.parametrize("text", [*HARMFUL.values(), *COMMANDS.values()], ids=[*HARMFUL, *COMMANDS])
def test_nothing_acts_on_quoted_text(text: str) -> None:
    """It stands between quotes, in one line."""
    quoted = quote(text)

    assert not acts(quoted)
    assert "\n" not in quoted
    assert quoted[0] in "'\""


def test_harmless_text_stays_as_it_is() -> None:
    """In every language; addresses with colons, node ids and C++ names are no commands."""
    for text in ("", "Zahle 5 € an Zoë", "支払う", "tests/test_a.py::test_b", "::1", "a ::error::b", "# ## [a]"):
        assert text == escape_value(text)
        assert text == escape_lines(text)


def test_a_value_is_one_line() -> None:
    """Its line feeds are escaped; those of several lines are kept."""
    assert "a\\nb" == escape_value("a\nb")
    assert "a\nb\n" == escape_lines("a\r\nb\n")


def test_a_long_text_loses_its_middle() -> None:
    """Its beginning and its end stay, and the number of characters that are left out is told."""
    short = shorten("a" * 30_000 + "b" * 30_000, 300)

    assert "a" * 200 + " [... 59,700 characters left out ...] " + "b" * 100 == short
    assert "abc" == shorten("abc", 3)


def test_a_message_has_neither_long_lines_nor_very_many() -> None:
    """A line of 20 MB becomes a short one; so do many lines."""
    line, lines = format_message("a\n" + "x" * 20_000_000 + "\nb"), format_message("x\n" * 200_000)

    assert ["a", "b"] == [line.split("\n")[0], line.split("\n")[-1]]
    assert len(line) < LINE_WIDTH + 100
    assert "19,999,000 characters left out" in line
    assert len(lines) < MESSAGE_LENGTH + 100


def error_classes() -> list[type[errors.ApprovalsError]]:
    """Return all classes of errors."""
    found = [errors.ApprovalsError]
    for known in found:
        found += known.__subclasses__()
    assert pytest_approvals.checks.CheckFailed in found
    return found


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_each_error_prints_escaped_and_short(kind: type[errors.ApprovalsError]) -> None:
    """Whatever the facts are that it is made of."""
    mark = "x\x1b]52;c;x\x07\ud800\n::error file=a::b" + "y" * 60_000
    facts = {"str": mark, "int": 3, "Iterable": [mark], "Sequence": [mark], "Mapping": {mark: 2}}
    wanted = inspect.signature(kind.__init__).parameters.values()
    positional = [one for one in wanted if one.kind is one.POSITIONAL_OR_KEYWORD and one.name != "self"]
    values = [facts.get(str(one.annotation).partition("[")[0].partition(" ")[0], mark) for one in positional]
    text = str(kind(*values or [mark]))

    assert "x\\x1b]52;c;x\\x07\\ud800" in text
    assert not acts(text)
    assert len(text) < 5 * LINE_WIDTH


def test_a_warning_prints_escaped() -> None:
    """pytest lists warnings in its summary."""
    assert not acts(str(errors.RequirementWarning("a\x1b[31m\n::error::b")))


def test_text_is_harmless_wherever_it_is_cut() -> None:
    """What is left out of a text makes no command of the rest."""
    text = "##" + "y" * 50 + "[error]x\n" + "::" + "error::z" * 20

    assert not [length for length in range(1, len(text)) if acts(escape_lines(shorten(text, length)))]


def test_every_character_that_is_not_printable_is_escaped() -> None:
    """All of Unicode; what remains is printable."""
    assert escape_value("".join(map(chr, range(sys.maxunicode + 1)))).isprintable()

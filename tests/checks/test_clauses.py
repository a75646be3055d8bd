"""The circumstances that checks distinguish, each in a journal of its own.

`clauses/*.txt` has the journals that would be too many for the docstrings of the checks: what excuses a call, and next
to it what does not. The lines below a heading are a journal in short lines, as in the docstrings. Headings are
`Passes`, `Warns`, `Fails` and `Is silent`, each with a reason, and with the calls about which it says so (`Fails about
c1`) if that is not all. `harness-error` and `unknown` are said by `Gives up`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.journal.validation import find_violations

FOLDER = Path(__file__).with_name("clauses")
STATUSES = {
    "Passes": ("pass",),
    "Warns": ("warning",),
    "Fails": ("fail",),
    "Is silent": ("not-applicable",),
    "Gives up": ("unknown", "harness-error"),
}
HEADING = re.compile(rf"({'|'.join(STATUSES)})(?: about (.+?))?, (.+):")


@dataclass(frozen=True, slots=True)
class Clause:
    """A journal, and what one check says about it.

    Attributes:
        check: The slug of the check.
        verdict: One of `STATUSES`.
        calls: The labels of the calls about which it says so.
        reason: Why.
        lines: The journal.
    """

    check: str
    verdict: str
    calls: tuple[str, ...]
    reason: str
    lines: str


def read_clauses(text: str) -> Iterator[Clause]:
    """Yield the clauses of a file.

    Raises:
        ValueError: A line is neither a heading nor a line of a journal.
    """
    check, heading, lines = "", None, []
    for number, line in enumerate([*text.splitlines(), "# end"], 1):
        if line.startswith("    ") or not line:
            lines.append(line)
            continue
        if heading is not None:
            verdict, calls, reason = heading.groups()
            labels = tuple(calls.split(", ")) if calls else ()
            yield Clause(check, verdict, labels, reason, "\n".join(lines))
        if line.startswith("# "):
            check, heading, lines = line[2:], None, []
            continue
        heading, lines = HEADING.fullmatch(line), []
        if heading is None or not check:
            raise ValueError(f"line {number}: {line!r} is no heading")


CLAUSES = [
    pytest.param(clause, id=f"{clause.check}-{clause.verdict}-{clause.reason}".replace(" ", "_"))
    for path in sorted(FOLDER.glob("*.txt"))
    for clause in read_clauses(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_check_says_so_about_a_clause(clause):
    """Each journal has the verdict of its heading, about those calls and no others."""
    history = read_history(parse_notation(clause.lines))
    verdicts = CHECKS[clause.check].judge(history)

    assert {clause.verdict} == {word for word, known in STATUSES.items() for each in verdicts if each.status in known}
    if clause.calls:
        assert {*clause.calls} == {verdict.label for verdict in verdicts}


@pytest.mark.parametrize("clause", [each for each in CLAUSES if each.values[0].check != "journal-well-formed"])
def test_a_clause_could_have_been_recorded(clause):
    """No journal breaks the rules of journals."""
    assert [] == find_violations(parse_notation(clause.lines))


def test_a_line_that_is_no_clause_is_refused():
    """A heading without a verdict, or without a check, would hide the journals below it."""
    with pytest.raises(ValueError, match="line 2: 'Passed, well:' is no heading"):
        list(read_clauses("# run-ends\nPassed, well:\n    send Hello\n"))
    with pytest.raises(ValueError, match="line 1: 'Passes, well:' is no heading"):
        list(read_clauses("Passes, well:\n    send Hello\n"))


@pytest.mark.parametrize("check", [check for check in CHECKS.values() if check.function], ids=lambda check: check.slug)
def test_a_check_reads_a_journal_that_was_cut_off(check):
    """After each event of its journals, and without the header: no check crashes on a turn or a tool without an end."""
    texts = [example.lines for example in check.examples]
    texts += [clause.values[0].lines for clause in CLAUSES if clause.values[0].check == check.slug]
    journals = [parse_notation(text) for text in texts]
    cut = [events[:length] for events in journals for length in range(len(events))]
    verdicts = [
        each for events in [*cut, *(events[1:] for events in journals)] for each in check.judge(read_history(events))
    ]

    assert [] == [verdict.actual for verdict in verdicts if verdict.actual.startswith("the check raised")]

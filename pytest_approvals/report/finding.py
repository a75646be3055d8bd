"""
The printed form of a finding, the same in every report:

    runs-at-most-once: an approved call must not run more than once
      parallel/partial-answer · openai_agents 0.24.0 (environment) · json, streaming, held · also in 23 variants
      expected  1 run of c1 pay(amount=5)
      actual    2 runs
         7 caller  approves c1
         9 tool    c1 pay(amount=5) starts
        14 store   restored from json
        15 tool    c1 pay(amount=5) starts
      rerun  pytest-approvals run parallel/partial-answer --agent openai_agents==0.24.0 --serialize json ...
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_approvals.checks.verdicts import Finding, Verdict
from pytest_approvals.journal.history import History
from pytest_approvals.journal.sentences import Sentences

from .subject import Subject

WIDTH = 120
"""How long a line of a witness may be."""

_PREFIXES = {"warning": "warning: ", "unknown": "undecided: ", "harness-error": "harness error: ", "waived": "waived: "}


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessEvent:
    """One event that shows a finding: its position in the journal, and what it says."""

    n: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedFinding:
    """
    A finding with all that is printed of it.

    Attributes:
        requirement: The sentence of the check.
        status: Of the verdict; `waived` where a waiver covers it.
        others: How often the check failed besides: `23 variants`.
        elsewhere: Further scenarios in which it failed.
        notes: What else is to be said: what follows from it, the reason of a waiver.
    """

    check: str
    requirement: str
    subject: Subject
    status: str = "fail"
    expected: str = ""
    actual: str = ""
    witness: tuple[WitnessEvent, ...] = ()
    others: str = ""
    elsewhere: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, finding: Finding, subject: Subject, history: History | None) -> PrintedFinding:
        """
        Makes the printed form of a finding.

        Arguments:
            history: The journal that it was found in; None where it is about several.
        """
        verdict = finding.verdict
        implied = sorted({each.check for each in finding.implied})
        return cls(
            check=verdict.check,
            requirement=finding.requirement,
            subject=subject,
            status=verdict.status,
            expected=verdict.expected,
            actual=verdict.actual,
            witness=witness_of(verdict, history) if history is not None else (),
            notes=(f"from it follow {', '.join(implied)}",) if implied else (),
        )

    def render(self) -> str:
        """Gives the printed form, several lines without a line feed at the end."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        requirement = self.requirement[:1].lower() + self.requirement[1:].rstrip(".")
        yield f"{_PREFIXES.get(self.status, '')}{self.check}: {requirement}"
        subject = self.subject
        also = f"also in {self.others}" if self.others else ""
        yield "  " + " · ".join(part for part in (subject.scenario, subject.agent_said, subject.mode, also) if part)
        if self.expected:
            yield f"  expected  {self.expected}"
        if self.actual:
            yield f"  actual    {self.actual}"
        for event in self.witness:
            yield cut(f"  {event.n:>4} {event.text}", WIDTH)
        if self.elsewhere:
            yield f"  also in   {', '.join(self.elsewhere)}"
        for note in self.notes:
            yield f"  note   {note}"
        if subject.rerun:
            yield f"  rerun  {subject.rerun}"


def render_all(findings: Iterable[PrintedFinding]) -> str:
    """Gives several findings, an empty line between them."""
    return "\n\n".join(finding.render() for finding in findings)


def witness_of(verdict: Verdict, history: History) -> tuple[WitnessEvent, ...]:
    """
    Says the events that show a verdict.

    Of an event that is said in several sentences only those about the call of the verdict are taken, if there are any.
    """
    sentences = Sentences(history)
    events = {event.n: event for event in history.events}
    found = []
    for n in verdict.witness:
        if n in events:
            said = _about(verdict.label, sentences.of(events[n]))
            found.append(WitnessEvent(n=n, text=said[0] + "".join(f"; {text[8:]}" for text in said[1:])))
    return tuple(found)


def _about(label: str | None, sentences: Sequence[str]) -> Sequence[str]:
    if label is None or len(sentences) == 1:
        return sentences
    named = re.compile(rf"(?<![\w/#-]){re.escape(label)}(?![\w/#-])")
    return [text for text in sentences if named.search(text)] or sentences


def cut(line: str, width: int) -> str:
    """
    Cuts a line that is too long.

    >>> cut("a long line", 8)
    'a long …'
    """
    return line if len(line) <= width else line[: width - 1] + "…"

"""Check: one requirement, with its documentation, its examples and the function that judges journals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_approvals.checks._verdicts import Severity, Status, Verdict
from pytest_approvals.journal.formatting import format_call
from pytest_approvals.journal.history import History, RecordedCall

Level = Literal["must", "should"]


@dataclass(slots=True, kw_only=True)
class Failure:
    """One thing for which a requirement does not hold.

    Attributes:
        expected: What the requirement asks for, in a few words.
        actual: What the journal shows instead.
        witness: Positions of the events that show it; 0 means none.
        call: The call concerned; None if it is no call in particular.
        session: The session concerned, if no call is.
        level: `should` if only the weaker half of a `must` is violated; None takes the level of the check.
        status: `unknown` or `harness-error` if the journal cannot decide or is no evidence; None for a failure.
    """

    expected: str
    actual: str
    witness: Sequence[int]
    call: RecordedCall | None = None
    session: str = ""
    level: Level | None = None
    status: Status | None = None


Evaluations = Iterator[Failure | None]
CheckFunction = Callable[[History], Evaluations]
GroupFunction = Callable[[Sequence[History]], Evaluations]

OK: None = None
"""What a check yields for each thing for which the requirement holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A journal in short lines from a check's docstring, and what the check says about it."""

    status: Literal["pass", "fail", "warning"]
    caption: str
    lines: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One requirement.

    Attributes:
        slug: Its name; it never changes.
        family: The group of checks that it belongs to: `execution`, `asking`, ...
        requirement: One sentence with must or should.
        why: The reason, a paragraph or two.
        level: `must` fails a run, `should` is a warning.
        severity: What a failure can cost.
        needs: The kinds of events without which it cannot be decided.
        implies: The checks whose failures follow from a failure of this one, for the same call.
        sources: Public issues and documents that it is based on.
        examples: Journals on which it passes and fails.
        function: Judges one journal; None for a check that compares several.
        group: Compares the journals of one scenario in its variants; None for a check of one journal.
        guards: It judges the run, not the agent, and is silent if another check does not hold.
        constant_verdicts: The verdicts without details, by status, made once.
    """

    slug: str
    family: str
    requirement: str
    why: str
    level: Level
    severity: Severity
    needs: tuple[str, ...]
    implies: tuple[str, ...]
    sources: tuple[str, ...]
    examples: tuple[Example, ...]
    function: CheckFunction | None = None
    group: GroupFunction | None = None
    guards: bool = False
    constant_verdicts: dict[str, Verdict]

    def judge(self, history: History) -> list[Verdict]:
        """Return one verdict on a journal, or one for each call for which the requirement does not hold."""
        assert self.function is not None
        header = history.header
        if header is not None and header.observes is not None and not set(self.needs) <= set(header.observes):
            return [self.constant_verdicts["not-observable"]]
        return self._collect_verdicts(self.function, history)

    def judge_group(self, histories: Sequence[History]) -> list[Verdict]:
        """Return the verdicts on the journals of one scenario in its variants."""
        assert self.group is not None
        return self._collect_verdicts(self.group, histories)

    def _collect_verdicts(self, function: Callable[[Any], Evaluations], subject: object) -> list[Verdict]:
        status = "not-applicable"
        failures: list[Failure] = []
        try:
            for evaluation in function(subject):
                status = "pass"
                if evaluation is not None:
                    failures.append(evaluation)
            # Inside, because what the check yielded may be no failure, or one with invalid attributes.
            return self._verdicts_by_call(failures) if failures else [self.constant_verdicts[status]]
        except Exception as error:
            # A crash of one check must not hide the verdicts of the others.
            return [self._report_crash(error)]

    def _verdicts_by_call(self, failures: Iterable[Failure]) -> list[Verdict]:
        """Return at most one verdict per call: the first failure, or the first warning if nothing fails."""
        verdicts: dict[tuple[str, str | None], Verdict] = {}
        for failure in failures:
            verdict = self._build_verdict(failure)
            key = verdict.session, verdict.label
            if key not in verdicts or (verdict.fails and not verdicts[key].fails):
                verdicts[key] = verdict
        return list(verdicts.values())

    def _build_verdict(self, failure: Failure) -> Verdict:
        is_weak = (failure.level or self.level) == "should"
        call = failure.call
        return Verdict(
            check=self.slug,
            status=failure.status or ("warning" if is_weak else "fail"),
            label=call.label if call is not None else None,
            session=call.session if call is not None else failure.session,
            call=describe_call(call) if call is not None else "",
            expected=failure.expected,
            actual=failure.actual,
            witness=tuple(sorted({n for n in failure.witness if n})),
        )

    def _report_crash(self, error: Exception) -> Verdict:
        actual = f"the check raised {type(error).__name__}: {error}"
        return Verdict(check=self.slug, status="harness-error", expected="a verdict", actual=actual)


def describe_call(call: RecordedCall) -> str:
    """Return a call as findings show it: `c1 pay(amount=5)`."""
    return f"{call.label} {format_call(call.tool, call.arguments)}"

"""
What a check is, and how one is written.

A check is a function of a `History`. It yields once for everything that it looked at: None where the requirement holds,
a `Failure` where it does not. If it yields nothing, the requirement did not apply. Its docstring is its documentation
and its test: the first paragraph is the requirement, what follows says why, and then come journals in short lines (see
`journal/notation.py`) on which it passes, fails or warns:

    @check("runs-at-most-once", needs=("tool.start",), sources=("google/adk-python#7151",))
    def runs_at_most_once(history: History) -> Evaluations:
        \"\"\"
        An approved call must not run more than once.

        A payment made twice cannot be unmade.

        Passes:
            ...

        Fails, after a restore:
            ...
        \"\"\"

`check` validates all of that at once, when the module is imported.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_approvals.checks._verdicts import Status, Verdict
from pytest_approvals.errors import UsageError
from pytest_approvals.journal.events import EVENTS
from pytest_approvals.journal.formatting import format_call
from pytest_approvals.journal.history import History, RecordedCall

Level = Literal["must", "should"]


@dataclass(slots=True, kw_only=True)
class Failure:
    """
    One thing that a requirement does not hold for.

    Attributes:
        call: The call concerned; None where it is no call in particular.
        level: `should` where only the weaker half of a `must` is violated; None takes the level of the check.
        status: A status of its own, `unknown` or `harness-error`, where the journal cannot decide or is no evidence.
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
"""What a check yields for each thing that the requirement holds for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A journal in short lines from a check's docstring, and what the check says about it."""

    status: Literal["pass", "fail", "warning"]
    caption: str
    lines: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """
    One requirement.

    Attributes:
        slug: Its name, stable for ever.
        family: The module that it stands in.
        requirement: One sentence with must or should.
        why: The reason, a paragraph or two.
        level: `must` fails a run, `should` is a warning.
        needs: The kinds of events without which it cannot be decided.
        implies: The checks whose failures follow from a failure of this one, for the same call.
        sources: Public issues and documents that it stands on.
        examples: Journals on which it passes and fails.
        guards: It judges the run, not the agent, and says nothing where another check does not hold.
    """

    slug: str
    family: str
    requirement: str
    why: str
    level: Level
    needs: tuple[str, ...]
    implies: tuple[str, ...]
    sources: tuple[str, ...]
    examples: tuple[Example, ...]
    function: CheckFunction | None = None
    group: GroupFunction | None = None
    guards: bool = False
    plain: dict[str, Verdict]

    def judge(self, history: History) -> list[Verdict]:
        """Judges one journal: one verdict, or one for each call that the requirement does not hold for."""
        assert self.function is not None
        header = history.header
        if header is not None and header.observes is not None and not set(self.needs) <= set(header.observes):
            return [self.plain["not-observable"]]
        return self._verdicts(self.function, history)

    def judge_group(self, histories: Sequence[History]) -> list[Verdict]:
        """Judges the journals that one scenario left in its variants."""
        assert self.group is not None
        return self._verdicts(self.group, histories)

    def _verdicts(self, function: Callable[[Any], Evaluations], subject: object) -> list[Verdict]:
        status = "not-applicable"
        failures: list[Failure] = []
        try:
            for evaluation in function(subject):
                status = "pass"
                if evaluation is not None:
                    failures.append(evaluation)
        except Exception as error:
            return [self._crashed(error)]
        return self._of(failures) if failures else [self.plain[status]]

    def _of(self, failures: Iterable[Failure]) -> list[Verdict]:
        """One verdict a call: the first failure, and of its kind the gravest."""
        found: dict[tuple[str, str | None], Verdict] = {}
        for failure in failures:
            verdict = self._verdict(failure)
            key = verdict.session, verdict.label
            if key not in found or (verdict.fails and not found[key].fails):
                found[key] = verdict
        return list(found.values())

    def _verdict(self, failure: Failure) -> Verdict:
        weak = (failure.level or self.level) == "should"
        call = failure.call
        return Verdict(
            check=self.slug,
            status=failure.status or ("warning" if weak else "fail"),
            label=call.label if call is not None else None,
            session=call.session if call is not None else failure.session,
            call=describe_call(call) if call is not None else "",
            expected=failure.expected,
            actual=failure.actual,
            witness=tuple(sorted({n for n in failure.witness if n})),
        )

    def _crashed(self, error: Exception) -> Verdict:
        actual = f"the check raised {type(error).__name__}: {error}"
        return Verdict(check=self.slug, status="harness-error", expected="a verdict", actual=actual)


def describe_call(call: RecordedCall) -> str:
    """
    Gives a call as people read it: `c1 pay(amount=5)`.
    """
    return f"{call.label} {format_call(call.tool, call.arguments)}"


# --- registration -----------------------------------------------------------------------------------------------------

CHECKS: dict[str, Check] = {}
"""All checks by their slugs, in the order of the families."""

_SLUG_PATTERN = re.compile(r"[a-z]+(-[a-z]+)*")
_EXAMPLE_HEADING = re.compile(r"^(Passes|Fails|Warns)(?:, (.+))?:$", re.MULTILINE)
_STATUSES: dict[str, Literal["pass", "fail", "warning"]] = {"Passes": "pass", "Fails": "fail", "Warns": "warning"}


def check(
    slug: str,
    *,
    level: Level = "must",
    needs: Sequence[str] = (),
    implies: Sequence[str] = (),
    sources: Sequence[str] = (),
    guards: bool = False,
) -> Callable[[CheckFunction], Check]:
    """
    Makes a check of a function of a `History`, and registers it.

    Errors:
        UsageError: Something about it is wrong; the message lists all of it.
    """

    def register(function: CheckFunction) -> Check:
        return register_check(
            create_check(slug, function, level, needs, implies, sources, guards=guards, function=function),
        )

    return register


def group_check(
    slug: str,
    *,
    level: Level = "must",
    needs: Sequence[str] = (),
    sources: Sequence[str] = (),
) -> Callable[[GroupFunction], Check]:
    """Makes a check of a function of several histories, those of one scenario in its variants; see `check`."""

    def register(function: GroupFunction) -> Check:
        return register_check(create_check(slug, function, level, needs, (), sources, group=function))

    return register


def create_check(
    slug: str,
    documented: Callable[..., Evaluations],
    level: Level,
    needs: Sequence[str],
    implies: Sequence[str],
    sources: Sequence[str],
    *,
    guards: bool = False,
    function: CheckFunction | None = None,
    group: GroupFunction | None = None,
) -> Check:
    """Makes a check, its texts taken from the docstring of *documented*."""
    prose, *parts = _EXAMPLE_HEADING.split(inspect.getdoc(documented) or "")
    requirement, _, why = prose.strip().partition("\n\n")
    captions, bodies = list(zip(parts[0::3], parts[1::3], strict=True)), parts[2::3]
    examples = [
        Example(status=_STATUSES[word], caption=caption or "", lines=inspect.cleandoc(body))
        for (word, caption), body in zip(captions, bodies, strict=True)
    ]
    return Check(
        slug=slug,
        family=documented.__module__.rpartition(".")[2].partition("_")[0],
        requirement=" ".join(requirement.split()),
        why=why.strip(),
        level=level,
        needs=tuple(needs),
        implies=tuple(implies),
        sources=tuple(sources),
        examples=tuple(examples),
        function=function,
        group=group,
        guards=guards,
        plain={status: Verdict(check=slug, status=status) for status in ("pass", "not-applicable", "not-observable")},
    )


def register_check(new: Check) -> Check:
    """
    Adds a check to `CHECKS`.

    Errors:
        UsageError: It is not complete, or another one has its slug.
    """
    problems = list(_find_problems(new))
    if problems:
        raise UsageError(f"check {new.slug!r}: " + "; ".join(problems))
    CHECKS[new.slug] = new
    return new


def _find_problems(new: Check) -> Iterator[str]:
    if not _SLUG_PATTERN.fullmatch(new.slug):
        yield "its slug is not kebab-case"
    if new.slug in CHECKS:
        yield "another check has its slug"
    if f" {new.level} " not in f" {new.requirement} ":
        yield f"its requirement, the first paragraph of the docstring, does not say {new.level!r}"
    if not new.why:
        yield "its docstring does not say why"
    unknown = [kind for kind in new.needs if kind not in EVENTS]
    if unknown:
        yield f"it needs events that do not exist: {', '.join(unknown)}"
    statuses = {example.status for example in new.examples}
    if "pass" not in statuses:
        yield "its docstring has no journal on which it passes (Passes:)"
    if not statuses & {"fail", "warning"}:
        yield "its docstring has no journal on which it fails (Fails: or Warns:)"

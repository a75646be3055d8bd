"""Registry of checks: the decorators that make one of a function, and look-ups by slug.

A check is a function of a `History`. It yields once for each thing that it judges: None if the requirement holds, a
`Failure` if it does not. If it yields nothing, the requirement did not apply. Its docstring is its documentation and
its test: the first paragraph is the requirement, what follows says why, and then come journals in short lines (see
`journal/notation`) on which it passes, fails or warns:

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

`check` validates all of that when the module is imported.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Literal

from pytest_approvals.checks._check import Check, CheckFunction, Evaluations, Example, GroupFunction, Level
from pytest_approvals.checks._verdicts import SEVERITIES, Severity, Verdict
from pytest_approvals.errors import UnknownName, UsageError, suggest_name
from pytest_approvals.journal.events import EVENTS

CHECKS: dict[str, Check] = {}
"""All checks by their slugs, in the order of the families."""

_SLUG_PATTERN = re.compile(r"[a-z]+(-[a-z]+)*")
_EXAMPLE_HEADING = re.compile(r"^(Passes|Fails|Warns)(?:, (.+))?:$", re.MULTILINE)
_STATUSES: dict[str, Literal["pass", "fail", "warning"]] = {"Passes": "pass", "Fails": "fail", "Warns": "warning"}

_implied_checks: dict[str, frozenset[str]] = {}


def check(
    slug: str,
    *,
    level: Level = "must",
    severity: Severity = "mistold",
    needs: Sequence[str] = (),
    implies: Sequence[str] = (),
    sources: Sequence[str] = (),
    guards: bool = False,
) -> Callable[[CheckFunction], Check]:
    """Make a check of a function of a `History`, and register it.

    Args:
        slug: The name of the check in kebab-case.
        level: `must` fails a run, `should` is a warning.
        severity: What a failure can cost; findings are ordered by it, and `--fail-on` names one.
        needs: The kinds of events without which the check cannot be decided.
        implies: The slugs of the checks whose failures follow from a failure of this one.
        sources: Public issues and documents that it is based on.
        guards: It judges the run, not the agent, and is silent if another check does not hold.

    Returns:
        A decorator that replaces the function by its check.

    Raises:
        UsageError: Something about it is wrong; the message lists everything.
    """

    def register(function: CheckFunction) -> Check:
        return register_check(
            create_check(
                slug, function, level, needs, implies, sources, severity=severity, guards=guards, function=function
            )
        )

    return register


def group_check(
    slug: str,
    *,
    level: Level = "must",
    severity: Severity = "mistold",
    needs: Sequence[str] = (),
    sources: Sequence[str] = (),
) -> Callable[[GroupFunction], Check]:
    """Make a check of a function of several histories, those of one scenario in its variants; see `check`."""

    def register(function: GroupFunction) -> Check:
        return register_check(
            create_check(slug, function, level, needs, (), sources, severity=severity, group=function)
        )

    return register


def create_check(
    slug: str,
    documented: Callable[..., Evaluations],
    level: Level,
    needs: Sequence[str],
    implies: Sequence[str],
    sources: Sequence[str],
    *,
    severity: Severity = "mistold",
    guards: bool = False,
    function: CheckFunction | None = None,
    group: GroupFunction | None = None,
) -> Check:
    """Make a check whose texts come from the docstring of *documented*."""
    prose, *parts = _EXAMPLE_HEADING.split(inspect.getdoc(documented) or "")
    requirement, _, why = prose.strip().partition("\n\n")
    captions, bodies = list(zip(parts[0::3], parts[1::3], strict=True)), parts[2::3]
    examples = [
        Example(status=_STATUSES[word], caption=caption or "", lines=inspect.cleandoc(body))
        for (word, caption), body in zip(captions, bodies, strict=True)
    ]
    return Check(
        slug=slug,
        # `execution_arguments` belongs to the family `execution`.
        family=_name_of_module(documented).partition("_")[0],
        requirement=" ".join(requirement.split()),
        why=why.strip(),
        level=level,
        severity=severity,
        needs=tuple(needs),
        implies=tuple(implies),
        sources=tuple(sources),
        examples=tuple(examples),
        function=function,
        group=group,
        guards=guards,
        constant_verdicts={
            status: Verdict(check=slug, status=status) for status in ("pass", "not-applicable", "not-observable")
        },
    )


def register_check(new: Check) -> Check:
    """Add a check to `CHECKS`.

    Raises:
        UsageError: It is incomplete, or another check has its slug.
    """
    problems = list(_find_problems(new))
    if problems:
        raise UsageError(f"Invalid check {new.slug!r}: " + "; ".join(problems))
    CHECKS[new.slug] = new
    # A check that was registered before may imply this one, and through it others.
    _implied_checks.clear()
    return new


def _find_problems(new: Check) -> Iterator[str]:
    if not _SLUG_PATTERN.fullmatch(new.slug):
        yield "the slug must be kebab-case"
    if new.slug in CHECKS:
        yield "another check has this slug"
    if f" {new.level} " not in f" {new.requirement} ":
        yield f"the requirement (first paragraph of the docstring) must contain {new.level!r}"
    if new.severity not in SEVERITIES:
        yield f"unknown severity {new.severity!r}{suggest_name(new.severity, SEVERITIES)}"
    if not new.why:
        yield "the docstring must say why"
    unknown = [kind for kind in new.needs if kind not in EVENTS]
    if unknown:
        yield f"unknown events in `needs`: {', '.join(unknown)}"
    statuses = {example.status for example in new.examples}
    if "pass" not in statuses:
        yield "the docstring has no journal on which it passes (Passes:)"
    if not statuses & {"fail", "warning"}:
        yield "the docstring has no journal on which it fails (Fails: or Warns:)"


def sort_checks(families: Sequence[ModuleType]) -> None:
    """Sort `CHECKS` by family modules.

    Raises:
        UsageError: A check implies an unknown one, or itself.
    """
    ranks = {family.__name__.rpartition(".")[2]: rank for rank, family in enumerate(families)}
    ordered = sorted(CHECKS.items(), key=lambda item: ranks[_name_of_module(item[1].function or item[1].group)])
    # In place, because other modules hold this very dict.
    CHECKS.clear()
    CHECKS.update(ordered)
    for slug, known in CHECKS.items():
        unknown = [implied for implied in known.implies if implied not in CHECKS]
        if unknown:
            raise UsageError(f"Invalid check {slug!r}: it implies unknown checks: {', '.join(unknown)}")
        if slug in implied_checks(slug):
            raise UsageError(f"Invalid check {slug!r}: it implies itself through {', '.join(known.implies)}")


def _name_of_module(function: Callable[..., Evaluations] | None) -> str:
    return function.__module__.rpartition(".")[2] if function is not None else ""


def find_check(slug: str) -> Check:
    """Return a check.

    Raises:
        UnknownName: No check has that slug.
    """
    if slug not in CHECKS:
        raise UnknownName("check", slug, CHECKS)
    return CHECKS[slug]


def implied_checks(slug: str) -> frozenset[str]:
    """Return the checks whose failures follow from a failure of this one, directly or through others."""
    if slug not in _implied_checks:
        implied: set[str] = set()
        waiting = [slug]
        while waiting:
            known = CHECKS.get(waiting.pop())
            fresh = [other for other in known.implies if other not in implied] if known is not None else []
            implied.update(fresh)
            waiting += fresh
        _implied_checks[slug] = frozenset(implied)
    return _implied_checks[slug]


def explain(slug: str) -> str:
    """Return the documentation of a check as text.

    Raises:
        UnknownName: No check has that slug.
    """
    known = find_check(slug)
    facts = [
        ("severity", known.severity),
        ("implies", ", ".join(known.implies)),
        ("needs", ", ".join(known.needs)),
        ("sources", ", ".join(known.sources)),
    ]
    lines = [f"{known.slug} ({known.level}, {known.family})", "", known.requirement, "", known.why, ""]
    lines += [f"{name}: {value}" for name, value in facts if value]
    for example in known.examples:
        caption = f", {example.caption}" if example.caption else ""
        verb = {"pass": "passes", "fail": "fails", "warning": "warns"}[example.status]
        lines += ["", f"{verb}{caption}:", *(f"    {line}" for line in example.lines.splitlines())]
    return "\n".join(lines) + "\n"

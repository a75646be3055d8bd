"""Command `check`: re-evaluate recorded journals."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.errors import JournalError, UsageError
from pytest_approvals.errors.printable import LINE_WIDTH, escape_value, shorten

if TYPE_CHECKING:
    from pytest_approvals.checks import Severity
    from pytest_approvals.journal.files import StoredJournal


def add_check_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("journals", nargs="*", metavar="JOURNAL", help="files with journals, or folders of them")
    parser.add_argument("--explain", metavar="SLUG", help="explain what a check requires and why, with examples")
    parser.add_argument("--strict", action="store_true", help="treat warnings (`should`) as failures")
    parser.add_argument(
        "--fail-on",
        metavar="SEVERITY",
        help="let failures of this severity or a graver one count for the exit code, and no others",
    )
    parser.add_argument("--all", action="store_true", help="show the verdict of every check")


def execute_check(args: argparse.Namespace) -> int:
    """Judge journals; return 1 if a requirement is broken, and 2 if a journal could not be read to its end."""
    from pytest_approvals.checks import explain, parse_severity
    from pytest_approvals.journal.files import read_journals
    from pytest_approvals.reporting.judged_run import load_extension_checks

    load_extension_checks()
    if args.explain:
        print(explain(args.explain), end="")
        return 0
    if not args.journals:
        raise UsageError("name the journals to judge, or a check to explain: --explain SLUG")
    try:
        fail_on = parse_severity(args.fail_on) if args.fail_on is not None else None
    except UsageError as error:
        raise UsageError(f"--fail-on: {error}") from None
    failed, count, damaged = False, 0, 0
    for path in _find_journals(args.journals):
        try:
            for stored in read_journals(path):
                failed |= _judge_journal(stored, strict=args.strict, fail_on=fail_on, everything=args.all)
                count += 1
        except JournalError as error:
            # The findings of the journals before it come first, also if both streams go to one file.
            sys.stdout.flush()
            print(f"pytest-approvals: {error}", file=sys.stderr)
            damaged += 1
    more = f"; {damaged} file{'' if damaged == 1 else 's'} could not be read to the end" if damaged else ""
    print(f"{count} journal{'' if count == 1 else 's'} judged{more}")
    return 2 if damaged else int(failed)


def _find_journals(words: list[str]) -> Iterator[Path]:
    for word in words:
        place = Path(word)
        files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
        if not files:
            raise UsageError(f"there are no journals in {word}: no *.jsonl")
        yield from files


def _judge_journal(stored: StoredJournal, *, strict: bool, fail_on: Severity | None, everything: bool) -> bool:
    """Print what a journal breaks, and return whether it breaks something."""
    from pytest_approvals.reporting.judged_run import judge_run
    from pytest_approvals.reporting.subject import Subject

    subject = Subject.of(stored.header, f"pytest-approvals check {stored.path}")
    result = judge_run(stored.events, subject, strict=strict, fail_on=fail_on)
    if everything:
        about = f"{subject.scenario} · {subject.agent_label} · {subject.mode}"
        print(f"{stored.path}:{stored.line}: {escape_value(shorten(about, LINE_WIDTH))}")
        print("\n".join(f"  {verdict.status:15} {verdict.check}" for verdict in result.verdicts))
    if not stored.complete:
        print(f"{stored.path}: its writer was cut off; what was written is judged")
    if result.findings:
        print(f"{result.render(result.findings)}\n")
    return bool(result.failing)

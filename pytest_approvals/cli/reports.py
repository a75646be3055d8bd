"""Commands about what runs left behind: `report` on report files, `check` on journals, `report-upstream` on causes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from pytest_approvals.reporting.report import Report
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_approvals.errors import JournalError
from pytest_approvals.errors.printable import LINE_WIDTH, escape_value, shorten

if TYPE_CHECKING:
    from pytest_approvals.checks import Severity
    from pytest_approvals.journal.files import StoredJournal


ACTIONS = {
    "show": "print the findings and the matrix",
    "merge": "make one report of several: of shards, agents or machines",
    "diff": "compare two reports: new failures, what is fixed, changed traits and transcripts",
    "html": "write a page",
    "md": "write Markdown",
    "junit": "write JUnit XML",
    "sarif": "write SARIF 2.1.0",
    "gitlab": "write a code quality report of GitLab",
    "stories": "write the stories that explorations found to a folder",
}

_FAILING = {"fail", "harness-error", "unknown", "stale", "absent"}
"""What fails a session."""


def add_report_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("action", metavar="ACTION", help="; ".join(f"{name}: {what}" for name, what in ACTIONS.items()))
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="reports in JSON lines, as --report writes")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to this file")
    parser.add_argument("--force", action="store_true", help="merge reports of different catalogues")


def execute_report(args: argparse.Namespace) -> int:
    """Do what the action says; return 1 if a report tells of a failure, is cut off, or lacks something."""
    if args.action not in ACTIONS:
        raise UnknownName("action", args.action, ACTIONS)
    if args.force and args.action != "merge":
        raise UsageError("--force is for `report merge`")
    match args.action:
        case "show":
            return _show(args)
        case "merge":
            return _merge(args)
        case "diff":
            return _compare(args)
        case "stories":
            return _write_stories(args)
        case form:
            return _convert(args, form)


def _show(args: argparse.Namespace) -> int:
    from pytest_approvals.reporting.files import read_report
    from pytest_approvals.reporting.findings import format_summary
    from pytest_approvals.reporting.matrix import format_matrix

    if args.output is not None:
        raise UsageError("-o is for the other actions")
    failed = False
    for number, path in enumerate(args.files):
        report = read_report(path)
        if number:
            print()
        if len(args.files) > 1:
            print(f"{path}\n")
        print(f"{format_summary(report)}\n\n{format_matrix(report)}")
        failed |= _has_failed(report)
    return int(failed)


def _merge(args: argparse.Namespace) -> int:
    from pytest_approvals.reporting.comparison import merge_named_reports
    from pytest_approvals.reporting.files import read_report, write_report
    from pytest_approvals.reporting.findings import format_counts

    if args.output is None:
        raise UsageError("report merge needs a file to write: -o FILE")
    if len(set(map(str, args.files))) < len(args.files):
        raise UsageError("a report is named twice")
    merged = merge_named_reports({str(path): read_report(path) for path in args.files}, force=args.force)
    for line in (*merged.notes, *merged.overlaps):
        print(line)
    for line in merged.lacks:
        print(f"lacking: {line}")
    write_report(args.output, merged.report)
    print(f"{args.output}: {format_counts(merged.report)}")
    return int(_has_failed(merged.report))


def _compare(args: argparse.Namespace) -> int:
    from pytest_approvals.reporting.comparison import compare_reports
    from pytest_approvals.reporting.files import read_report

    if len(args.files) != 2:
        raise UsageError(f"report diff compares two reports, not {len(args.files)}")
    before, after = map(read_report, args.files)
    difference = compare_reports(before, after)
    _write(args.output, f"{difference.render()}\n")
    return int(bool(difference.new) or not after.complete)


def _convert(args: argparse.Namespace, form: str) -> int:
    from pytest_approvals.reporting.ci_formats import render_junit, render_report_gitlab, render_report_sarif
    from pytest_approvals.reporting.files import read_report
    from pytest_approvals.reporting.html import render_html
    from pytest_approvals.reporting.markdown import render_markdown

    if len(args.files) != 1:
        raise UsageError(f"report {form} takes one report; make one of several by `report merge`")
    render = {
        "html": render_html,
        "md": render_markdown,
        "junit": render_junit,
        "sarif": render_report_sarif,
        "gitlab": render_report_gitlab,
    }[form]
    _write(args.output, render(read_report(args.files[0])))
    return 0


def _write_stories(args: argparse.Namespace) -> int:
    from pytest_approvals.reporting.files import read_report, write_text

    stories = {
        name: text for path in args.files for line in read_report(path).explored for name, text in line.found.items()
    }
    for name, text in sorted(stories.items()):
        path = (args.output or Path("explored")) / f"{name.rpartition('/')[2]}.approval.yaml"
        write_text(path, text)
        print(path)
    return 0


def _write(path: Path | None, text: str) -> None:
    from pytest_approvals.reporting.files import write_text

    if path is None:
        print(text, end="")
    else:
        write_text(path, text)


def _has_failed(report: Report) -> bool:
    return not report.complete or bool(_FAILING & report.footer().counts.keys())


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


def add_report_upstream_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("cause", metavar="CAUSE", help="the id of a cause: the name of its page in docs/findings")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to this file")


def execute_report_upstream(args: argparse.Namespace) -> int:
    """Print the issue about a cause for the tracker of its framework, or write it to a file."""
    from pytest_approvals.errors import FileError
    from pytest_approvals.reporting.upstream import format_upstream_issue, load_every_cause

    causes = load_every_cause()
    if args.cause not in causes:
        raise UnknownName("cause", args.cause, causes)
    text = format_upstream_issue(causes[args.cause])
    if args.output is None:
        print(text, end="")
        return 0
    try:
        args.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(str(args.output), None, f"cannot write file: {error.strerror}") from None
    print(f"{args.output} has the issue about {args.cause}")
    return 0

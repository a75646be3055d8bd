"""Commands on stored conversations: `lint` and `reproduce`."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.cli.output import print_command
from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.errors import HistoryError, UnknownName, UsageError
from pytest_approvals.errors.printable import LINE_WIDTH, shorten

if TYPE_CHECKING:
    from pytest_approvals.conversations.histories.conversation import StoredConversation
    from pytest_approvals.conversations.lint.linter import LintMessage
    from pytest_approvals.conversations.reproduce.reproducer import Reproduction
    from pytest_approvals.reporting.ci_formats import ServiceFinding

_LINES = ("text", "jsonl", "github")
"""The forms of findings that are written as they are found."""
_DOCUMENTS = ("sarif", "gitlab", "junit")
"""The forms that are one document, written at the end."""
_WATCH_SECONDS = 0.5
"""How often a folder is looked at."""


def add_lint_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    from pytest_approvals.conversations.histories.readers import FORMATS

    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="stored conversations: JSON, JSON lines, folders of them, `-` for stdin",
    )
    parser.add_argument(
        "--format", metavar="NAME", help=f"the format, where it is not recognised: {', '.join(FORMATS)}"
    )
    parser.add_argument(
        "--gated",
        metavar="NAME",
        action="append",
        default=[],
        help="a tool, or a pattern, whose calls need approval, perhaps with a condition: refund:amount>100",
    )
    parser.add_argument(
        "--redact", action="store_true", help="show made-up values in place of those of arguments, to share the output"
    )
    parser.add_argument("--output", choices=(*_LINES, *_DOCUMENTS), default="text", help="how findings are written")
    parser.add_argument(
        "--watch", metavar="FOLDER", help="look at what is in a folder, and at what arrives there, until Ctrl-C"
    )
    parser.add_argument("--rules", action="store_true", help="list the rules")


def execute_lint(args: argparse.Namespace) -> int:
    """Check each conversation; return 1 if something was found or could not be read."""
    from pytest_approvals.conversations.histories.readers import get_reader
    from pytest_approvals.conversations.lint.gates import Gate
    from pytest_approvals.conversations.lint.linter import FORMATTERS, Linter
    from pytest_approvals.conversations.made_up_values import MadeUpValues
    from pytest_approvals.errors import UsageError

    if args.rules:
        print(_list_rules(), end="")
        return 0
    for gate in args.gated:
        Gate.parse(gate)
    if args.watch is not None:
        return _watch(args)
    if not args.files:
        raise UsageError("name the stored conversations to look at: files, folders, or - for standard input")
    if args.format is not None:
        get_reader(args.format)
    looking = Linter(args.files, args.format, args.gated, MadeUpValues() if args.redact else None)
    if args.output in _DOCUMENTS:
        print(_render_document(list(looking), args.output), end="")
        return int(looking.mistakes > 0)
    write_line = print_command if args.output == "github" else print
    for message in looking:
        write_line(FORMATTERS[args.output](message))
    if args.output == "text":
        print(f"{_format_count(looking.conversations, 'conversation')}, {_format_count(looking.mistakes, 'finding')}")
    return int(looking.mistakes > 0)


def _watch(args: argparse.Namespace) -> int:
    """Write what is found in the files of a folder, and in those that arrive, until the user interrupts."""
    from pytest_approvals.conversations.lint.folder_watch import FolderWatch
    from pytest_approvals.conversations.lint.linter import FORMATTERS
    from pytest_approvals.conversations.made_up_values import MadeUpValues

    folder = Path(args.watch)
    if args.files or args.output in _DOCUMENTS:
        raise UsageError("--watch takes no files, and writes a line for each finding: text, jsonl or github")
    if not folder.is_dir():
        raise UsageError(f"--watch: there is no folder {args.watch}")
    watch = FolderWatch(str(folder), args.format, args.gated, MadeUpValues() if args.redact else None)
    write_line = print_command if args.output == "github" else print
    with suppress(KeyboardInterrupt):
        while True:
            for message in watch.look():
                write_line(FORMATTERS[args.output](message))
            sys.stdout.flush()
            time.sleep(_WATCH_SECONDS)
    return int(watch.mistakes > 0)


def _render_document(messages: list[LintMessage], form: str) -> str:
    from pytest_approvals.conversations.lint import RULES
    from pytest_approvals.reporting.ci_formats import render_findings_junit, render_gitlab, render_sarif

    findings = list(map(_to_service_finding, messages))
    match form:
        case "sarif":
            return render_sarif(findings, RULES)
        case "gitlab":
            return render_gitlab(findings)
        case _:
            return render_findings_junit(findings, "pytest-approvals lint")


def _to_service_finding(message: LintMessage) -> ServiceFinding:
    from pytest_approvals.conversations.histories.conversation import format_path
    from pytest_approvals.reporting.ci_formats import ServiceFinding

    return ServiceFinding(
        rule=message.rule,
        level="error" if message.is_mistake else "note",
        text=shorten(": ".join(part for part in (message.where, message.text) if part), LINE_WIDTH),
        file=message.file,
        line=message.line,
        subject=f"{message.conversation or ''} {format_path(message.path)}",
    )


def _list_rules() -> str:
    from pytest_approvals.conversations.lint import RULES

    width = max(map(len, RULES))
    return "".join(f"{slug:{width}}  {requirement}\n" for slug, requirement in RULES.items())


def _format_count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def add_reproduce_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="a stored conversation; - for standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the scenario to this file (default: print it)")
    parser.add_argument(
        "--agent",
        action="append",
        metavar="SPEC",
        help="agents to try it on; the first one on which a check fails counts (default: those that can run here)",
    )
    parser.add_argument(
        "--check",
        metavar="SLUG",
        action="append",
        default=[],
        help="a check that has to fail; may be repeated (default: what shows a symptom of the conversation)",
    )
    parser.add_argument(
        "--gated",
        action="append",
        default=[],
        metavar="TOOL",
        help="a tool whose calls needed approval, for formats that do not tell",
    )
    parser.add_argument(
        "--anonymize",
        "--anonymise",
        action="store_true",
        help="put made-up values in place of arguments and texts",
    )
    parser.add_argument(
        "--native", metavar="FILE", help="also write a script that uses the API of the failing agent's framework only"
    )
    parser.add_argument("--format", metavar="NAME", help="the format of the file (default: it is recognised)")
    parser.add_argument(
        "--conversation", type=int, default=1, metavar="NUMBER", help="which one, of a file with several (default: 1)"
    )
    parser.add_argument(
        "--most-trials", type=int, default=500, metavar="NUMBER", help="how often to try a smaller one (default: 500)"
    )
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="time limit of one run (default: 10)"
    )
    parser.add_argument(
        "--neighbours",
        type=int,
        default=200,
        metavar="NUMBER",
        help="how many stories near the conversation to try if it does not fail itself (default: 200)",
    )
    parser.add_argument(
        "--seconds", type=float, default=120.0, metavar="SECONDS", help="how long to try those (default: 120)"
    )


def execute_reproduce(args: argparse.Namespace) -> int:
    """Write the scenario; return 1 if nothing fails."""
    from pytest_approvals.agents.adapters import list_default_agents
    from pytest_approvals.checks import CHECKS
    from pytest_approvals.conversations.reproduce.anonymize import anonymize, hide_draft_secrets
    from pytest_approvals.conversations.reproduce.from_conversation import GENERATED_TEXTS, build_draft
    from pytest_approvals.conversations.reproduce.reproducer import Reproducer, find_symptoms
    from pytest_approvals.runner.run_context import RunLimits

    for slug in args.check:
        if slug not in CHECKS:
            raise UnknownName("check", slug, CHECKS)
    for option, number in (("--time-limit", args.time_limit), ("--seconds", args.seconds)):
        if number <= 0:
            raise UsageError(f"{option}: Invalid number {number:g}: too small")
    if args.neighbours < 0:
        raise UsageError(f"--neighbours: Invalid number {args.neighbours}: too small")
    conversation = _read_conversation(args)
    draft = build_draft(conversation, args.gated)
    questions = 2 * len(list(draft.replies()))
    limit = RunLimits(seconds=args.time_limit, model_calls=max(questions, RunLimits().model_calls))
    reproducer = Reproducer(
        args.agent or list_default_agents(),
        limit=limit,
        most_trials=args.most_trials,
        report_progress=_print_progress,
        most_neighbours=args.neighbours,
        neighbour_seconds=args.seconds,
    )
    symptoms = find_symptoms(conversation, args.gated if conversation.shows_decisions else ())
    for symptom in symptoms:
        _print_progress(f"symptom: {symptom}")
    origin = f"Made from a stored conversation ({conversation.format})."
    reproduction = reproducer.reproduce(
        anonymize(draft, GENERATED_TEXTS, conversation.values()) if args.anonymize else hide_draft_secrets(draft),
        origin,
        args.check,
        symptoms,
    )
    _write_reproduction(reproduction, args.output)
    if args.native is not None:
        write_native_script(reproduction, args.native)
    return int(reproduction.failing_check is None)


def _read_conversation(args: argparse.Namespace) -> StoredConversation:
    from pytest_approvals.conversations.histories.files import SkippedFile, read_conversations

    number = 0
    for stored in read_conversations([args.file], format_name=args.format):
        if isinstance(stored, HistoryError):
            raise stored
        if not isinstance(stored, SkippedFile):
            number += 1
            if number == args.conversation:
                return stored.conversation
    raise UsageError(f"--conversation: {args.file} holds {number}, so there is no number {args.conversation}")


def _write_reproduction(found: Reproduction, output: str | None) -> None:
    if found.failing_check is None:
        summary = "no check fails" if not output else f"no check fails; {output} tells the whole conversation"
    else:
        summary = f"the smallest of {found.trials + 1} scenarios on which it does"
    _print_progress(summary)
    nearest = f"; the nearest that was: {found.failing_check.check}" if found.failing_check is not None else ""
    for symptom in found.missing:
        _print_progress(f"not reproduced: {symptom}{nearest}")
    if output is None:
        sys.stdout.write(found.text)
        return
    _write_file(output, found.text)
    _print_progress(f"scenario: {output}")


def write_native_script(found: Reproduction, output: str) -> None:
    """Write a script for the first failing agent that scripts can be written for, or say why there is none."""
    from pytest_approvals.agents.spec import AgentSpec
    from pytest_approvals.scenario import native_scripts
    from pytest_approvals.scenario.load import parse_scenario

    if found.failing_check is None:
        _print_progress("no native script: nothing fails that it could show")
        return
    scenario = parse_scenario(found.text, name="reproduced/conversation", path="reproduced/conversation.approval.yaml")
    reasons = []
    for agent in found.failing:
        try:
            script = native_scripts.write_native_script(scenario, AgentSpec.parse(agent))
        except (UnknownName, UsageError) as error:
            reasons.append(str(error))
            continue
        _write_file(output, script)
        _print_progress(f"native script: {output}; run it with `{native_scripts.format_command(script, output)}`")
        return
    _print_progress(f"no native script: {'; '.join(reasons)}")


def _write_file(output: str, text: str) -> None:
    path = Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

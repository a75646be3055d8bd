"""Commands on stored conversations: `lint` and `reproduce`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.cli.output import print_command
from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.errors import HistoryError, UnknownName, UsageError

if TYPE_CHECKING:
    from pytest_approvals.conversations.histories.conversation import StoredConversation
    from pytest_approvals.conversations.reproduce.reproducer import Reproduction


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
        "--gated", metavar="NAME", action="append", default=[], help="a tool, or a pattern, whose calls need approval"
    )
    parser.add_argument(
        "--output", choices=("text", "jsonl", "github"), default="text", help="how findings are written"
    )
    parser.add_argument("--rules", action="store_true", help="list the rules")


def execute_lint(args: argparse.Namespace) -> int:
    """Check each conversation; return 1 if something was found or could not be read."""
    from pytest_approvals.conversations.histories.readers import get_reader
    from pytest_approvals.conversations.lint.linter import FORMATTERS, Linter
    from pytest_approvals.errors import UsageError

    if args.rules:
        print(_list_rules(), end="")
        return 0
    if not args.files:
        raise UsageError("name the stored conversations to look at: files, folders, or - for standard input")
    if args.format is not None:
        get_reader(args.format)
    looking = Linter(args.files, args.format, args.gated)
    write_line = print_command if args.output == "github" else print
    for message in looking:
        write_line(FORMATTERS[args.output](message))
    if args.output == "text":
        print(f"{_format_count(looking.conversations, 'conversation')}, {_format_count(looking.mistakes, 'finding')}")
    return int(looking.mistakes > 0)


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
    parser.add_argument("--check", metavar="SLUG", help="the check that has to fail (default: the first one that does)")
    parser.add_argument(
        "--gated",
        action="append",
        default=[],
        metavar="TOOL",
        help="a tool whose calls needed approval, for formats that do not tell",
    )
    parser.add_argument("--anonymise", action="store_true", help="put made-up values in place of arguments and texts")
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


def execute_reproduce(args: argparse.Namespace) -> int:
    """Write the scenario; return 1 if nothing fails."""
    from pytest_approvals.agents.adapters import list_default_agents
    from pytest_approvals.checks import CHECKS
    from pytest_approvals.conversations.reproduce.anonymize import anonymize
    from pytest_approvals.conversations.reproduce.from_conversation import GENERATED_TEXTS, build_draft
    from pytest_approvals.conversations.reproduce.reproducer import Reproducer
    from pytest_approvals.runner.run_context import RunLimits

    if args.check is not None and args.check not in CHECKS:
        raise UnknownName("check", args.check, CHECKS)
    if args.time_limit <= 0:
        raise UsageError(f"--time-limit: Invalid number {args.time_limit:g}: too small")
    conversation = _read_conversation(args)
    draft = build_draft(conversation, args.gated)
    questions = 2 * len(list(draft.replies()))
    limit = RunLimits(seconds=args.time_limit, model_calls=max(questions, RunLimits().model_calls))
    reproducer = Reproducer(
        args.agent or list_default_agents(), limit=limit, most_trials=args.most_trials, report_progress=_print_progress
    )
    origin = f"Made from a stored conversation ({conversation.format})."
    reproduction = reproducer.reproduce(
        anonymize(draft, GENERATED_TEXTS) if args.anonymise else draft, origin, args.check
    )
    _write_reproduction(reproduction, args.output)
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
    if output is None:
        sys.stdout.write(found.text)
        return
    path = Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(found.text, encoding="utf-8")


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

"""`pytest-approvals reproduce`: a small scenario that fails as a stored conversation does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.cli.parser import Parser
from pytest_approvals.errors import HistoryError, UnknownName, UsageError

if TYPE_CHECKING:
    from pytest_approvals.histories.conversation import Conversation
    from pytest_approvals.reproduce.reproduction import Reproduction


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
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


def execute(args: argparse.Namespace) -> int:
    """Writes the scenario; gives 1 where nothing fails."""
    from pytest_approvals.agents import default_agents
    from pytest_approvals.checks import CHECKS
    from pytest_approvals.harness.play import Limit
    from pytest_approvals.reproduce.anonymous import anonymous
    from pytest_approvals.reproduce.reproduction import Reproducer
    from pytest_approvals.reproduce.stored import OURS, draft_of

    if args.check is not None and args.check not in CHECKS:
        raise UnknownName("check", args.check, CHECKS)
    if args.time_limit <= 0:
        raise UsageError(f"--time-limit: {args.time_limit:g} is too small")
    conversation = _conversation(args)
    draft = draft_of(conversation, args.gated)
    questions = 2 * len(list(draft.replies()))
    limit = Limit(seconds=args.time_limit, model_calls=max(questions, Limit().model_calls))
    reproducer = Reproducer(args.agent or default_agents(), limit=limit, most=args.most_trials, tell=_tell)
    origin = f"Made from a stored conversation ({conversation.format})."
    found = reproducer.reproduce(anonymous(draft, OURS) if args.anonymise else draft, origin, args.check)
    _write(found, args.output)
    return int(found.witness is None)


def _conversation(args: argparse.Namespace) -> Conversation:
    from pytest_approvals.histories.files import Skipped, stored_conversations

    number = 0
    for found in stored_conversations([args.file], form=args.format):
        if isinstance(found, HistoryError):
            raise found
        if not isinstance(found, Skipped):
            number += 1
            if number == args.conversation:
                return found.conversation
    raise UsageError(f"--conversation: {args.file} holds {number}, so there is no number {args.conversation}")


def _write(found: Reproduction, output: str | None) -> None:
    if found.witness is None:
        what = "no check fails" if not output else f"no check fails; {output} tells the whole conversation"
    else:
        what = f"the smallest of {found.trials + 1} scenarios on which it does"
    _tell(what)
    if output is None:
        sys.stdout.write(found.text)
        return
    path = Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(found.text, encoding="utf-8")


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

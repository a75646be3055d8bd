"""`pytest-approvals lint`: what is wrong with approvals in stored conversations."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_approvals.cli.parser import Parser

if TYPE_CHECKING:
    from pytest_approvals.errors import HistoryError
    from pytest_approvals.histories.files import Skipped, Stored
    from pytest_approvals.lint.output import Told


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    from pytest_approvals.histories.formats import FORMATS

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


def execute(args: argparse.Namespace) -> int:
    """Looks at each conversation; gives 1 where something was found, or could not be read."""
    from pytest_approvals.errors import UsageError
    from pytest_approvals.histories.files import stored_conversations
    from pytest_approvals.histories.formats import reader_named
    from pytest_approvals.lint.output import OUTPUTS

    if args.rules:
        print(_rules(), end="")
        return 0
    if not args.files:
        raise UsageError("name the stored conversations to look at: files, folders, or - for standard input")
    if args.format is not None:
        reader_named(args.format)
    write, count, mistakes = OUTPUTS[args.output], 0, 0
    for stored in stored_conversations(args.files, form=args.format):
        count += _is_conversation(stored)
        for told in _told(stored, args.gated):
            mistakes += told.is_mistake
            print(write(told))
    if args.output == "text":
        print(f"{_counted(count, 'conversation')}, {_counted(mistakes, 'finding')}")
    return int(mistakes > 0)


def _is_conversation(stored: Stored | HistoryError | Skipped) -> bool:
    return hasattr(stored, "conversation")


def _told(stored: Stored | HistoryError | Skipped, gated: list[str]) -> Iterator[Told]:
    """Tells all about one conversation, or why there is none."""
    from pytest_approvals.errors import HistoryError
    from pytest_approvals.histories.files import Skipped
    from pytest_approvals.histories.parsing import TOO_DEEP
    from pytest_approvals.lint import lint
    from pytest_approvals.lint.output import told_finding, told_mistake, told_skip

    if isinstance(stored, HistoryError):
        yield told_mistake(stored)
    elif isinstance(stored, Skipped):
        yield told_skip(stored)
    else:
        try:
            findings = lint(stored.conversation, gated)
        except RecursionError:
            yield told_mistake(HistoryError(TOO_DEEP, file=stored.file, line=stored.line))
            return
        yield from (told_finding(finding, stored) for finding in findings)


def _rules() -> str:
    from pytest_approvals.lint import RULES

    width = max(map(len, RULES))
    return "".join(f"{slug:{width}}  {what}\n" for slug, what in RULES.items())


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"

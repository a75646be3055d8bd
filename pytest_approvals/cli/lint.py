"""`pytest-approvals lint`: what is wrong with approvals in stored conversations."""

from __future__ import annotations

import argparse

from pytest_approvals.cli.parser import Parser


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
    from pytest_approvals.histories.formats import reader_named
    from pytest_approvals.lint.looking import Looking
    from pytest_approvals.lint.output import OUTPUTS

    if args.rules:
        print(_rules(), end="")
        return 0
    if not args.files:
        raise UsageError("name the stored conversations to look at: files, folders, or - for standard input")
    if args.format is not None:
        reader_named(args.format)
    looking = Looking(args.files, args.format, args.gated)
    for told in looking:
        print(OUTPUTS[args.output](told))
    if args.output == "text":
        print(f"{_counted(looking.conversations, 'conversation')}, {_counted(looking.mistakes, 'finding')}")
    return int(looking.mistakes > 0)


def _rules() -> str:
    from pytest_approvals.lint import RULES

    width = max(map(len, RULES))
    return "".join(f"{slug:{width}}  {what}\n" for slug, what in RULES.items())


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"

"""Command `recall`: measure how many known bugs the catalogue detects."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from pytest_approvals.devtools.known_bugs.search import SearchResult
    from pytest_approvals.devtools.known_bugs.table import KnownBug


def add_recall_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("table", metavar="TABLE.yaml", help="known bugs, with a bad and a good release each")
    parser.add_argument("--only", nargs="+", action="extend", metavar="ID", help="only the rows with these ids")
    parser.add_argument("--shard", metavar="I/N", help="only the I-th of N parts of the rows")
    parser.add_argument("--report", metavar="FILE", help="write what was found, as JSON lines, to this file")
    parser.add_argument("--fresh-runs", action="store_true", help="play every run again, also a remembered one")
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="time limit of one run (default: 10)"
    )


def execute_recall(args: argparse.Namespace) -> int:
    """Search for the bug of each row; return 1 if one was missed."""
    if find_spec("pytest_approvals.devtools") is None:
        raise UsageError("recall needs a checkout of pytest-approvals: the wheel has no pytest_approvals.devtools")
    from pytest_approvals.campaigns.agent_runs import CampaignMemory
    from pytest_approvals.checks import CHECKS
    from pytest_approvals.devtools.known_bugs.search import KnownBugSearch
    from pytest_approvals.devtools.known_bugs.table import load_known_bugs
    from pytest_approvals.scenario.catalogue import stock_folder
    from pytest_approvals.scenario.load import load_catalogue

    if args.time_limit <= 0:
        raise UsageError(f"--time-limit: Invalid number {args.time_limit:g}: too small")
    rows = _select_rows(load_known_bugs(Path(args.table), CHECKS), args.only)
    if args.shard is not None:
        rows = _select_shard(rows, args.shard)
    catalogue = {scenario.id: scenario for scenario in load_catalogue([stock_folder()])}
    memory = CampaignMemory.of_user(is_fresh=args.fresh_runs)
    hunt = KnownBugSearch(catalogue, args.time_limit, memory)
    answers = []
    for row in rows:
        answers.append(hunt.search(row))
        print(answers[-1], flush=True)
    if memory is not None and (told := memory.close()):
        print(told)
    count = sum(answer.found for answer in answers)
    print(f"recall: {count} of {len(answers)}")
    if args.report:
        _write_results(Path(args.report), answers)
    return int(count < len(answers))


def _select_rows(rows: Sequence[KnownBug], only: Iterable[str] | None) -> list[KnownBug]:
    if only is None:
        return list(rows)
    known = {row.id: row for row in rows}
    for name in only:
        if name not in known:
            raise UnknownName("row", name, known)
    return [row for row in rows if row.id in set(only)]


def _select_shard(rows: Sequence[KnownBug], shard: str) -> list[KnownBug]:
    """Return every N-th row, because rows about the same framework are next to each other."""
    from pytest_approvals.plugin.settings import parse_shard

    try:
        number, count = parse_shard(shard)
    except UsageError as error:
        raise UsageError(f"--shard: {error}") from None
    return list(rows[number - 1 :: count])


def _write_results(path: Path, answers: Sequence[SearchResult]) -> None:
    from pytest_approvals.reporting.files import write_text
    from pytest_approvals.reporting.report import dump_json

    lines: list[dict[str, Any]] = [_result_line(answer) for answer in answers]
    count = sum(answer.found for answer in answers)
    lines.append({"event": "footer", "found": count, "rows": len(answers)})
    write_text(path, "".join(f"{dump_json(line)}\n" for line in lines))


def _result_line(answer: SearchResult) -> dict[str, Any]:
    row = answer.row
    return {
        "event": "recall",
        "id": row.id,
        "title": row.title,
        "bad": str(row.bad),
        "good": None if row.good is None else str(row.good),
        "found": answer.found,
        "checks": list(answer.checks),
        "agent": answer.agent,
        "scenario": answer.scenario,
        "variant": answer.variant,
        "why": answer.why,
        "runs": answer.runs,
    }

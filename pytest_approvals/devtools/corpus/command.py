"""Command that captures and reproduces the cases of the corpus, and writes the page about them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_approvals.campaigns.agent_runs import CampaignMemory
from pytest_approvals.checks import CHECKS
from pytest_approvals.devtools.corpus.capture import Capture, StoredCase
from pytest_approvals.devtools.corpus.cases import FOLDER, Case, evaluate, load_cases, save_case
from pytest_approvals.devtools.known_bugs import KnownBug, load_known_bugs
from pytest_approvals.errors import ApprovalsError, UnknownName
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.scenario.model import Scenario

TABLE = Path("docs/known-bugs.yaml")
PAGE = Path("docs/corpus.md")


def main(arguments: Sequence[str] | None = None) -> int:
    """Capture what is missing, reproduce what was not, and write the page; return 1 if something is left."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.corpus.command")
    parser.add_argument("--only", nargs="+", action="extend", metavar="ID", help="only the rows with these ids")
    parser.add_argument("--capture", action="store_true", help="play bad releases whose rows have no case yet")
    parser.add_argument("--fresh", action="store_true", help="reproduce cases anew that were reproduced before")
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="the I-th of N disjoint parts of the rows")
    args = parser.parse_args(arguments)
    try:
        return _execute(args)
    except ApprovalsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


def _execute(args: argparse.Namespace) -> int:
    rows = load_known_bugs(TABLE, CHECKS)
    known = {row.id: row for row in rows}
    for name in args.only or ():
        if name not in known:
            raise UnknownName("row", name, known)
    if not args.page:
        part, parts = map(int, args.shard.split("/"))
        chosen = [row for row in rows if not args.only or row.id in args.only][part - 1 :: parts]
        catalogue = {scenario.id: scenario for scenario in load_catalogue([stock_folder()])}
        for row in chosen:
            _renew(row, catalogue, args)
    cases = load_cases()
    PAGE.write_text(format_page(rows, cases), encoding="utf-8")
    return int(any(not case.check for case in cases.values()))


def _renew(row: KnownBug, catalogue: Mapping[str, Scenario], args: argparse.Namespace) -> None:
    case = load_cases().get(row.id)
    if case is None and args.capture:
        captured = Capture(catalogue, CampaignMemory.of_user()).capture(row)
        if isinstance(captured, str):
            print(f"{row.id}: {captured}", flush=True)
            return
        case = add_case(captured)
    if case is None or (not args.fresh and (case.check or case.why)):
        return
    began = time.monotonic()
    case = evaluate(case, catalogue, FOLDER, lambda text: print(f"  {text}", flush=True))
    save_case(case)
    print(f"{row.id}: {case.check or case.why} ({time.monotonic() - began:.0f} s)", flush=True)


def add_case(captured: StoredCase, folder: Path = FOLDER) -> Case:
    """Keep what was captured, and return its case."""
    case = Case(
        row=captured.row,
        bad=captured.agent,
        bad_with=captured.requirements,
        good=captured.good,
        good_with=captured.good_requirements,
        scenario=captured.scenario,
        variant=captured.variant,
        checks=captured.checks,
        file=f"{captured.row}{captured.suffix}",
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / case.file).write_text(captured.text, encoding="utf-8")
    save_case(case, folder)
    return case


def format_page(rows: Sequence[KnownBug], cases: Mapping[str, Case]) -> str:
    """Return the text of `docs/corpus.md`."""
    kept = [cases[row.id] for row in rows if row.id in cases]
    reproduced = [case for case in kept if case.check]
    same = [case for case in reproduced if case.is_same]
    near = [case for case in reproduced if case.is_neighbour]
    compared = [case for case in reproduced if case.good]
    lines = [
        "# Reproduced conversations",
        "",
        "Each case is a conversation that a release of a framework with a [known bug](known-bugs.md) stored at",
        "the end of a run in which the bug showed. From that file alone, and the names of gated tools if it does not",
        "show them, [`reproduce`](reproducing.md) made a scenario that fails on that release, and neither on the",
        "release without the bug nor on the reference agent. The checks by which the bug is known were named with",
        "`--check`.",
        "",
        f"Of {len(rows)} known bugs {len(kept)} left something that is stored. {len(reproduced)} of them are",
        f"reproduced, {len(compared)} of those against a good release; {len(same)} fail a check by which the bug is",
        f"known, the others another one. In {len(near)} cases it is a neighbour of the conversation that fails, since",
        "the file does not show what a client did.",
        "",
        "In a checkout, `python -m pytest_approvals.devtools.corpus.command` reproduces what was not reproduced yet,",
        "and writes this page; with `--capture` it plays the bad releases of rows without a case. The files are in",
        "`tests/conversations/corpus`.",
        "",
        "| known bug | stored by | format | lint finds | reproduced as |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| `{case.row}` | `{case.bad}` | {_format_case(case)} |" for case in kept]
    lacking = [row.id for row in rows if row.id not in cases]
    if lacking:
        lines += ["", "No run of the catalogue that stores a readable conversation shows these:", ""]
        lines += [f"- `{name}`" for name in lacking]
    return "\n".join(lines) + "\n"


def _format_case(case: Case) -> str:
    findings = ", ".join(f"`{rule}`" for rule in dict.fromkeys(case.findings)) or "nothing"
    if not case.check:
        return f"{case.format or 'not read'} | {findings} | not reproduced"
    how = f"[`{case.check}`](checks.md#{case.check})"
    how += "" if case.is_same else ", another check"
    how += ", on a neighbour" if case.is_neighbour else ""
    return f"`{case.format}` | {findings} | {how}"


if __name__ == "__main__":
    raise SystemExit(main())

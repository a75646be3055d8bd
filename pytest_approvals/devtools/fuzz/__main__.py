"""Entry point of `python -m pytest_approvals.devtools.fuzz`: exit code 1 after a crash.

python -m pytest_approvals.devtools.fuzz --inputs 100000 --seed 1 --reader journal report -o crashes
python -m pytest_approvals.devtools.fuzz --reader journal --rerun crashes/journal-17.input
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Sequence
from pathlib import Path

from pytest_approvals.devtools.fuzz import CURRENT_INPUT, Tally, crash_file, fuzz_readers, rerun
from pytest_approvals.devtools.fuzz.readers import READERS

_COMMAND = "python -m pytest_approvals.devtools.fuzz"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz readers and print what came of it; return 1 if there was a crash."""
    args = _parse_arguments(arguments)
    if args.rerun is not None:
        if len(args.reader) != 1:
            raise SystemExit("--rerun needs the one reader that the input is for: --reader NAME")
        print("accepted" if rerun(READERS[args.reader[0]], _read_saved(args.rerun)) else "refused")
        return 0
    args.output.mkdir(parents=True, exist_ok=True)
    readers = {name: READERS[name] for name in args.reader or READERS}
    # What is loaded by now stays, so that the garbage collector need not look at it again.
    gc.freeze()
    total = Tally(reader="all")
    width = max(map(len, READERS))
    print(
        f"{'reader':{width}} {'inputs':>8} {'accepted':>9} {'refused':>8} {'crashes':>8} {'CPU s':>7} {'inputs/s':>9}"
    )
    for tally in fuzz_readers(readers, args.inputs, args.seed, args.output):
        print(format_tally(tally, width), flush=True)
        total.accepted += tally.accepted
        total.refused += tally.refused
        total.crashed += tally.crashed
        total.seconds += tally.seconds
        total.crashes += tally.crashes
    print(format_tally(total, width))
    for crash in total.crashes:
        print(f"\n{crash.reader} input {crash.number}: {crash.what}")
        print(f"  {_COMMAND} --reader {crash.reader} --rerun {crash_file(crash, args.output)}")
    return int(total.crashed > 0)


def format_tally(tally: Tally, width: int) -> str:
    """Return a line of the table."""
    rate = tally.inputs / tally.seconds if tally.seconds else 0
    numbers = f"{tally.inputs:8} {tally.accepted:9} {tally.refused:8} {tally.crashed:8}"
    return f"{tally.reader:{width}} {numbers} {tally.seconds:7.1f} {rate:9.0f}"


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=_COMMAND, description="Let readers read mutated files and messages.")
    parser.add_argument(
        "--inputs", type=int, default=10_000, metavar="N", help="how many, of all readers (default: 10000)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="what all inputs derive from (default: 1)")
    parser.add_argument(
        "--reader",
        nargs="+",
        action="extend",
        default=[],
        choices=sorted(READERS),
        metavar="NAME",
        help=f"only these: {', '.join(READERS)}",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("fuzz-crashes"),
        metavar="FOLDER",
        help=f"where inputs of crashes are saved; one that ends the process stays there in {CURRENT_INPUT}PID.input",
    )
    parser.add_argument("--rerun", type=Path, metavar="FILE", help="read one saved input again")
    return parser.parse_args(arguments)


def _read_saved(path: Path) -> bytes:
    data = path.read_bytes()
    if not path.name.startswith(CURRENT_INPUT):
        return data
    return data[8 : 8 + int.from_bytes(data[:8], "big")]


if __name__ == "__main__":
    raise SystemExit(main())

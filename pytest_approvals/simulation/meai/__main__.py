"""`python -m pytest_approvals.simulation.meai < case.json > outcome.json`: play one case.

Exit code 0 with an outcome, even if the client failed as .NET does; 2 for an unusable case. Oddities of the messages
are written to standard error, one per line.
"""

from __future__ import annotations

import sys
from typing import BinaryIO, TextIO

from pytest_approvals.errors import ContentError
from pytest_approvals.errors.printable import escape_value
from pytest_approvals.simulation.meai.cases import read_case, run_case
from pytest_approvals.simulation.meai.json_messages import read_json, write_json


def main(source: BinaryIO, out: BinaryIO, log: TextIO) -> int:
    """Play the case in *source*; write errors and notes to *log*."""
    try:
        case = read_case(read_json(source.read()))
        outcome = write_json(run_case(case)) + "\n"
    except ContentError as error:
        log.write(f"meai: {escape_value(str(error))}\n")
        return 2
    log.writelines(f"meai: note: {escape_value(str(note))}\n" for note in case.notes)
    out.write(outcome.encode("utf-8"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.stdin.buffer, sys.stdout.buffer, sys.stderr))

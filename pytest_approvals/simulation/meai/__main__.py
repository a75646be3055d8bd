"""
`python -m pytest_approvals.simulation.meai < case.json > outcome.json`: plays one case.

Exit code 0 with an outcome, also where the client failed as .NET does; 2 where the case cannot be used. What is odd
about the messages stands on standard error, a line each.
"""

from __future__ import annotations

import sys
from typing import BinaryIO, TextIO

from pytest_approvals.errors import ContentError
from pytest_approvals.reporting.printable import escape_control_characters
from pytest_approvals.simulation.meai.cases import read_case, run_case
from pytest_approvals.simulation.meai.json_text import read_json, write_json


def main(given: BinaryIO, out: BinaryIO, complaints: TextIO) -> int:
    """Plays the case in *given*; says what is wrong with it on *complaints*."""
    try:
        case = read_case(read_json(given.read()))
        outcome = write_json(run_case(case)) + "\n"
    except ContentError as error:
        complaints.write(f"meai: {escape_control_characters(str(error))}\n")
        return 2
    complaints.writelines(f"meai: note: {escape_control_characters(str(note))}\n" for note in case.notes)
    out.write(outcome.encode("utf-8"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.stdin.buffer, sys.stdout.buffer, sys.stderr))

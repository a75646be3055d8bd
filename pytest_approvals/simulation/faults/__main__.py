"""
`python -m pytest_approvals.simulation.faults`, in a checkout: runs every fault until it is caught, records where, and
writes `docs/faults.md` anew.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_approvals.catalogues import stock_folder
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.scenario.parts import Scenario

from . import FAULTS, Fault
from .kill import RECORDED, Kill, first_kill, is_caught_again, recorded_killers, written_killers
from .table import faults_page


def main() -> int:
    """Writes both files; fails where a fault is not caught."""
    scenarios = load_catalogue([stock_folder()])
    known = recorded_killers() if RECORDED.exists() else {}
    found = {name: _caught(fault, known.get(name), scenarios) for name, fault in FAULTS.items()}
    for name, kill in found.items():
        if kill is None:
            sys.stderr.write(f"{name} is not caught by {FAULTS[name].caught_by}\n")
    RECORDED.write_text(written_killers({name: kill for name, kill in found.items() if kill}), encoding="utf-8")
    Path("docs/faults.md").write_text(faults_page(), encoding="utf-8")
    return 1 if None in found.values() else 0


def _caught(fault: type[Fault], known: Kill | None, scenarios: Sequence[Scenario]) -> Kill | None:
    if known is not None and is_caught_again(fault, known, scenarios):
        return known
    return first_kill(fault, scenarios)


if __name__ == "__main__":
    raise SystemExit(main())

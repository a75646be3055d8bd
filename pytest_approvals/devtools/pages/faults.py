"""The page of faults, `docs/faults.md`.

`python -m pytest_approvals.simulation.faults`, in a checkout: runs every fault until it is caught, records where, and
writes `docs/faults.md` anew.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_approvals.devtools.fault_detection import (
    DETECTIONS_FILE,
    Detection,
    find_first_detection,
    format_detections,
    is_detected_again,
    load_detections,
)
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.simulation.faults import FAMILIES, FAULTS, Fault

_NUMBERED = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)#(?P<number>\d+)")

_INTRODUCTION = """\
# Seeded faults

The reference agent passes the whole catalogue. Each fault below gives it one defect, modelled on public reports, and
the check beside it must catch that defect in the stock catalogue. A test proves it for every one of them; the last
column says where the check catches it first. `python -m pytest_approvals.simulation.faults` writes this page anew.

To run the catalogue on a fault, one of these or one of your own (a class derived from
`pytest_approvals.simulation.faults.Fault`, whose docstring says how):

    pytest-approvals run --agent reference --fault RejectedCallRuns
    pytest-approvals run --agent reference --fault MODULE:NAME

What guards the run itself is shown by broken input instead: `journal-well-formed` by broken journals,
`scenario-exercised` by a story that does not reach what it claims.
"""


def format_faults_page() -> str:
    """Gives `docs/faults.md`."""
    killers = load_detections()
    return "\n".join([_INTRODUCTION, *_format_families(killers)])


def describe_defect(fault: type[Fault]) -> str:
    """Gives the defect of a fault: the first line of its docstring."""
    return (inspect.getdoc(fault) or "").partition("\n")[0]


def _format_families(killers: Mapping[str, Detection]) -> Iterator[str]:
    for family, faults in FAMILIES.items():
        yield f"## {family.capitalize()}\n"
        yield "| fault | defect | caught by | modelled on | first in |"
        yield "|---|---|---|---|---|"
        for name, fault in faults.items():
            sources = ", ".join(map(_format_link, fault.source))
            where = _format_place(killers[name]) if name in killers else ""
            yield f"| `{name}` | {describe_defect(fault)} | `{fault.caught_by}` | {sources} | {where} |"
        yield ""


def _format_place(kill: Detection) -> str:
    return f"`{kill.scenario}` {kill.variant}"


def _format_link(source: str) -> str:
    match = _NUMBERED.fullmatch(source)
    return f"[{source}](https://github.com/{match['repository']}/issues/{match['number']})" if match else source


def main() -> int:
    """Writes both files; fails where a fault is not caught."""
    scenarios = load_catalogue([stock_folder()])
    known = load_detections() if DETECTIONS_FILE.exists() else {}
    found = {name: _detect(fault, known.get(name), scenarios) for name, fault in FAULTS.items()}
    for name, kill in found.items():
        if kill is None:
            sys.stderr.write(f"{name} is not caught by {FAULTS[name].caught_by}\n")
    DETECTIONS_FILE.write_text(
        format_detections({name: kill for name, kill in found.items() if kill}), encoding="utf-8"
    )
    Path("docs/faults.md").write_text(format_faults_page(), encoding="utf-8")
    return 1 if None in found.values() else 0


def _detect(fault: type[Fault], known: Detection | None, scenarios: Sequence[Scenario]) -> Detection | None:
    if known is not None and is_detected_again(fault, known, scenarios):
        return known
    return find_first_detection(fault, scenarios)


if __name__ == "__main__":
    raise SystemExit(main())

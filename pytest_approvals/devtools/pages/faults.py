"""Page `docs/faults.md`: the seeded faults, and where each is caught first.

`python -m pytest_approvals.devtools.pages.faults`, in a checkout, runs every fault until it is caught, records where,
and writes the page.
"""

from __future__ import annotations

import argparse
import inspect
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
from pytest_approvals.devtools.pages import format_source
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.simulation.faults import FAMILIES, FAULTS, Fault

_INTRODUCTION = """\
# Seeded faults

The reference agent passes the whole catalogue. Each fault below gives it one defect, modelled on public reports, and
the named check must catch that defect in the built-in catalogue. A test proves it for every fault; the last column
names the run in which the check catches it first. `python -m pytest_approvals.devtools.pages.faults` regenerates this
page in a checkout.

To run the catalogue on a fault, one of these or one of your own (a subclass of
`pytest_approvals.simulation.faults.Fault`; see its docstring):

    pytest-approvals run --agent reference --fault RejectedCallRuns
    pytest-approvals run --agent reference --fault MODULE:NAME

Two checks guard the run itself and have no fault: tests show `journal-well-formed` with invalid journals, and
`scenario-exercised` with a scenario that does not reach what it claims.
"""


def format_faults_page() -> str:
    """Return the text of `docs/faults.md`."""
    return "\n".join([_INTRODUCTION, *_format_families(load_detections())])


def describe_defect(fault: type[Fault]) -> str:
    """Return the defect of a fault: the first line of its docstring."""
    return (inspect.getdoc(fault) or "").partition("\n")[0]


def _format_families(detections: Mapping[str, Detection]) -> Iterator[str]:
    for family, faults in FAMILIES.items():
        yield f"## {family.capitalize()}\n"
        yield "| fault | defect | caught by | modelled on | first in |"
        yield "|---|---|---|---|---|"
        for name, fault in faults.items():
            sources = ", ".join(map(format_source, fault.source))
            run = _format_run(detections[name]) if name in detections else ""
            yield f"| `{name}` | {describe_defect(fault)} | `{fault.caught_by}` | {sources} | {run} |"
        yield ""


def _format_run(detection: Detection) -> str:
    return f"`{detection.scenario}` {detection.variant}"


def main() -> int:
    """Write the record and the page; return 1 if a fault is not caught."""
    argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.pages.faults").parse_args()
    scenarios = load_catalogue([stock_folder()])
    known = load_detections() if DETECTIONS_FILE.exists() else {}
    detections = {name: _detect(fault, known.get(name), scenarios) for name, fault in FAULTS.items()}
    for name, detection in detections.items():
        if detection is None:
            sys.stderr.write(f"{name} is not caught by {FAULTS[name].caught_by}\n")
    caught = {name: detection for name, detection in detections.items() if detection is not None}
    DETECTIONS_FILE.write_text(format_detections(caught), encoding="utf-8")
    Path("docs/faults.md").write_text(format_faults_page(), encoding="utf-8")
    return 1 if None in detections.values() else 0


def _detect(fault: type[Fault], known: Detection | None, scenarios: Sequence[Scenario]) -> Detection | None:
    if known is not None and is_detected_again(fault, known, scenarios):
        return known
    return find_first_detection(fault, scenarios)


if __name__ == "__main__":
    raise SystemExit(main())

"""The page of faults, `docs/faults.md`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping

from . import FAMILIES, Fault
from .kill import Kill, recorded_killers

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


def faults_page() -> str:
    """Gives `docs/faults.md`."""
    killers = recorded_killers()
    return "\n".join([_INTRODUCTION, *_families(killers)])


def defect(fault: type[Fault]) -> str:
    """Gives the defect of a fault: the first line of its docstring."""
    return (inspect.getdoc(fault) or "").partition("\n")[0]


def _families(killers: Mapping[str, Kill]) -> Iterator[str]:
    for family, faults in FAMILIES.items():
        yield f"## {family.capitalize()}\n"
        yield "| fault | defect | caught by | modelled on | first in |"
        yield "|---|---|---|---|---|"
        for name, fault in faults.items():
            sources = ", ".join(map(_linked, fault.source))
            where = _where(killers[name]) if name in killers else ""
            yield f"| `{name}` | {defect(fault)} | `{fault.caught_by}` | {sources} | {where} |"
        yield ""


def _where(kill: Kill) -> str:
    return f"`{kill.scenario}` {kill.variant}"


def _linked(source: str) -> str:
    match = _NUMBERED.fullmatch(source)
    return f"[{source}](https://github.com/{match['repository']}/issues/{match['number']})" if match else source

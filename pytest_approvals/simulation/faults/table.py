"""
The table of faults in `docs/faults.md`; `python -m pytest_approvals.simulation.faults.table` writes it anew to the
standard output.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from pytest_approvals.simulation.faults import FAMILIES, Fault

_NUMBERED = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)#(?P<number>\d+)")

_INTRODUCTION = """\
# Seeded faults

The reference agent passes the whole catalogue. Each fault below gives it one defect, modelled on public reports, and
the check beside it must catch that defect in the stock catalogue; a test proves it for every one of them.

To run the catalogue on one of them, or on a fault of your own (a class derived from
`pytest_approvals.simulation.faults.Fault`):

    pytest-approvals run --agent reference --fault RejectedCallRuns
    pytest-approvals run --agent reference --fault MODULE:NAME
"""


def faults_page() -> str:
    """Gives `docs/faults.md`."""
    return "\n".join([_INTRODUCTION, *_families()])


def defect(fault: type[Fault]) -> str:
    """Gives the defect of a fault: the first line of its docstring."""
    return (inspect.getdoc(fault) or "").partition("\n")[0]


def _families() -> Iterator[str]:
    for family, faults in FAMILIES.items():
        yield f"## {family.capitalize()}\n"
        yield "| fault | defect | caught by | modelled on |"
        yield "|---|---|---|---|"
        for name, fault in faults.items():
            sources = ", ".join(map(_linked, fault.source))
            yield f"| `{name}` | {defect(fault)} | `{fault.caught_by}` | {sources} |"
        yield ""


def _linked(source: str) -> str:
    match = _NUMBERED.fullmatch(source)
    return f"[{source}](https://github.com/{match['repository']}/issues/{match['number']})" if match else source


if __name__ == "__main__":
    print(faults_page(), end="")

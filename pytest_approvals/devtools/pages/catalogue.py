"""Page `docs/catalogue.md`: every scenario in a line, by family.

`python -m pytest_approvals.devtools.pages.catalogue > docs/catalogue.md`, in a checkout, writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from pytest_approvals.devtools.pages import format_source
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.requirements import required_by_content

CATALOGUE_FAMILIES = {
    "basics": "Plain stories: a call needs approval, is decided, is executed or not, and the model is told.",
    "parallel": "Several calls in one reply, decided together, separately, or in another order.",
    "streaming": "Requests that surface in a stream, however it is chunked, and streams that break.",
    "decisions": "Decisions of a caller, also repeated, contradictory, malformed and forged ones.",
    "identity": "Ids that are repeated, missing, or shared by sessions.",
    "timing": "Concurrent turns and calls.",
    "hangups": "Callers who disconnect: turns that are cancelled while a call runs or the model is asked.",
    "state": "What lies between request and decision: stores, processes, older saves, other messages, changed tools.",
    "failures": "Models and tools that fail, arguments that do not fit, limits that are reached.",
    "nested": "Agents that tools run, and their requests.",
    "handoffs": "Conversations that one agent hands over to another.",
    "answers": "Structured answers, next to gated calls and after them.",
    "policies": "Approval that depends on arguments, and requests in the middle of a tool.",
    "upgrades": "Paused runs that an older release saved and a newer one resumes.",
    "mixed": "Functions, tools of connected servers, and calls that the provider executes.",
}
"""Families of the catalogue, each with the subject of its scenarios."""

_INTRODUCTION = """\
# The catalogue

{count} scenarios, each one story about an agent whose tool calls need approval.
[Writing scenarios](writing-scenarios.md) describes their language, and `pytest-approvals show FAMILY/NAME` shows a
scenario with its variants. An agent that does not claim what a scenario needs does not run it. The last column names
public reports that the scenario models.
"""


def format_catalogue_page(scenarios: Iterable[Scenario]) -> str:
    """Return the page of *scenarios*, in the order of their ids."""
    known = list(scenarios)
    parts = [_INTRODUCTION.format(count=len(known))]
    for family, about in CATALOGUE_FAMILIES.items():
        parts.append(f"## {family.capitalize()}\n\n{about}\n\n" + "\n".join(_format_table(family, known)) + "\n")
    return "\n".join(parts)


def _format_table(family: str, scenarios: Iterable[Scenario]) -> Iterator[str]:
    yield "| scenario | story | needs | reports |"
    yield "|---|---|---|---|"
    for scenario in scenarios:
        if scenario.family == family:
            yield f"| {' | '.join(_format_cells(scenario))} |"


def _format_cells(scenario: Scenario) -> Iterator[str]:
    name = scenario.id.partition("/")[2]
    yield f"[{name}](../scenarios/{scenario.id}.approval.yaml)"
    yield scenario.title
    yield ", ".join(f"`{capability}`" for capability in sorted(required_by_content(scenario)))
    yield ", ".join(map(format_source, scenario.sources))


def main() -> None:
    """Print the page of the built-in catalogue."""
    from pytest_approvals.scenario.catalogue import stock_folder
    from pytest_approvals.scenario.load import load_catalogue

    sys.stdout.write(format_catalogue_page(load_catalogue([stock_folder()])))


if __name__ == "__main__":
    main()

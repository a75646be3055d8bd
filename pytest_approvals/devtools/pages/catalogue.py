"""
The page of the catalogue, `docs/catalogue.md`: every scenario in a line, by family.

`python -m pytest_approvals.devtools.pages.catalogue > docs/catalogue.md`, in a checkout, writes it anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.requirements import required_by_content

CATALOGUE_FAMILIES = {
    "basics": "The plain stories: a call is asked about, decided, run or not, and told.",
    "parallel": "Several calls in one reply, decided together, apart, or in another order.",
    "streaming": "Requests that surface in a stream, however it is cut, and streams that break.",
    "decisions": "What a caller can decide, and how it can get that wrong: repeated, contradictory, malformed, forged.",
    "identity": "Ids that come twice, are missing, or are shared by sessions.",
    "timing": "What happens at the same time.",
    "hangups": "Callers who hang up: turns that are cancelled while a call runs or the model is asked.",
    "state": "What lies between question and answer: stores, processes, older saves, other messages, other tools.",
    "failures": "Models and tools that fail, arguments that do not fit, limits that are reached.",
    "nested": "Agents that tools run, and their requests.",
    "handoffs": "Conversations that one agent hands over to another.",
    "answers": "Structured answers, beside gated calls and after them.",
    "policies": "Approval that depends on arguments, and questions in the middle of a tool.",
    "upgrades": "Paused runs that an older release saved and a newer one takes up.",
    "mixed": "Functions, tools of connected servers, and calls that the provider runs.",
}
"""The families of the catalogue, and what their stories are about."""

_INTRODUCTION = """\
# The catalogue

{count} scenarios, each one story about an agent whose tool calls need approval.
[Writing scenarios](writing-scenarios.md) tells their language, and `pytest-approvals show FAMILY/NAME` one of them with
its variants. An agent that does not claim what a scenario needs does not run it. The last column names public reports
that the story stands for.
"""

_ISSUE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)#(?P<number>\d+)")


def format_catalogue_page(scenarios: Iterable[Scenario]) -> str:
    """Gives the page about *scenarios*, in the order of their ids."""
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
    yield ", ".join(map(_format_link, scenario.sources))


def _format_link(source: str) -> str:
    found = _ISSUE.fullmatch(source)
    return f"[{source}](https://github.com/{found['repository']}/issues/{found['number']})" if found else source


def main() -> None:
    """Prints the page about the stock catalogue."""
    from pytest_approvals.scenario.catalogue import stock_folder
    from pytest_approvals.scenario.load import load_catalogue

    sys.stdout.write(format_catalogue_page(load_catalogue([stock_folder()])))


if __name__ == "__main__":
    main()

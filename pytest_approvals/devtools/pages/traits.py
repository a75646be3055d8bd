"""Traits of agents on the page `docs/agents.md`: the list between the two markers in the section of each agent.

`python -m pytest_approvals.devtools.pages.traits NAME…`, in a checkout, runs a part of the catalogue on these agents
and writes their lists. An agent whose framework is not installed here runs in an environment with the pinned release.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue

FAMILIES = ("basics", "parallel", "decisions")
"""The families that are run: they show most traits, and take seconds."""

TIME_LIMIT = 5.0
"""Seconds for one run."""

_BEGIN = "<!-- traits: python -m pytest_approvals.devtools.pages.traits {name} -->"
_END = "<!-- end of traits -->"


def observe_agent(name: str) -> dict[str, tuple[str, ...]]:
    """Run the families on an agent, and return the traits that it shows."""
    catalogue = {scenario.id: scenario for scenario in load_catalogue([stock_folder()]) if scenario.family in FAMILIES}
    return AgentRuns(AgentRelease(spec=AgentSpec.parse(name)), catalogue, TIME_LIMIT).traits()


def format_traits(name: str, traits: Mapping[str, Sequence[str]]) -> str:
    """Return the list of an agent with its markers.

    >>> print(format_traits("mine", {"raising-tool": ("fail", "model")}))
    <!-- traits: python -m pytest_approvals.devtools.pages.traits mine -->
    [Traits](checks.md#traits) in `basics`, `parallel` and `decisions`:
    <BLANKLINE>
    - raising-tool: fail, model
    <!-- end of traits -->
    """
    *most, last = (f"`{family}`" for family in FAMILIES)
    heading = f"[Traits](checks.md#traits) in {', '.join(most)} and {last}:"
    rows = [f"- {trait}: {', '.join(values)}" for trait, values in traits.items()]
    return "\n".join([_BEGIN.format(name=name), heading, "", *rows, _END])


def insert_traits(page: str, name: str, text: str) -> str:
    """Return the page with the list of an agent replaced, or added at the end of its section."""
    block = re.compile(re.escape(_BEGIN.format(name=name)) + ".*?" + re.escape(_END), re.DOTALL)
    if block.search(page):
        return block.sub(lambda _: text, page)
    before, heading, rest = page.partition(f"## {name}\n")
    section, following, others = rest.partition("\n## ")
    return f"{before}{heading}{section.rstrip()}\n\n{text}\n{following}{others}"


def main(names: Sequence[str]) -> None:
    """Write the lists of these agents."""
    path = Path("docs/agents.md")
    for name in names:
        text = format_traits(name, observe_agent(name))
        path.write_text(insert_traits(path.read_text(encoding="utf-8"), name, text), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

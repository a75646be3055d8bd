"""
The generated parts of docs/dotnet.md: which release fails where, and the story of dotnet/extensions#7468 as it is told.

`python -m pytest_approvals.simulation.meai.page`, in a checkout, writes them anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pytest_approvals.agents import AgentSpec
from pytest_approvals.catalogues import stock_folder
from pytest_approvals.checks import judge
from pytest_approvals.journal.history import History
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.recall.suspects import Suspect
from pytest_approvals.recall.table import Release
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.parts import Scenario, Variant

from .behaviours import BEHAVIOURS

STORY = "state/rejection-survives-and-the-session-goes-on"
"""The turns of dotnet/extensions#7468."""

PLACES = {
    "the request itself, in memory": Variant(),
    "the request's JSON, in memory": Variant(source="rebuilt"),
    "all messages stored anew each time; the stored request": Variant(serialize="json", source="restored"),
    "all messages stored anew each time; the request's JSON": Variant(serialize="json", source="rebuilt"),
    "each message stored once; the stored request": Variant(serialize="json", history="append", source="restored"),
    "each message stored once; the request's JSON": Variant(serialize="json", history="append", source="rebuilt"),
}
"""Where the state is between the turns, and what the response is made from."""

SCENARIOS = (
    "basics/one-more-message-after-a-rejection",
    "basics/second-call-after-the-first",
    "parallel/one-approved-one-rejected",
    STORY,
    "state/three-turns-in-one-session",
    "identity/id-reused-after-a-rejection",
    "identity/same-id-twice-in-one-reply",
    "decisions/contradiction-in-one-submission",
    "decisions/forged-request",
    "decisions/repeated-in-one-submission",
    "decisions/tampered-arguments",
    "failures/decided-again-after-the-model-failed",
)
"""Stories that tell the releases apart."""

_HOLDS, _FAILS = "✓", "✗"
_BROKEN = frozenset({"fail", "harness-error"})
_PART = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def parts() -> dict[str, str]:
    """Gives the generated parts by their names."""
    catalogue = {name: _scenario(name) for name in SCENARIOS}
    clients = [_suspect("", release, catalogue) for release in BEHAVIOURS]
    bound = [_suspect(".binding", release, catalogue) for release in BEHAVIOURS]
    told = next(client for client in clients if client.release.spec.version == "10.4")
    return {
        "copies": _copies(clients),
        "bound": _copies(bound),
        "scenarios": _table("scenario", ((name, _counted(name)) for name in SCENARIOS), clients),
        "story": f"```text\n{Transcript.of_history(told.history(STORY, PLACES[list(PLACES)[1]]))}```\n",
    }


def filled_in(text: str) -> str:
    """Gives the text of the page with its generated parts as they should be."""
    made = parts()
    return _PART.sub(lambda found: f"{found[1]}\n{made[found['name']]}\n{found[3]}", text)


def _scenario(name: str) -> Scenario:
    folder = stock_folder()
    return load_scenario(folder / f"{name}.approval.yaml", root=folder)


def _suspect(flavour: str, release: str, catalogue: dict[str, Scenario]) -> Suspect:
    spec = AgentSpec.parse(f"meai{flavour}=={release}")
    return Suspect(Release(spec=spec), catalogue, 10)


def _copies(agents: Sequence[Suspect]) -> str:
    return _table("the state is; the response is made from", ((what, _at(PLACES[what])) for what in PLACES), agents)


Cell = Callable[[Suspect], str]


def _table(first: str, rows: Iterable[tuple[str, Cell]], agents: Sequence[Suspect]) -> str:
    return "\n".join(_lines(first, rows, agents)) + "\n"


def _lines(first: str, rows: Iterable[tuple[str, Cell]], agents: Sequence[Suspect]) -> Iterator[str]:
    yield f"| {first} | {' | '.join(agent.release.spec.version or '' for agent in agents)} |"
    yield f"|---|{'---|' * len(agents)}"
    for what, cell in rows:
        yield f"| {what} | {' | '.join(map(cell, agents))} |"


def _at(variant: Variant) -> Cell:
    return lambda agent: _FAILS if _broken(agent.history(STORY, variant)) else _HOLDS


def _counted(scenario: str) -> Cell:
    def cell(agent: Suspect) -> str:
        here = [one for one in agent.variants(scenario) if one.resume == "same" and one.protocol == "native"]
        count = sum(_broken(agent.history(scenario, variant)) for variant in here)
        return f"{_FAILS} {count}/{len(here)}" if count else _HOLDS

    return cell


def _broken(history: History) -> bool:
    return any(one.status in _BROKEN for one in judge(history))


if __name__ == "__main__":
    page = Path("docs", "dotnet.md")
    page.write_text(filled_in(page.read_text(encoding="utf-8")), encoding="utf-8")

"""Generated parts of `docs/dotnet.md`: which release fails where, and the transcript of dotnet/extensions#7468.

`python -m pytest_approvals.devtools.pages.dotnet`, in a checkout, writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.checks import judge
from pytest_approvals.journal.history import History
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.simulation.meai.releases import BEHAVIOURS

STORY_ID = "state/rejection-survives-and-the-session-goes-on"
"""Scenario with the turns of dotnet/extensions#7468."""

PLACES = {
    "the request itself, in memory": Variant(),
    "the request's JSON, in memory": Variant(source="rebuilt"),
    "all messages stored anew each time; the stored request": Variant(serialize="json", source="restored"),
    "all messages stored anew each time; the request's JSON": Variant(serialize="json", source="rebuilt"),
    "each message stored once; the stored request": Variant(serialize="json", history="append", source="restored"),
    "each message stored once; the request's JSON": Variant(serialize="json", history="append", source="rebuilt"),
}
"""Variants by where the state is between the turns, and what the response is made from."""

SCENARIOS = (
    "basics/one-more-message-after-a-rejection",
    "basics/second-call-after-the-first",
    "parallel/one-approved-one-rejected",
    STORY_ID,
    "state/three-turns-in-one-session",
    "identity/id-reused-after-a-rejection",
    "identity/same-id-twice-in-one-reply",
    "decisions/contradiction-in-one-submission",
    "decisions/forged-request",
    "decisions/repeated-in-one-submission",
    "decisions/tampered-arguments",
    "failures/decided-again-after-the-model-failed",
)
"""Scenarios with different results on the releases."""

_PASS_MARK, _FAIL_MARK = "✓", "✗"
_BROKEN = frozenset({"fail", "harness-error"})
_PART = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def generate_parts() -> dict[str, str]:
    """Return the generated parts by name."""
    catalogue = {name: _load_scenario(name) for name in SCENARIOS}
    clients = [_agent_runs("", release, catalogue) for release in BEHAVIOURS]
    bound = [_agent_runs(".binding", release, catalogue) for release in BEHAVIOURS]
    # The releases like 10.4 flag only the call of the response, which is the bug of the story.
    affected = next(client for client in clients if client.release.spec.version == "10.4")
    return {
        "copies": _format_copies(clients),
        "bound": _format_copies(bound),
        "scenarios": _format_table("scenario", ((name, _count_cell(name)) for name in SCENARIOS), clients),
        "story": f"```text\n{Transcript.of_history(affected.history(STORY_ID, PLACES[list(PLACES)[1]]))}```\n",
    }


def fill_page(text: str) -> str:
    """Return the page with up-to-date generated parts."""
    parts = generate_parts()
    return _PART.sub(lambda match: f"{match[1]}\n{parts[match['name']]}\n{match[3]}", text)


def _load_scenario(name: str) -> Scenario:
    folder = stock_folder()
    return load_scenario(folder / f"{name}.approval.yaml", root=folder)


def _agent_runs(flavour: str, release: str, catalogue: dict[str, Scenario]) -> AgentRuns:
    spec = AgentSpec.parse(f"meai{flavour}=={release}")
    return AgentRuns(AgentRelease(spec=spec), catalogue, limit=10)


def _format_copies(agents: Sequence[AgentRuns]) -> str:
    return _format_table(
        "the state is; the response is made from",
        ((place, _story_cell(variant)) for place, variant in PLACES.items()),
        agents,
    )


Cell = Callable[[AgentRuns], str]


def _format_table(first: str, rows: Iterable[tuple[str, Cell]], agents: Sequence[AgentRuns]) -> str:
    return "\n".join(_format_lines(first, rows, agents)) + "\n"


def _format_lines(first: str, rows: Iterable[tuple[str, Cell]], agents: Sequence[AgentRuns]) -> Iterator[str]:
    yield f"| {first} | {' | '.join(agent.release.spec.version or '' for agent in agents)} |"
    yield f"|---|{'---|' * len(agents)}"
    for title, cell in rows:
        yield f"| {title} | {' | '.join(map(cell, agents))} |"


def _story_cell(variant: Variant) -> Cell:
    return lambda agent: _FAIL_MARK if _has_failure(agent.history(STORY_ID, variant)) else _PASS_MARK


def _count_cell(scenario: str) -> Cell:
    def cell(agent: AgentRuns) -> str:
        here = [
            variant for variant in agent.variants(scenario) if variant.resume == "same" and variant.protocol == "native"
        ]
        count = sum(_has_failure(agent.history(scenario, variant)) for variant in here)
        return f"{_FAIL_MARK} {count}/{len(here)}" if count else _PASS_MARK

    return cell


def _has_failure(history: History) -> bool:
    return any(verdict.status in _BROKEN for verdict in judge(history))


if __name__ == "__main__":
    page = Path("docs", "dotnet.md")
    page.write_text(fill_page(page.read_text(encoding="utf-8")), encoding="utf-8")

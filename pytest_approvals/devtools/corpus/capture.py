"""Capture: a run on a bad release in which a known bug shows, and what the framework had stored at its end."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pytest_approvals.campaigns.agent_runs import AgentRuns, CampaignMemory
from pytest_approvals.devtools.known_bugs import KnownBug
from pytest_approvals.devtools.known_bugs.search import find_citing, flavour_pairs
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import LetOracleStep, SaveStep, Scenario, TurnStep, Variant

MAX_SCENARIOS = 400
"""How many runs are tried for one row and flavour."""

_STORES = ("json", "native.sqlite")
_SQLITE_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCase:
    """What a bad release stored in a run that shows a known bug.

    Attributes:
        row: The id of the known bug.
        agent, requirements: The bad release, and further requirements of its environment.
        good, good_requirements: A release without the bug; empty if none is known.
        scenario, variant: The run.
        checks: The checks of the row that failed in it.
        suffix: That of the file: `.json`, or `.sql` for the dump of a database.
        text: The text of the file.
    """

    row: str
    agent: str
    requirements: tuple[str, ...]
    good: str
    good_requirements: tuple[str, ...]
    scenario: str
    variant: str
    checks: tuple[str, ...]
    suffix: str
    text: str


class Capture:
    """Captures what bad releases stored.

    Args:
        catalogue: The scenarios, by id.
        memory: The journals of earlier campaigns.
        limit: The limits of one run.
    """

    def __init__(self, catalogue: Mapping[str, Scenario], memory: CampaignMemory | None, limit: float = 10.0) -> None:
        self._catalogue = catalogue
        self._memory = memory
        self._limit = limit

    def capture(self, row: KnownBug) -> StoredCase | str:
        """Return what was stored in the first run that shows the bug of a row, or why there is nothing."""
        why = "no run of the catalogue that stores something shows it"
        for bad_release, good_release in flavour_pairs(row):
            bad = AgentRuns(bad_release, self._catalogue, self._limit, self._memory)
            good = None
            if good_release is not None:
                good = AgentRuns(good_release, self._catalogue, self._limit, self._memory)
            for runs in (bad, good):
                if runs is not None and runs.unavailable:
                    why = runs.unavailable
                    break
            else:
                for name, variant, checks in self._find_runs(row, bad, good):
                    stored = self._store(bad, name, variant)
                    if stored is not None:
                        suffix, text = stored
                        return StoredCase(
                            row=row.id,
                            agent=str(bad_release.spec),
                            requirements=bad_release.requirements,
                            good="" if good_release is None else str(good_release.spec),
                            good_requirements=() if good_release is None else good_release.requirements,
                            scenario=name,
                            variant=variant.id,
                            checks=checks,
                            suffix=suffix,
                            text=text,
                        )
        return why

    def _find_runs(
        self, row: KnownBug, bad: AgentRuns, good: AgentRuns | None
    ) -> Iterator[tuple[str, Variant, tuple[str, ...]]]:
        """Yield the runs with something stored in which a check of the row fails, and not on the good release."""
        citing = find_citing(self._catalogue, row)
        others = [name for name in self._catalogue if name not in citing]
        plan = [(name, variant) for name in citing for variant in _stored_variants(bad.variants(name))]
        ranks = zip_longest(*(_stored_variants(bad.variants(name))[:2] for name in others))
        plan += [
            (name, variant) for rank in ranks for name, variant in zip(others, rank, strict=True) if variant is not None
        ]
        for name, variant in plan[:MAX_SCENARIOS]:
            symptoms = {each for each in bad.symptoms(name, variant) if each.check in row.checks}
            if symptoms and good is not None:
                if variant not in good.variants(name) or good.why_unplayed(name, variant) is not None:
                    continue
                symptoms -= good.symptoms(name, variant)
            if symptoms:
                found = {each.check for each in symptoms}
                yield name, variant, tuple(slug for slug in row.checks if slug in found)

    def _store(self, bad: AgentRuns, name: str, variant: Variant) -> tuple[str, str] | None:
        """Play a run again, and return the suffix and the text of what the framework stored."""
        loop = get_session_loop()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            limit = RunLimits(seconds=self._limit)
            scenario = self._catalogue[name]
            # What the last turn left is saved by a step of its own only.
            played = scenario.caller or (TurnStep(text=scenario.prompt), LetOracleStep())
            scenario = replace(scenario, caller=(*played, SaveStep(name="end")), reaches={})
            run = loop.run(run_scenario(scenario, variant, bad.source, limit=limit, store_folder=Path(folder)))
            return read_store(bad.release.spec.name, run.saved, Path(folder))


def _stored_variants(variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants that leave something readable, the plainest first."""
    return [
        variant
        for variant in variants
        if variant.serialize in _STORES and variant.history == "whole" and not variant.saved_by
    ]


def read_store(agent: str, saved: Mapping[str, tuple[str, ...]], folder: Path) -> tuple[str, str] | None:
    """Return the suffix and the text of what a framework stored, without what the adapter adds to it."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.read_bytes()[: len(_SQLITE_MAGIC)] == _SQLITE_MAGIC:
            return ".sql", dump_database(path)
    documents = [parts[-1] for parts in saved.values()]
    extract = _EXTRACTS.get(agent)
    if not documents or extract is None:
        return None
    found = [extract(json.loads(text)) for text in documents]
    held = [document for document in found if document]
    if not held:
        return None
    texts = [json.dumps(document, ensure_ascii=False, sort_keys=False) for document in held]
    # Several sessions are several conversations: one on each line.
    return (".json", _pretty(held[0])) if len(held) == 1 else (".jsonl", "".join(f"{text}\n" for text in texts))


def _pretty(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def dump_database(path: Path) -> str:
    """Return a database as SQL, which a repository can compare."""
    with closing(sqlite3.connect(path)) as connection:
        return "".join(f"{line}\n" for line in connection.iterdump())


def _extract_pydantic_ai(state: Any) -> Any:
    messages = state.get("messages") if isinstance(state, dict) else state
    return json.loads(messages) if isinstance(messages, str) else messages


def _extract_openai_agents(state: Any) -> Any:
    """Return the state of the newest run, else the items that the application keeps."""
    runs = state.get("runs") or ()
    return runs[-1] if runs else state.get("items") or state.get("history")


def _extract_openai_agents_js(state: Any) -> Any:
    return state.get("state") or state.get("history")


def _extract_strands(state: Any) -> Any:
    return state


def _extract_autogen(state: Any) -> Any:
    return state.get("state")


def _extract_agno(state: Any) -> Any:
    return state.get("runs")


_EXTRACTS: dict[str, Callable[[Any], Any]] = {
    "pydantic_ai": _extract_pydantic_ai,
    "openai_agents": _extract_openai_agents,
    "openai_agents_js": _extract_openai_agents_js,
    "agent_framework": lambda state: state,
    "google_adk": lambda state: state,
    "ai_sdk": lambda state: state,
    "strands": _extract_strands,
    "autogen": _extract_autogen,
    "agno": _extract_agno,
}

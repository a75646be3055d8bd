"""Stored states: paused sessions that older releases saved, next to the scenarios in which they paused.

The files are `FAMILY/__states__/AGENT/VERSION/MODE/NAME.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from pytest_approvals.scenario.model import Scenario

STATES_FOLDER = "__states__"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """A stored state.

    Attributes:
        path: Its file.
        version: Release that saved it.
        serialize: Serialize mode that it was saved in: `json` or `native.NAME`.
    """

    path: Path
    version: str
    serialize: str


def stored_state_path(scenario: Scenario, agent: str, version: str, serialize: str) -> Path | None:
    """Return the path of a state; None for a scenario that was not loaded from a file."""
    if scenario.path is None:
        return None
    name = scenario.id.rpartition("/")[2]
    return Path(scenario.path).parent / STATES_FOLDER / agent / version / serialize / f"{name}.json"


def list_stored_states(scenario: Scenario, agent: str) -> tuple[StoredState, ...]:
    """Return the states that releases of *agent* saved in *scenario*, the oldest release first."""
    return tuple(sorted(_find_states(scenario, agent), key=lambda state: (Version(state.version), state.serialize)))


def _find_states(scenario: Scenario, agent: str) -> Iterator[StoredState]:
    if scenario.path is None:
        return
    name = scenario.id.rpartition("/")[2]
    for path in (Path(scenario.path).parent / STATES_FOLDER / agent).glob(f"*/*/{name}.json"):
        version, serialize = path.parts[-3:-1]
        if _is_version(version):
            yield StoredState(path=path, version=version, serialize=serialize)


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True

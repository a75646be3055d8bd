"""
Tables of known bugs: a YAML list of rows.

    - id: none-decision-executes-tool
      title: A decision of None runs the tool that it is about
      source: pydantic/pydantic-ai#8060
      bad: {agent: pydantic_ai==2.41.0}
      good: {agent: pydantic_ai==2.42.0}      # null: no release is known to be without it
      checks: [invalid-decision-refused]      # a failure of one of these counts as having found it

An agent may have `with` (a list of requirements) and `python` beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_approvals.agents import AgentSpec, adapter_of
from pytest_approvals.errors import ApprovalsError, TableError, UnknownName
from pytest_approvals.registries import registry_named

_KEYS = ("id", "title", "source", "bad", "good", "checks")
_NEEDED = ("id", "title", "source", "bad", "checks")
_AGENT_KEYS = ("agent", "with", "python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """
    An agent in the release that a row names.

    Attributes:
        requirements: What its environment has besides.
        python: The Python of its environment; empty: the one that runs this.
    """

    spec: AgentSpec
    requirements: tuple[str, ...] = ()
    python: str = ""

    def __str__(self) -> str:
        besides = (*self.requirements, *((f"Python {self.python}",) if self.python else ()))
        return f"{self.spec} with {', '.join(besides)}" if besides else str(self.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    A known bug.

    Attributes:
        sources: Where it was reported.
        bad: A release that has it.
        good: One that has not; None where there is none.
        checks: The slugs whose failure counts as having found it.
    """

    id: str
    title: str
    sources: tuple[str, ...]
    bad: Release
    good: Release | None
    checks: tuple[str, ...]


def load_table(path: Path, checks: Collection[str]) -> tuple[Row, ...]:
    """
    Reads a table.

    Arguments:
        checks: The slugs of all checks.

    Errors:
        TableError: The file cannot be read, or has a mistake; file and line are named.
    """
    from pytest_approvals.scenario.mistakes import Mistake
    from pytest_approvals.scenario.nodes import read

    try:
        document = read(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TableError(str(path), None, f"it cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise TableError(str(path), None, "it is not UTF-8 text") from None
    except Mistake as mistake:
        raise TableError(str(path), mistake.line, mistake.what) from None
    if not isinstance(document.value, list):
        raise TableError(str(path), 1, "a table is a list of rows")
    places = [_Place(str(path), (str(at),), document.lines) for at in range(len(document.value))]
    rows = tuple(_row(entry, place, checks) for entry, place in zip(document.value, places, strict=True))
    first: dict[str, int] = {}
    for row, place in zip(rows, places, strict=True):
        if row.id in first:
            raise place.error(f"line {first[row.id]} has a row with the id {row.id!r}, too", "id")
        first[row.id] = place.line("id")
    return rows


@dataclass(frozen=True, slots=True)
class _Place:
    """Where something stands, for errors."""

    file: str
    path: tuple[str, ...]
    lines: Mapping[str, int]

    def below(self, key: str) -> _Place:
        return _Place(self.file, (*self.path, key), self.lines)

    def line(self, *keys: str) -> int:
        path = [*self.path, *keys]
        while ".".join(path) not in self.lines:
            path.pop()
        return self.lines[".".join(path)]

    def error(self, what: str, *keys: str) -> TableError:
        return TableError(self.file, self.line(*keys), what)


def _row(entry: Any, place: _Place, checks: Collection[str]) -> Row:
    _mapping(entry, place, "a row", _KEYS, _NEEDED)
    sources = entry["source"] if isinstance(entry["source"], list) else [entry["source"]]
    return Row(
        id=_text(entry["id"], place, "id"),
        title=_text(entry["title"], place, "title"),
        sources=tuple(_text(one, place, "source") for one in sources),
        bad=_release(entry["bad"], place.below("bad")),
        good=None if entry.get("good") is None else _release(entry["good"], place.below("good")),
        checks=_checks(entry["checks"], place, checks),
    )


def _release(entry: Any, place: _Place) -> Release:
    _mapping(entry, place, "an agent of a row", _AGENT_KEYS, ("agent",))
    requirements = _texts(entry.get("with", []), place, "with")
    python = entry.get("python") or ""
    if isinstance(python, float):  # YAML takes 3.10 for a number
        python = "3.10" if python == 3.1 else str(python)
    try:
        spec = AgentSpec.parse(_text(entry["agent"], place, "agent"))
        for text in requirements:
            registry_named(adapter_of(spec).registry).read(text)
    except ApprovalsError as error:
        raise place.error(str(error), "agent") from None
    return Release(spec=spec, requirements=requirements, python=_text(python, place, "python") if python else "")


def _checks(entry: Any, place: _Place, known: Collection[str]) -> tuple[str, ...]:
    slugs = _texts(entry, place, "checks")
    if not slugs:
        raise place.error("name the checks whose failure counts as having found it", "checks")
    for slug in slugs:
        if slug not in known:
            raise place.error(str(UnknownName("check", slug, known)), "checks")
    return slugs


def _mapping(entry: Any, place: _Place, what: str, keys: Collection[str], needed: Collection[str]) -> None:
    if not isinstance(entry, dict):
        raise place.error(f"{what} is a mapping with {', '.join(needed)}")
    for key in entry:
        if key not in keys:
            raise place.error(str(UnknownName(f"key of {what}", key, keys)), key)
    for key in needed:
        if entry.get(key) in (None, ""):
            raise place.error(f"the {key} of {what} is missing", key)


def _texts(entry: Any, place: _Place, key: str) -> tuple[str, ...]:
    if not isinstance(entry, list):
        raise place.error(f"{key} must be a list", key)
    return tuple(_text(one, place, key) for one in entry)


def _text(entry: Any, place: _Place, key: str) -> str:
    if not isinstance(entry, str) or not entry.strip():
        raise place.error(f"{key} must be text; put it into quotes", key)
    return entry

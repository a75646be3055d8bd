"""Known bugs: a table of reported bugs, and whether the catalogue, and drawn stories, find them.

The table is a YAML list of rows, each with a release that has the bug and one that does not:

    - id: none-decision-executes-tool
      title: A decision of None runs the tool that it is about
      source: pydantic/pydantic-ai#8060
      bad: {agent: pydantic_ai==2.41.0}
      good: {agent: pydantic_ai==2.42.0}      # null: no release is known to be without it
      checks: [invalid-decision-refused]      # a failure of one of these counts as having found it

An agent may also have `with` (a list of requirements) and `python`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.package_registries import get_registry
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease
from pytest_approvals.errors import ApprovalsError, TableError, UnknownName

_KEYS = ("id", "title", "source", "bad", "good", "checks")
_REQUIRED_KEYS = ("id", "title", "source", "bad", "checks")
_AGENT_KEYS = ("agent", "with", "python")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBug:
    """A known bug.

    Attributes:
        sources: Where it was reported.
        bad: A release that has it.
        good: A release that does not have it; None if there is none.
        checks: The slugs whose failure counts as having found it.
    """

    id: str
    title: str
    sources: tuple[str, ...]
    bad: AgentRelease
    good: AgentRelease | None
    checks: tuple[str, ...]


def load_known_bugs(path: Path, checks: Collection[str]) -> tuple[KnownBug, ...]:
    """Read a table.

    Args:
        path: The file.
        checks: The slugs of all checks.

    Raises:
        TableError: The file cannot be read, or has a mistake; file and line are named.
    """
    from pytest_approvals.yaml_files import Diagnostic
    from pytest_approvals.yaml_files.document import parse_yaml

    try:
        document = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TableError(str(path), None, f"it cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise TableError(str(path), None, "it is not UTF-8 text") from None
    except Diagnostic as diagnostic:
        raise TableError(str(path), diagnostic.line, diagnostic.message) from None
    if not isinstance(document.value, list):
        raise TableError(str(path), 1, "a table is a list of rows")
    places = [_EntryLocation(str(path), (str(at),), document.lines) for at in range(len(document.value))]
    rows = tuple(_parse_row(entry, place, checks) for entry, place in zip(document.value, places, strict=True))
    first: dict[str, int] = {}
    for row, place in zip(rows, places, strict=True):
        if row.id in first:
            raise place.error(f"line {first[row.id]} has a row with the id {row.id!r}, too", "id")
        first[row.id] = place.line("id")
    return rows


@dataclass(frozen=True, slots=True)
class _EntryLocation:
    """The place of an entry in the file, for errors."""

    file: str
    path: tuple[str, ...]
    lines: Mapping[str, int]

    def below(self, key: str) -> _EntryLocation:
        return _EntryLocation(self.file, (*self.path, key), self.lines)

    def line(self, *keys: str) -> int:
        path = [*self.path, *keys]
        # The line of the nearest parent, if the row lacks the key.
        while ".".join(path) not in self.lines:
            path.pop()
        return self.lines[".".join(path)]

    def error(self, message: str, *keys: str) -> TableError:
        return TableError(self.file, self.line(*keys), message)


def _parse_row(entry: Any, place: _EntryLocation, checks: Collection[str]) -> KnownBug:
    _require_mapping(entry, place, "a row", _KEYS, _REQUIRED_KEYS)
    sources = entry["source"] if isinstance(entry["source"], list) else [entry["source"]]
    return KnownBug(
        id=_require_text(entry["id"], place, "id"),
        title=_require_text(entry["title"], place, "title"),
        sources=tuple(_require_text(source, place, "source") for source in sources),
        bad=_parse_release(entry["bad"], place.below("bad")),
        good=None if entry.get("good") is None else _parse_release(entry["good"], place.below("good")),
        checks=_parse_checks(entry["checks"], place, checks),
    )


def _parse_release(entry: Any, place: _EntryLocation) -> AgentRelease:
    _require_mapping(entry, place, "an agent of a row", _AGENT_KEYS, ("agent",))
    requirements = _require_texts(entry.get("with", []), place, "with")
    python = entry.get("python") or ""
    # Without quotes YAML reads 3.10 as the number 3.1.
    if isinstance(python, float):
        python = "3.10" if python == 3.1 else str(python)
    try:
        spec = AgentSpec.parse(_require_text(entry["agent"], place, "agent"))
        for text in requirements:
            get_registry(get_adapter(spec).registry).parse(text)
    except ApprovalsError as error:
        raise place.error(str(error), "agent") from None
    return AgentRelease(
        spec=spec, requirements=requirements, python=_require_text(python, place, "python") if python else ""
    )


def _parse_checks(entry: Any, place: _EntryLocation, known: Collection[str]) -> tuple[str, ...]:
    slugs = _require_texts(entry, place, "checks")
    if not slugs:
        raise place.error("name the checks whose failure counts as having found it", "checks")
    for slug in slugs:
        if slug not in known:
            raise place.error(str(UnknownName("check", slug, known)), "checks")
    return slugs


def _require_mapping(
    entry: Any, place: _EntryLocation, what: str, keys: Collection[str], needed: Collection[str]
) -> None:
    if not isinstance(entry, dict):
        raise place.error(f"{what} is a mapping with {', '.join(needed)}")
    for key in entry:
        if key not in keys:
            raise place.error(str(UnknownName(f"key of {what}", key, keys)), key)
    for key in needed:
        if entry.get(key) in (None, ""):
            raise place.error(f"the {key} of {what} is missing", key)


def _require_texts(entry: Any, place: _EntryLocation, key: str) -> tuple[str, ...]:
    if not isinstance(entry, list):
        raise place.error(f"{key} must be a list", key)
    return tuple(_require_text(text, place, key) for text in entry)


def _require_text(entry: Any, place: _EntryLocation, key: str) -> str:
    if not isinstance(entry, str) or not entry.strip():
        raise place.error(f"{key} must be text; put it into quotes", key)
    return entry

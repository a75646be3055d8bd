"""
What others bring: adapters, checks, oracles and reporters.

Installed distributions offer them as entry points of the groups `pytest_approvals.adapters`, `.checks`, `.oracles` and
`.reporters`; a project brings them with the pytest hooks of the same names.

| kind | what an entry point or a hook gives under a name |
|---|---|
| adapters | a module with `FLAVOURS`, or the dictionary itself |
| checks | a check |
| oracles | a function of the text behind the colon in `NAME:TEXT` that makes an oracle |
| reporters | a function of a folder of results, called once at the end |
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pytest_approvals.errors import ApprovalsError, UsageError

KINDS = ("adapters", "checks", "oracles", "reporters")

_brought: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}


class ExtensionError(ApprovalsError):
    """What another distribution offers cannot be imported."""

    def __init__(self, kind: str, name: str, error: Exception) -> None:
        what = f"{type(error).__name__}: {error}"
        super().__init__(f"the entry point {name!r} of pytest_approvals.{kind} cannot be imported: {what}")


def names_of(kind: str) -> tuple[str, ...]:
    """Names what others bring of a kind; nothing is imported."""
    return tuple(sorted({*_offered(kind), *_brought[kind]}))


def brought(kind: str, name: str) -> Any:
    """
    Gives what others bring under *name*; a project's own comes before an installed one.

    Errors:
        ExtensionError: It cannot be imported.
        KeyError: Nobody brings it.
    """
    if name in _brought[kind]:
        return _brought[kind][name]
    try:
        return _offered(kind)[name].load()
    except KeyError:
        raise
    except Exception as error:
        raise ExtensionError(kind, name, error) from error


def all_of(kind: str) -> dict[str, Any]:
    """Gives everything that others bring of a kind, by name."""
    return {name: brought(kind, name) for name in names_of(kind)}


def bring(kind: str, name: str, what: Any) -> None:
    """
    Adds something for as long as this process runs.

    Errors:
        UsageError: Something else was brought under that name.
    """
    if _brought[kind].get(name, what) is not what:
        raise UsageError(f"two different {kind} are called {name!r}")
    _brought[kind][name] = what


def take_back() -> None:
    """Forgets all that was added by `bring`."""
    for names in _brought.values():
        names.clear()


@cache
def _offered(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"pytest_approvals.{kind}")}

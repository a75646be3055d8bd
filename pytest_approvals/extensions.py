"""Registry of third-party adapters, checks, oracles and reporters.

Installed distributions offer them as entry points of the groups `pytest_approvals.adapters`, `.checks`, `.oracles` and
`.reporters`; a project registers them with the pytest hooks of the same names.

| kind | what an entry point or a hook offers under a name |
|---|---|
| adapters | a module with `FLAVOURS`, or the dictionary itself |
| checks | a check |
| oracles | a function of the text behind the colon in `NAME:TEXT` that creates an oracle |
| reporters | a function of the lines of the report and the config, called once at the end |
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pytest_approvals.errors import ApprovalsError, UsageError

EXTENSION_KINDS = ("adapters", "checks", "oracles", "reporters")

_registered: dict[str, dict[str, Any]] = {kind: {} for kind in EXTENSION_KINDS}


class ExtensionError(ApprovalsError):
    """An extension that cannot be imported."""

    def __init__(self, kind: str, name: str, error: Exception) -> None:
        what = f"{type(error).__name__}: {error}"
        super().__init__(f"the entry point {name!r} of pytest_approvals.{kind} cannot be imported: {what}")


def available_names(kind: str) -> tuple[str, ...]:
    """Return the names of the extensions of a kind; nothing is imported."""
    return tuple(sorted({*_entry_points(kind), *_registered[kind]}))


def load(kind: str, name: str) -> Any:
    """Return an extension; a project's own takes precedence over an installed one.

    Raises:
        ExtensionError: It cannot be imported.
        KeyError: Not registered.
    """
    if name in _registered[kind]:
        return _registered[kind][name]
    entry_point = _entry_points(kind)[name]
    try:
        return entry_point.load()
    except Exception as error:
        raise ExtensionError(kind, name, error) from error


def list_installed(kind: str) -> dict[str, str]:
    """Return the extensions of a kind that distributions offer: where each stands, by name; nothing is imported."""
    return {name: point.value for name, point in _entry_points(kind).items()}


def load_all(kind: str) -> dict[str, Any]:
    """Return all extensions of a kind, by name."""
    return {name: load(kind, name) for name in available_names(kind)}


def register(kind: str, name: str, what: Any) -> None:
    """Register an extension for as long as this process runs.

    Raises:
        UsageError: Another extension has that name.
    """
    if _registered[kind].get(name, what) is not what:
        raise UsageError(f"two different {kind} are called {name!r}")
    _registered[kind][name] = what


def unregister_all() -> None:
    """Forget the extensions that were added by `register`."""
    for names in _registered.values():
        names.clear()


@cache
def _entry_points(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"pytest_approvals.{kind}")}

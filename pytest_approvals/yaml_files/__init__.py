"""YAML files: diagnostics with the path of keys and the line that they are about.

`document` parses the text. The paths are those in the file; a scenario that was built in Python has the same paths and
no lines. This module does not import PyYAML, so that builders do not load it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_approvals.errors import ScenarioError

KeyPath = tuple[str | int, ...]
"""Keys and positions from the top of a file: `("model", 0, "calls", 1, "tool")`."""


class Diagnostic(Exception):
    """An invalid value in a file.

    Args:
        path: Its keys.
        message: One sentence, with the nearest valid word if there is one.
        line: Its line, if it is not that of *path*.
    """

    def __init__(self, path: KeyPath, message: str, line: int | None = None) -> None:
        self.path = path
        self.message = message
        self.line = line
        super().__init__(message)


class DiagnosticGroup(Exception):
    """All diagnostics of a file, at least one."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(diagnostic.message for diagnostic in self.diagnostics))


def with_opt_in_hint(message: str, key: str) -> str:
    """Append the key that marks an apparent slip as intended to *message*."""
    if message.endswith("?"):
        return f"{message} Say `{key}: true` if that is meant."
    return f"{message}; say `{key}: true` if that is meant"


def format_key_path(path: KeyPath) -> str:
    """Return a path in the usual notation.

    >>> format_key_path(("model", 0, "calls", 1, "tool"))
    'model[0].calls[1].tool'
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def display_path(path: Path) -> str:
    """Return the path of a file as messages show it: from the current folder, if it is below that."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def join_path(path: KeyPath) -> str:
    """Return a path as a key of `Scenario.lines`."""
    return ".".join(map(str, path))


def find_line(path: KeyPath, lines: Mapping[str, int]) -> int | None:
    """Return the line of *path*, or of its nearest parent that has one.

    Parts that the file does not have are skipped, because the file may use a shorthand: `decide` as a mapping has no
    positions, and a tool with one behaviour has no `does`.
    """
    line, known = lines.get(""), ""
    for part in path:
        deeper = f"{known}.{part}" if known else str(part)
        if deeper in lines:
            known, line = deeper, lines[deeper]
    return line


def build_scenario_error(
    origin: str, diagnostics: Iterable[Diagnostic], lines: Mapping[str, int], text: str = ""
) -> ScenarioError:
    """Build the error for *diagnostics*: the first one in the file, with its line quoted."""
    located = [(diagnostic.line or find_line(diagnostic.path, lines), diagnostic) for diagnostic in diagnostics]
    # Without lines (a scenario built in Python) the first diagnostic is reported.
    line, diagnostic = min(located, key=lambda pair: pair[0] or 0)
    rows = text.splitlines()
    quoted = rows[line - 1].strip() if line and line <= len(rows) else ""
    return ScenarioError(origin, line, diagnostic.message + (f"\n    {quoted}" if quoted else ""))

"""
A mistake in a scenario: where it is, as a path of keys, and what it is.

The path is the one in the file. A scenario that was built in Python has the same paths and no lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_approvals.errors import ScenarioError

KeyPath = tuple[str | int, ...]
"""Keys and positions from the top of a scenario file: `("model", 0, "calls", 1, "tool")`."""


class Diagnostic(Exception):
    """
    Something in a scenario that cannot be meant.

    Arguments:
        path: Where it is.
        what: One sentence, with the nearest valid word where there is one.
        line: Its line, where it is not that of *path*.
    """

    def __init__(self, path: KeyPath, what: str, line: int | None = None) -> None:
        self.path = path
        self.what = what
        self.line = line
        super().__init__(what)


class DiagnosticGroup(Exception):
    """All that is wrong with a scenario, at least one thing."""

    def __init__(self, found: Iterable[Diagnostic]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(mistake.what for mistake in self.found))


def with_opt_in_hint(what: str, key: str) -> str:
    """Ends a sentence about something that looks like a slip with the key that says it is none."""
    hint = f"ay `{key}: true` if that is meant"
    return f"{what} S{hint}." if what.endswith("?") else f"{what}; s{hint}"


def format_key_path(path: KeyPath) -> str:
    """
    Gives a path as people write it.

    >>> place(("model", 0, "calls", 1, "tool"))
    'model[0].calls[1].tool'
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def join_path(path: KeyPath) -> str:
    """Gives a path as a key of `Scenario.lines`."""
    return ".".join(map(str, path))


def find_line(path: KeyPath, lines: Mapping[str, int]) -> int | None:
    """
    Gives the line of *path*, or of the nearest part above it that has one.

    Parts that the file does not have are skipped, because it may say the same thing shorter: `decide` as a mapping has
    no positions, and a tool that does one thing has no `does`.
    """
    line, known = lines.get(""), ""
    for part in path:
        deeper = f"{known}.{part}" if known else str(part)
        if deeper in lines:
            known, line = deeper, lines[deeper]
    return line


def build_scenario_error(
    where: str, mistakes: Iterable[Diagnostic], lines: Mapping[str, int], text: str = ""
) -> ScenarioError:
    """Makes the error that is raised for *mistakes*: the first one in the file, with its line quoted."""
    found = [(mistake.line or find_line(mistake.path, lines), mistake) for mistake in mistakes]
    line, mistake = min(found, key=lambda one: one[0] or 0)
    rows = text.splitlines()
    quoted = rows[line - 1].strip() if line and line <= len(rows) else ""
    return ScenarioError(where, line, mistake.what + (f"\n    {quoted}" if quoted else ""))

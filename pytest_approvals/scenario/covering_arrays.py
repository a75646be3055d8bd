"""Covering arrays: the fewest rows that hold every combination of values which occurs together.

Finding one takes up to half a second, and the scenarios of a catalogue have few shapes. So an array is kept in the
cache of the user, named by the digest of what it was made from: the allowed rows, the strength, and the code that
chooses. All workers of a session share it. A kept array is used only if nobody else could have written it and if it
still covers everything; else it is computed again.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

from pytest_approvals.agents.cache_folder import create_private_folder, get_cache_folder

Row = tuple[Any, ...]
"""One value of each dimension."""


@lru_cache(maxsize=1024)
def find_covering_rows(allowed: tuple[Row, ...], strength: int | None) -> tuple[Row, ...]:
    """Return rows of *allowed* that cover every combination of *strength* values that occurs in any of them.

    The first of *allowed* comes first, the others in the order of their values. A *strength* of None returns all rows.
    """
    if strength is None or len(allowed) < 2:
        return allowed
    entry = get_cache_folder() / "covering-arrays" / f"{_digest(allowed, strength)}.json"
    # An entry that cannot be read is as good as none, and so is a folder that cannot be written.
    with suppress(OSError, ValueError, TypeError, RecursionError):
        return _read_entry(entry, allowed, strength)
    rows = _compute_rows(allowed, strength)
    with suppress(OSError, ValueError, TypeError):
        _write_entry(entry, rows, allowed)
    return rows


def covers_all(rows: Sequence[Row], allowed: Sequence[Row], strength: int) -> bool:
    """Return whether *rows* hold every combination of *strength* values that any of *allowed* holds."""
    places = [at for at in range(len(allowed[0])) if len({row[at] for row in allowed}) > 1]
    return all(
        {tuple(row[at] for at in chosen) for row in allowed} <= {tuple(row[at] for at in chosen) for row in rows}
        for chosen in combinations(places, min(strength, len(places)))
    )


# --- the cache --------------------------------------------------------------------------------------------------------


def _digest(allowed: tuple[Row, ...], strength: int) -> str:
    return sha256(json.dumps([_describe_code(), strength, allowed]).encode()).hexdigest()


@cache
def _describe_code() -> list[list[Any]]:
    """Return what identifies the code that chooses rows: path, time and size of its files."""
    library = find_spec("covertable")
    folder = Path(library.origin).parent if library is not None and library.origin is not None else None
    files = [Path(__file__), *(sorted(folder.rglob("*.py")) if folder is not None else ())]
    return [[str(file), file.stat().st_mtime_ns, file.stat().st_size] for file in files]


def _read_entry(entry: Path, allowed: tuple[Row, ...], strength: int) -> tuple[Row, ...]:
    with entry.open("rb") as file:
        # Of the open file, not of the path, which somebody could exchange in between.
        about = os.fstat(file.fileno())
        if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError("somebody else may have written it")
        checksum, _, body = file.read().partition(b"\n")
    if checksum.decode("ascii") != sha256(body).hexdigest():
        raise ValueError("damaged")
    positions = json.loads(body)
    if len(set(positions)) != len(positions) or positions[:1] != [0] or not {*positions} <= {*range(len(allowed))}:
        raise ValueError("not a choice of rows")
    rows = tuple(allowed[at] for at in positions)
    if not covers_all(rows, allowed, strength):
        raise ValueError("a combination is missing")
    return rows


def _write_entry(entry: Path, rows: tuple[Row, ...], allowed: tuple[Row, ...]) -> None:
    create_private_folder(entry.parent)
    body = json.dumps([allowed.index(row) for row in rows]).encode()
    unfinished = entry.with_suffix(f".{os.getpid()}")
    with open(unfinished, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(sha256(body).hexdigest().encode() + b"\n" + body)
    # In one step, so that no other process ever reads half an entry.
    unfinished.replace(entry)


# --- choosing ---------------------------------------------------------------------------------------------------------


def _compute_rows(allowed: tuple[Row, ...], strength: int) -> tuple[Row, ...]:
    factors = {at: tuple(dict.fromkeys(row[at] for row in allowed)) for at in range(len(allowed[0]))}
    free = {str(at): list(values) for at, values in factors.items() if len(values) > 1}
    fixed = allowed[0]

    def row_of(values: Mapping[str, Any]) -> Row:
        return tuple(values.get(str(at), value) for at, value in enumerate(fixed))

    return tuple(map(row_of, _choose_rows(free, allowed, min(strength, len(free)))))


def _choose_rows(free: dict[str, list[Any]], allowed: tuple[Row, ...], strength: int) -> list[dict[str, Any]]:
    from covertable import Controller  # type: ignore[import-untyped]

    # The first allowed row is the base variant, which always runs.
    base = {name: allowed[0][int(name)] for name in free}
    together = [*combinations(free, 2), tuple(free)] if len(free) > 1 else [tuple(free)]
    constraints = [_constraint(names, allowed) for names in together]
    rows = Controller(free, strength=strength, presets=[base], constraints=constraints).make()
    # The covering rows come in no useful order; variants are listed with the base first, then the plainest.
    return sorted(rows, key=lambda row: (row != base, *(free[name].index(row[name]) for name in free)))


def _constraint(names: tuple[str, ...], allowed: tuple[Row, ...]) -> dict[str, Any]:
    seen = {tuple(row[int(name)] for name in names) for row in allowed}
    return {
        "operator": "fn",
        "requires": list(names),
        "evaluate": lambda row: tuple(row[name] for name in names) in seen,
    }

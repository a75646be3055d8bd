"""Covering arrays: the fewest rows that hold every combination of values which occurs together.

Finding one takes up to half a second, and the scenarios of a catalogue have few shapes. So an array is kept in the
cache of the user, named by the digest of what it was made from: the allowed rows, those that are there anyway, the
strength, and the code that chooses. All workers of a session share it. A kept array is used only if nobody else could
have written it and if it still covers everything; else it is computed again.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

from pytest_approvals.agents.cache_folder import create_private_folder, get_cache_folder

Row = tuple[Any, ...]
"""One value of each dimension."""


@lru_cache(maxsize=1024)
def find_covering_rows(
    allowed: tuple[Row, ...], strength: int | None, present: tuple[Row, ...] = ()
) -> tuple[Row, ...]:
    """Return rows of *allowed* that cover every combination of *strength* values that occurs in any of them.

    The first of *allowed* is always one of them; they keep their order.

    Args:
        allowed: The rows to choose from, the plainest first.
        strength: How many values are combined; None returns all rows.
        present: Rows that are there in any case, whose combinations need no other row.
    """
    if strength is None or len(allowed) < 2:
        return allowed
    entry = get_cache_folder() / "covering-arrays" / f"{_digest(allowed, strength, present)}.json"
    # An entry that cannot be read is as good as none, and so is a folder that cannot be written.
    with suppress(OSError, ValueError, TypeError, RecursionError):
        return _read_entry(entry, allowed, strength, present)
    rows = _compute_rows(allowed, strength, present)
    with suppress(OSError, ValueError, TypeError):
        _write_entry(entry, rows, allowed)
    return rows


def covers_all(rows: Sequence[Row], allowed: Sequence[Row], strength: int) -> bool:
    """Return whether *rows* hold every combination of *strength* values that any of *allowed* holds."""
    return all(
        {tuple(row[at] for at in places) for row in allowed} <= {tuple(row[at] for at in places) for row in rows}
        for places in _combine_places((*allowed, *rows), strength)
    )


def _combine_places(rows: Sequence[Row], strength: int) -> list[tuple[int, ...]]:
    """Return which dimensions are combined: all choices of *strength* of those that have several values."""
    places = [at for at in range(len(rows[0])) if len({row[at] for row in rows}) > 1]
    return [*combinations(places, min(strength, len(places)))]


# --- the cache --------------------------------------------------------------------------------------------------------


def _digest(allowed: tuple[Row, ...], strength: int, present: tuple[Row, ...]) -> str:
    return sha256(json.dumps([_describe_code(), strength, allowed, present]).encode()).hexdigest()


@cache
def _describe_code() -> str:
    """Return the digest of the code that chooses rows."""
    return sha256(Path(__file__).read_bytes()).hexdigest()


def _read_entry(entry: Path, allowed: tuple[Row, ...], strength: int, present: tuple[Row, ...]) -> tuple[Row, ...]:
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
    if not covers_all((*rows, *present), allowed, strength):
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

_ATTEMPTS = 200
"""How often rows are chosen anew in the search for fewer; the arrays of the catalogue get no smaller after 60."""

_MAX_STEPS = 2_000_000
"""How many rows are looked at in all attempts, so that large matrices do not take long."""


def _compute_rows(allowed: tuple[Row, ...], strength: int, present: tuple[Row, ...]) -> tuple[Row, ...]:
    """Choose rows greedily, with equally good ones chosen by lot, and return the smallest of many such choices."""
    combined = _combine_places((*allowed, *present), strength)
    bits: dict[tuple[Any, ...], int] = {}
    masks = [_mask_of(row, combined, bits) for row in allowed]
    wanted = _unite(masks)
    there = _unite(_mask_of(row, combined, bits) for row in present) | masks[0]
    # A row covers one combination of each choice of dimensions, so no fewer can do.
    fewest = max(((_unite(group) & wanted & ~there).bit_count() for group in _group_by(combined, bits)), default=0)
    best: list[int] | None = None
    steps = 0
    for attempt in range(_ATTEMPTS):
        chosen = _choose_greedily(masks, wanted & ~there, attempt)
        steps += len(masks) * (len(chosen) + 1)
        chosen = _drop_needless(chosen, masks, wanted & ~there)
        if best is None or len(chosen) < len(best):
            best = chosen
        if len(best) <= fewest or steps > _MAX_STEPS:
            break
    assert best is not None
    return tuple(allowed[at] for at in sorted({0, *best}))


def _mask_of(row: Row, combined: Sequence[tuple[int, ...]], bits: dict[tuple[Any, ...], int]) -> int:
    """Return the combinations of a row as bits of a number, which can be compared fast."""
    mask = 0
    for places in combined:
        mask |= 1 << bits.setdefault((places, *(row[at] for at in places)), len(bits))
    return mask


def _unite(masks: Iterable[int]) -> int:
    united = 0
    for mask in masks:
        united |= mask
    return united


def _group_by(combined: Sequence[tuple[int, ...]], bits: dict[tuple[Any, ...], int]) -> list[list[int]]:
    """Return the combinations of each choice of dimensions."""
    groups: dict[tuple[int, ...], list[int]] = {places: [] for places in combined}
    for (places, *_), bit in bits.items():
        groups[places].append(1 << bit)
    return [*groups.values()]


def _choose_greedily(masks: Sequence[int], missing: int, attempt: int) -> list[int]:
    """Return the positions of rows that cover what is missing, each one of those that cover most of the rest.

    The first attempt takes the plainest of them.
    """
    # Of all methods of `Random`, this one returns the same in every release of Python.
    draw = Random(attempt).random if attempt else float
    chosen: list[int] = []
    while missing:
        gains = [(mask & missing).bit_count() for mask in masks]
        most = max(gains)
        equal = [at for at, gain in enumerate(gains) if gain == most]
        chosen.append(equal[int(draw() * len(equal))])
        missing &= ~masks[chosen[-1]]
    return chosen


def _drop_needless(chosen: Sequence[int], masks: Sequence[int], missing: int) -> list[int]:
    """Return the rows without those that the others make needless."""
    kept = list(chosen)
    for at in chosen:
        others = [other for other in kept if other != at]
        if not missing & ~_unite(masks[other] for other in others):
            kept = others
    return kept

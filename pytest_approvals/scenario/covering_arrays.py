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
from itertools import chain, combinations, islice, product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pytest_approvals.agents.cache_folder import create_private_folder, get_cache_folder

Row = tuple[Any, ...]
"""One value of each dimension."""

Choices = tuple[tuple[tuple[Row, ...], ...], ...]
"""Rows that can stand for each other: of each choice, the rows of one of its alternatives are there."""


class Cover(NamedTuple):
    """Rows that cover all combinations together with those of the alternatives.

    Attributes:
        rows: The rows.
        alternatives: The number of the alternative of each choice.
    """

    rows: tuple[Row, ...]
    alternatives: tuple[int, ...]


def find_covering_rows(
    allowed: tuple[Row, ...], strength: int | None, present: tuple[Row, ...] = ()
) -> tuple[Row, ...]:
    """Return the rows of `find_cover` without any choices."""
    return find_cover(allowed, strength, present).rows


@lru_cache(maxsize=1024)
def find_cover(
    allowed: tuple[Row, ...],
    strength: int | None,
    present: tuple[Row, ...] = (),
    choices: Choices = (),
    costs: tuple[int, ...] = (),
) -> Cover:
    """Return rows of *allowed* that cover every combination of *strength* values that occurs in any of them.

    The first of *allowed* is always one of them; they keep their order.

    Args:
        allowed: The rows to choose from, the plainest first.
        strength: How many values are combined; None returns all rows.
        present: Rows that are there in any case, whose combinations need no other row.
        choices: More such rows, in alternatives; the first ones are taken unless others save a row.
        costs: What each of *allowed* costs, from 1; by default all cost the same.
    """
    if strength is None or len(allowed) < 2:
        return Cover(allowed, (0,) * len(choices))
    entry = get_cache_folder() / "covering-arrays" / f"{_digest(strength, allowed, present, choices, costs)}.json"
    # An entry that cannot be read is as good as none, and so is a folder that cannot be written.
    with suppress(OSError, ValueError, TypeError, RecursionError):
        return _read_entry(entry, allowed, strength, present, choices)
    cover = _compute_cover(allowed, strength, present, choices, costs or (1,) * len(allowed))
    with suppress(OSError, ValueError, TypeError):
        _write_entry(entry, cover, allowed)
    return cover


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


def _digest(strength: int, *made_from: Any) -> str:
    return sha256(json.dumps([_describe_code(), strength, *made_from]).encode()).hexdigest()


@cache
def _describe_code() -> str:
    """Return the digest of the code that chooses rows."""
    return sha256(Path(__file__).read_bytes()).hexdigest()


def _read_entry(
    entry: Path, allowed: tuple[Row, ...], strength: int, present: tuple[Row, ...], choices: Choices
) -> Cover:
    with entry.open("rb") as file:
        # Of the open file, not of the path, which somebody could exchange in between.
        about = os.fstat(file.fileno())
        if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError("somebody else may have written it")
        checksum, _, body = file.read().partition(b"\n")
    if checksum.decode("ascii") != sha256(body).hexdigest():
        raise ValueError("damaged")
    positions, numbers = json.loads(body)
    if len(set(positions)) != len(positions) or positions[:1] != [0] or not {*positions} <= {*range(len(allowed))}:
        raise ValueError("not a choice of rows")
    if len(numbers) != len(choices) or any(
        at not in range(len(choice)) for at, choice in zip(numbers, choices, strict=True)
    ):
        raise ValueError("not an alternative of each choice")
    cover = Cover(tuple(allowed[at] for at in positions), tuple(numbers))
    if not covers_all((*cover.rows, *present, *_list_rows(choices, cover.alternatives)), allowed, strength):
        raise ValueError("a combination is missing")
    return cover


def _write_entry(entry: Path, cover: Cover, allowed: tuple[Row, ...]) -> None:
    create_private_folder(entry.parent)
    body = json.dumps([[allowed.index(row) for row in cover.rows], cover.alternatives]).encode()
    unfinished = entry.with_suffix(f".{os.getpid()}")
    with open(unfinished, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(sha256(body).hexdigest().encode() + b"\n" + body)
    # In one step, so that no other process ever reads half an entry.
    unfinished.replace(entry)


# --- choosing ---------------------------------------------------------------------------------------------------------

_ATTEMPTS = 200
"""How often rows are chosen anew in the search for fewer; the arrays of the catalogue get no smaller after 60."""

_MOST_SELECTIONS = 128
"""How many ways to take one alternative of each choice are tried."""

_ATTEMPTS_EACH = 5
"""How often rows are chosen anew for each of these at least."""

_MAX_STEPS = 2_000_000
"""How many rows are looked at in all attempts, so that large matrices do not take long."""


def _compute_cover(
    allowed: tuple[Row, ...], strength: int, present: tuple[Row, ...], choices: Choices, costs: Sequence[int]
) -> Cover:
    """Choose rows greedily, with equally good ones chosen by lot, and return the cheapest of many such choices."""
    selections = [*islice(product(*(range(len(choice)) for choice in choices)), _MOST_SELECTIONS)]
    combined = _combine_places((*allowed, *present, *chain(*chain(*choices))), strength)
    bits: dict[tuple[Any, ...], int] = {}
    masks = [_mask_of(row, combined, bits) for row in allowed]
    wanted = _unite(masks) & ~masks[0] & ~_unite(_mask_of(row, combined, bits) for row in present)
    missing = [
        wanted & ~_unite(_mask_of(row, combined, bits) for row in _list_rows(choices, selection))
        for selection in selections
    ]
    # A row covers one combination of each choice of dimensions, so no fewer can do.
    groups = [_unite(group) for group in _group_by(combined, bits)]
    fewest = min(max(((group & each).bit_count() for group in groups), default=0) for each in missing)
    best: list[int] | None = None
    least = selected = steps = 0
    for attempt in range(max(_ATTEMPTS, len(selections) * _ATTEMPTS_EACH)):
        at = attempt % len(selections)
        chosen = _choose_greedily(masks, costs, missing[at], attempt)
        steps += len(masks) * (len(chosen) + 1)
        chosen = _drop_needless(chosen, masks, missing[at])
        cost = sum(costs[place] for place in chosen)
        if best is None or cost < least:
            best, least, selected = chosen, cost, at
        if least <= fewest or steps > _MAX_STEPS:
            break
    assert best is not None
    return Cover(tuple(allowed[at] for at in sorted({0, *best})), selections[selected])


def _list_rows(choices: Choices, selection: Iterable[int]) -> list[Row]:
    return [*chain.from_iterable(choice[at] for choice, at in zip(choices, selection, strict=True))]


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


def _choose_greedily(masks: Sequence[int], costs: Sequence[int], missing: int, attempt: int) -> list[int]:
    """Return the positions of rows that cover what is missing, each one of those that cover most of the rest per cost.

    The first attempt takes the plainest of them.
    """
    # Of all methods of `Random`, this one returns the same in every release of Python.
    draw = Random(attempt).random if attempt else float
    chosen: list[int] = []
    while missing:
        gains = [(mask & missing).bit_count() / cost for mask, cost in zip(masks, costs, strict=True)]
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

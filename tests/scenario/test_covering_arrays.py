from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.scenario import covering_arrays
from pytest_approvals.scenario.covering_arrays import Choices, Cover, Row, covers_all, find_cover, find_covering_rows

ALLOWED: tuple[Row, ...] = tuple(
    (store, stream, source, fixed)
    for store, stream, source, fixed in product(("none", "copy", "json"), (False, True), ("held", "restored"), ("x",))
    if source == "held" or store != "none"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the entries; nothing is remembered within the process."""
    monkeypatch.setenv("PYTEST_APPROVALS_CACHE", str(tmp_path))
    find_cover.cache_clear()
    yield tmp_path / "covering-arrays"
    find_cover.cache_clear()


def in_another_process(strength: int | None = 2) -> tuple[Row, ...]:
    find_cover.cache_clear()
    return find_covering_rows(ALLOWED, strength)


def entry_in(folder: Path) -> Path:
    (entry,) = folder.iterdir()
    return entry


def store(entry: Path, body: bytes) -> None:
    entry.write_bytes(sha256(body).hexdigest().encode() + b"\n" + body)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collects the strengths for which rows were computed."""
    computed: list[int] = []
    compute = covering_arrays._compute_cover

    def count(allowed: tuple[Row, ...], strength: int, *more: Any) -> Cover:
        computed.append(strength)
        return compute(allowed, strength, *more)

    monkeypatch.setattr(covering_arrays, "_compute_cover", count)
    return computed


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_rows_cover_every_combination(strength: int) -> None:
    """All combinations of that many values occur, in allowed rows, the first of them first."""
    rows = find_covering_rows(ALLOWED, strength)

    assert (True, True, ALLOWED[0]) == (covers_all(rows, ALLOWED, strength), set(rows) <= {*ALLOWED}, rows[0])


def test_no_row_repeats_what_the_others_cover() -> None:
    """Without any one of the chosen rows but the first, a combination is missing."""
    rows = find_covering_rows(ALLOWED, 2)

    assert not any(covers_all([*rows[:at], *rows[at + 1 :]], ALLOWED, 2) for at in range(1, len(rows)))


def test_as_few_rows_as_two_dimensions_have_pairs() -> None:
    """No fewer than six rows can hold the pairs of two and three values, and six hold those of all four dimensions."""
    allowed = tuple(product(range(3), range(2), range(2), range(2)))

    assert 6 == len(find_covering_rows(allowed, 2))


def test_what_is_there_anyway_needs_no_other_row() -> None:
    """Rows that are there in any case count, and only what they lack is added."""
    present = (("json", True, "restored", "y"),)
    rows = find_covering_rows(ALLOWED, 2, present)

    assert covers_all((*rows, *present), ALLOWED, 2)
    assert not covers_all(rows, ALLOWED, 2)
    assert len(rows) < len(find_covering_rows(ALLOWED, 2))


CHOICES: Choices = (
    (
        ((*ALLOWED[0][:3], "y"), (*ALLOWED[-1][:3], "y")),
        (("none", True, "held", "y"), ("json", False, "restored", "y")),
    ),
    (((*ALLOWED[0][:3], "z"),),),
)


def test_the_alternative_that_saves_a_row_is_taken() -> None:
    """Its rows count like others that are there."""
    cover = find_cover(ALLOWED, 2, (), CHOICES)
    present = (*CHOICES[0][cover.alternatives[0]], *CHOICES[1][0])

    assert (1, 0) == cover.alternatives
    assert covers_all((*cover.rows, *present), ALLOWED, 2)
    assert len(cover.rows) < len(find_cover(ALLOWED, 2, (), tuple(several[:1] for several in CHOICES)).rows)


def test_the_first_alternative_is_taken_if_no_other_saves_a_row() -> None:
    """At strength 1, all have the same values."""
    assert (0, 0) == find_cover(ALLOWED, 1, (), CHOICES).alternatives


def test_rows_that_cost_more_are_avoided() -> None:
    """More rows are chosen if they cost less together, and still cover everything."""
    allowed = tuple(product(range(3), range(2), range(2)))
    costs = tuple(9 if sum(row) in (2, 3) else 1 for row in allowed)
    cheap = find_cover(allowed, 2, costs=costs).rows

    assert covers_all(cheap, allowed, 2)
    assert len(cheap) > len(find_covering_rows(allowed, 2))
    assert sum(costs[allowed.index(row)] for row in cheap) < sum(
        costs[allowed.index(row)] for row in find_covering_rows(allowed, 2)
    )


@pytest.mark.parametrize("numbers", [b"[]", b"[0]", b"[0, 1]", b"[-1, 0]", b'["a", 0]', b"null"])
def test_an_entry_with_other_alternatives_is_replaced(folder: Path, counted: list[int], numbers: bytes) -> None:
    """A readable entry is computed again if it names no alternative of each choice."""
    cover = find_cover(ALLOWED, 2, (), CHOICES)
    entry = entry_in(folder)
    positions = json.loads(entry.read_bytes().partition(b"\n")[2])[0]
    store(entry, b"[%s, %s]" % (json.dumps(positions).encode(), numbers))
    find_cover.cache_clear()

    assert (cover, [2, 2]) == (find_cover(ALLOWED, 2, (), CHOICES), counted)


def test_other_rows_that_are_there_are_another_entry(folder: Path) -> None:
    """What was kept for some rows is not taken for others."""
    find_covering_rows(ALLOWED, 2)
    find_covering_rows(ALLOWED, 2, ALLOWED[-1:])

    assert 2 == len([*folder.iterdir()])


def test_a_missing_combination_is_seen() -> None:
    """Rows that lack a combination do not cover everything."""
    assert not covers_all(ALLOWED[:-1], ALLOWED, 3)


def test_another_process_computes_nothing(counted: list[int]) -> None:
    """A kept array is the computed one, and is not computed again."""
    rows = find_covering_rows(ALLOWED, 2)

    assert (rows, [2]) == (in_another_process(), counted)


def test_each_strength_has_its_own_entry(folder: Path) -> None:
    """Arrays of two strengths are two entries."""
    in_another_process(1)
    in_another_process(2)

    assert 2 == len([*folder.iterdir()])


def test_all_rows_need_no_entry(folder: Path) -> None:
    """Without a strength all rows are returned, and nothing is kept."""
    assert (ALLOWED, False) == (find_covering_rows(ALLOWED, None), folder.exists())


@pytest.mark.parametrize(
    "body",
    [
        *(b"[[0], []]", b"[[1, 0], []]", b"[[0, 0, 1], []]", b"[[0, 99], []]", b'[["a"], []]', b"[[0, null], []]"),
        *(b"[0]", b"[[0]]", b"{}", b"[0, ["),
    ],
)
def test_an_entry_with_another_content_is_replaced(folder: Path, counted: list[int], body: bytes) -> None:
    """A readable entry is computed again if it does not cover everything, or is no choice of the rows."""
    rows = find_covering_rows(ALLOWED, 2)
    entry = entry_in(folder)
    intact = entry.read_bytes()
    store(entry, body)

    assert (rows, [2, 2], intact) == (in_another_process(), counted, entry.read_bytes())


def test_every_flipped_byte_is_noticed(folder: Path) -> None:
    """An entry in which any byte is another one is not used."""
    rows = find_covering_rows(ALLOWED, 2)
    entry = entry_in(folder)
    intact = entry.read_bytes()
    for at in range(len(intact)):
        entry.write_bytes(intact[:at] + bytes([intact[at] ^ 1]) + intact[at + 1 :])
        assert rows == in_another_process()
        assert intact == entry.read_bytes()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_can_write_is_not_used(folder: Path, counted: list[int], mode: int) -> None:
    """An entry that another user could have written is computed again."""
    find_covering_rows(ALLOWED, 2)
    entry_in(folder).chmod(mode)
    in_another_process()

    assert [2, 2] == counted


def test_the_cache_is_private(folder: Path) -> None:
    """Folder and entries are for their owner only."""
    find_covering_rows(ALLOWED, 2)

    assert (0o700, 0o600) == (folder.stat().st_mode & 0o777, entry_in(folder).stat().st_mode & 0o777)


def test_an_entry_is_json(folder: Path) -> None:
    """Below its checksum an entry holds the positions of the rows, and the numbers of alternatives."""
    rows = find_covering_rows(ALLOWED, 2)

    assert [[ALLOWED.index(row) for row in rows], []] == json.loads(entry_in(folder).read_bytes().partition(b"\n")[2])


def test_a_folder_that_cannot_be_written_is_not_needed(folder: Path) -> None:
    """Where no folder can be created, rows are computed all the same."""
    folder.write_text("a file")

    assert covers_all(find_covering_rows(ALLOWED, 2), ALLOWED, 2)

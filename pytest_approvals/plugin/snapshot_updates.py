"""What an update of transcripts leaves out: variants that tell another story than the one that it stores.

All variants of a scenario on an agent share a transcript, and an update stores that of the plainest one. It may run
after the others, and in another worker, so the others are compared with what it stored once all have run: items note
what they tell with `note_told`, workers hand that over with `dump_told`, and `find_left_out` compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest

from pytest_approvals.errors import TranscriptMismatch
from pytest_approvals.journal.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Told:
    """What a run tells while transcripts are being updated.

    Attributes:
        file: The file of its transcript, as messages name it.
        name: The name of its transcript.
        nodeid: Its item.
        text: What it tells.
        left: What is in the file after it: what it tells if it is stored, else what was there; None if nothing was.
        is_stored: Whether it is the run whose transcript the update stores.
        remedy: What to do if it is right.
    """

    file: str
    name: str
    nodeid: str
    text: str
    left: str | None
    is_stored: bool
    remedy: str


_TOLD = pytest.StashKey[list[Told]]()


def note_told(config: pytest.Config, told: Told) -> None:
    """Note what a run tells, until the end of the session."""
    config.stash.setdefault(_TOLD, []).append(told)


def dump_told(config: pytest.Config) -> list[tuple[str | bool | None, ...]]:
    """Return what was noted in the plain values that pytest-xdist carries."""
    return [astuple(told) for told in config.stash.get(_TOLD, ())]


def load_told(config: pytest.Config, dumped: Iterable[Iterable[str | bool | None]]) -> None:
    """Note what the runs of a worker tell."""
    for values in dumped:
        note_told(config, Told(*values))  # type: ignore[arg-type]


def find_left_out(config: pytest.Config) -> Iterator[tuple[str, TranscriptMismatch]]:
    """Yield the item and the difference of each run that tells something else than what is stored after the update."""
    told = config.stash.get(_TOLD, [])
    # Those that are stored come last, and so decide.
    left = {(each.file, each.name): each.left for each in sorted(told, key=lambda each: each.is_stored)}
    for each in told:
        stored = left[each.file, each.name]
        if stored is not None and stored != each.text and not each.is_stored:
            differences = Transcript.parse(stored).differences(Transcript.parse(each.text))
            yield each.nodeid, TranscriptMismatch(each.name, each.file, differences, each.remedy)


def show_file(path: Path, root: Path) -> str:
    """Return a file of transcripts as messages name it."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)

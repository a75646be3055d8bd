"""Memory that traces take: as much as the largest conversation, however many there are."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories import documents
from pytest_approvals.conversations.histories.conversation import StoredConversation
from pytest_approvals.conversations.histories.files import LocatedConversation, read_conversations
from pytest_approvals.conversations.histories.spans import collector as collector_module

COUNT = 25
"""How many conversations the smaller file has; the larger one has four times as many."""

MOST = 20_000
"""Bytes by which the larger file may take more; it is longer by 300,000."""


def lines_of(conversation: int) -> Iterator[str]:
    """Yield the spans of a conversation: two traces, which have its id and the random id of a call in common."""
    for trace in range(2):
        attributes: dict[str, Any] = {"gen_ai.conversation.id": f"conversation-{conversation:016}"}
        for number in range(2):
            call = {"type": "tool_call", "id": f"call_{conversation:016}_{trace}_{number}", "name": "look"}
            said = [{"role": "assistant", "parts": [{**call, "arguments": {"text": "x" * 600}}]}]
            yield json.dumps(
                {
                    "trace_id": f"{conversation:030}{trace:02}",
                    "span_id": f"{number:016}",
                    "start_time": f"2026-11-25T09:0{trace}:0{number}Z",
                    "attributes": {
                        **attributes,
                        "gen_ai.operation.name": "chat",
                        "gen_ai.output.messages": json.dumps(said),
                    },
                }
            )


def write(path: Path, count: int) -> Path:
    """Write conversations whose spans alternate, so that all are open until the end."""
    for group in zip(*map(lines_of, range(count)), strict=True):
        with path.open("a") as file:
            file.writelines(f"{line}\n" for line in group)
    return path


def count_all(path: Path) -> int:
    return sum(isinstance(stored, LocatedConversation) for stored in read_conversations([str(path)]))


def keep_all(path: Path) -> list[StoredConversation]:
    """Read as a reader would that keeps what it has read."""
    return [stored.conversation for stored in read_conversations([str(path)])]  # type: ignore[union-attr]


def measure_growth(tmp_path: Path, read: Callable[[Path], Any]) -> int:
    """Return by how many bytes the peak is higher for four times as many conversations."""
    read(write(tmp_path / "first.jsonl", 2))
    peaks = []
    for count in (COUNT, 4 * COUNT):
        path = write(tmp_path / f"{count}.jsonl", count)
        gc.collect()
        tracemalloc.start()
        read(path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return peaks[1] - peaks[0]


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small what is in memory of any file, as it is beside a file of a gigabyte."""
    monkeypatch.setattr(collector_module, "_MAX_KNOWN", 50)
    monkeypatch.setattr(documents, "CHUNK_SIZE", 20_000)


def test_all_conversations_are_read(tmp_path: Path) -> None:
    """Those of both traces are one each."""
    assert COUNT == count_all(write(tmp_path / "spans.jsonl", COUNT))


def test_memory_does_not_grow_with_the_number_of_conversations(tmp_path: Path) -> None:
    """Their spans and their ids wait outside of it."""
    assert MOST > measure_growth(tmp_path, count_all)


def test_the_measure_sees_a_reader_that_keeps_all(tmp_path: Path) -> None:
    """Its memory grows with the file."""
    assert MOST < measure_growth(tmp_path, keep_all)

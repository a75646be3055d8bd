"""Leaks of an agent that plays many stories in one process: memory, tasks and threads that each story leaves behind."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WARM_UP = 100
"""After so many stories, imports and caches do not grow much any more."""

MAX_TASKS = 100
MAX_THREADS = 50
MAX_MEBIBYTES = 300

_STATM = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What a process holds.

    Attributes:
        tasks: Tasks of the event loop that have not ended.
        threads: Threads.
        mebibytes: Memory; 0 if the system does not tell.
    """

    tasks: int
    threads: int
    mebibytes: int


def measure_footprint(loop: asyncio.AbstractEventLoop | None) -> Footprint:
    """Return what this process holds now.

    Args:
        loop: The event loop that the stories run on.
    """
    tasks = len(asyncio.all_tasks(loop)) if loop is not None and not loop.is_closed() else 0
    return Footprint(tasks=tasks, threads=threading.active_count(), mebibytes=_read_memory())


def _read_memory() -> int:
    try:
        resident = int(_STATM.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return int(resident * os.sysconf("SC_PAGE_SIZE") / 2**20)


class LeakWatch:
    """Compares what a process holds with what it held after the first stories.

    Args:
        measure: Returns what it holds.

    Attributes:
        notice: What has leaked, as text; empty if nothing has.
    """

    def __init__(self, measure: Callable[[], Footprint]) -> None:
        self.notice = ""
        self._measure = measure
        self._base: Footprint | None = None
        self._played = 0

    def observe(self) -> None:
        """Look again, after a story."""
        self._played += 1
        # Measuring costs a hundredth of a short story; a leak shows as well in every tenth one.
        if self._played < WARM_UP or self._played % 10:
            return
        now = self._measure()
        if self._base is None:
            self._base = now
            return
        grown = [
            _format_growth(now.tasks - self._base.tasks, MAX_TASKS, "tasks that have not ended"),
            _format_growth(now.threads - self._base.threads, MAX_THREADS, "threads"),
            _format_growth(now.mebibytes - self._base.mebibytes, MAX_MEBIBYTES, "MiB of memory"),
        ]
        leaks = [words for words in grown if words]
        if leaks:
            self.notice = f"{' and '.join(leaks)} more after {self._played:,} stories than after {WARM_UP}"


def _format_growth(grown: int, most: int, words: str) -> str:
    return f"{grown:,} {words}" if grown > most else ""
